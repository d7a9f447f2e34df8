# The two commands a newcomer needs are `make demo` and `make test`. Everything
# they need beyond Go, git and make is built or installed here, by version.

GO               ?= go
# A compiler lives for a second or so, and collects garbage for a sixth of that if
# it is let. The limit is for each, and is reached by few. Not for what runs tests.
COMPILE          := GOGC=off GOMEMLIMIT=2GiB $(GO)
GOLANGCI_VERSION := v2.15.0
GOLANGCI         := $(CURDIR)/bin/tools/golangci-lint-$(GOLANGCI_VERSION)
PROMTOOL_VERSION := v0.316.0
PROMTOOL         := $(CURDIR)/bin/tools/promtool-$(PROMTOOL_VERSION)
GOTESTSUM_VERSION := v1.13.0
GOTESTSUM        := $(CURDIR)/bin/tools/gotestsum-$(GOTESTSUM_VERSION)
VERSION          := $(shell git describe --tags --always --dirty 2>/dev/null || echo v0.0.0-unknown)
LDFLAGS          := -X github.com/gpu-summary/gpu-summary-controller/internal/version.version=$(VERSION)

# client-go's own watchdogs: one panics when a cached object is changed, the other
# compares what was streamed with a list.
DETECTORS := KUBE_CACHE_MUTATION_DETECTOR=true KUBE_WATCHLIST_INCONSISTENCY_DETECTOR=true

# A browser, what a node runs on, a C compiler, and what a recipe in the documents uses.
# The tests find out by themselves what is there.
PACKAGES := chromium containerd runc containernetworking-plugins iptables gcc libc6-dev jq

# The race detector is there where cgo is, which takes a C compiler.
RACE = $(if $(filter 1,$(shell $(GO) env CGO_ENABLED)),-race)

# What failed is shown when it does, and at the end what was left out, and why.
GOTEST = $(GOTESTSUM) --format pkgname-and-test-fails --format-hide-empty-pkg --raw-command -- $(GO) test -json $(RACE)

# Packages that have tests. go test would compile the others too, and with them,
# once more for the race detector, all of Kubernetes.
WITH_TESTS := -f '{{if or .TestGoFiles .XTestGoFiles}}{{.ImportPath}}{{end}}'
# Those of lab/e2e have a target of their own.
INTEGRATION = $$($(GO) list $(WITH_TESTS) ./... | grep -v /e2e$$)

.PHONY: all
all: bin/gpu-summary-controller bin/lab ## build the controller and the lab's command

.PHONY: bin/gpu-summary-controller
bin/gpu-summary-controller:
	@test -e $@ || echo "compiling; with nothing in Go's cache, which is so the first time, this takes two minutes on two cores"
	$(COMPILE) build -ldflags '$(LDFLAGS)' -o $@ ./cmd/gpu-summary-controller

.PHONY: bin/lab
bin/lab:
	cd lab && $(COMPILE) build -ldflags '$(LDFLAGS)' -o ../$@ ./cmd/lab

.PHONY: plugin
plugin: ## build the kubectl plugin, bin/kubectl-gpu_summary
	$(COMPILE) build -ldflags '$(LDFLAGS)' -o bin/kubectl-gpu_summary ./cmd/kubectl-gpu_summary

.PHONY: demo
demo: all ## a control plane, a cluster of 6,212 GPUs, and the controller at work on it
	bin/lab demo $(DEMO_FLAGS)

.PHONY: test
test: vet unit rules lint integration ## everything that must hold

.PHONY: vet
vet: ## gofmt, go vet, and whether go.mod is tidy
	@files=$$(git ls-files '*.go' | xargs gofmt -l); test -z "$$files" || { echo "not gofmt-ed: $$files"; exit 1; }
	$(COMPILE) vet ./...
	$(GO) mod tidy -diff
	cd lab && $(GO) mod tidy -diff
	cd lab/tools && $(GO) mod tidy -diff

.PHONY: unit
unit: $(GOTESTSUM) ## the root module's tests: pure code, virtual time, the layout
	$(if $(RACE),,@echo 'no C compiler: the tests run without the race detector; install gcc to run them with it (make packages does)')
	@echo compile the tests
	@$(COMPILE) list $(RACE) -export -test -deps ./... >/dev/null
	$(GOTEST) ./...

.PHONY: lab-binaries
lab-binaries: bin/lab ## compile the control plane, about five minutes the first time
	bin/lab build

.PHONY: integration
integration: $(GOTESTSUM) lab-binaries ## the lab's tests, on a real control plane
	cd lab && $(COMPILE) vet ./...
	@echo compile the tests
	@cd lab && $(COMPILE) list $(RACE) -export -test -deps $(INTEGRATION) >/dev/null # on all processors: -p 1 below is for compilers, too
	cd lab && $(DETECTORS) $(GOTEST) -count=1 -p 1 -timeout 30m $(INTEGRATION)

.PHONY: e2e
e2e: $(PROMTOOL) lab-binaries ## the product installed on a real node, GPUs included (Linux, root)
	cd lab && PROMTOOL=$(PROMTOOL) $(GO) test -count=1 -v -timeout 30m ./e2e

.PHONY: packages
packages: ## install the Debian packages without which tests of the page and of real nodes are left out
	apt-get update
	DEBIAN_FRONTEND=noninteractive apt-get install --yes --no-install-recommends $(PACKAGES)

.PHONY: lint
lint: $(GOLANGCI) lab-binaries ## golangci-lint on both modules
	$(GOLANGCI) run --allow-serial-runners ./...
	cd lab && $(GOLANGCI) run --allow-serial-runners --config ../.golangci.yml ./...

$(GOLANGCI):
	GOBIN=$(dir $@) $(COMPILE) install github.com/golangci/golangci-lint/v2/cmd/golangci-lint@$(GOLANGCI_VERSION)
	mv $(dir $@)golangci-lint $@

$(GOTESTSUM):
	GOBIN=$(dir $@) $(COMPILE) install gotest.tools/gotestsum@$(GOTESTSUM_VERSION)
	mv $(dir $@)gotestsum $@

.PHONY: manifests
manifests: ## write deploy/manifests: the chart with its default values
	cd lab && $(GO) run ./cmd/release manifests

.PHONY: image
image: ## a container image in dist, without a container engine
	cd lab && $(GO) run ./cmd/release build --image-only --version '$(VERSION)' --dir ../dist

.PHONY: release
release: ## binaries for Linux and macOS, the image, SBOMs and checksums in dist
	cd lab && $(GO) run ./cmd/release build --version '$(VERSION)' --dir ../dist

.PHONY: bench
bench: all ## measure the controller beside its rivals, an hour and a half unless BENCH_FLAGS says otherwise
	bin/lab bench $(BENCH_FLAGS)

.PHONY: screenshots
screenshots: all ## take the pictures of the documents anew, with the demo's cluster and Chromium
	docs/images/screenshots.sh

.PHONY: rules
rules: $(PROMTOOL) ## check and test the Prometheus rules, and the dashboard's queries
	$(PROMTOOL) check rules --lint=all --lint-fatal deploy/prometheus/rules.yaml
	$(PROMTOOL) test rules deploy/prometheus/rules_test.yaml
	PROMTOOL=$(PROMTOOL) $(GO) test -count=1 -run TestQueriesOfTheDashboard ./internal/serve

$(PROMTOOL): # without service discovery, whose clients of clouds are most of what there is to compile
	GOBIN=$(dir $@) $(COMPILE) install -tags remove_all_sd github.com/prometheus/prometheus/cmd/promtool@$(PROMTOOL_VERSION)
	mv $(dir $@)promtool $@

.PHONY: clean
clean: ## remove what was built here (the lab's binaries stay in the user's cache)
	rm -rf bin

.PHONY: help
help: ## this list
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## /{printf "  make %-14s %s\n", $$1, $$2}' $(MAKEFILE_LIST)
