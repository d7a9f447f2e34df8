# The two commands a newcomer needs are `make demo` and `make test`. Everything
# they need beyond Go, git and make is built or installed here, by version.

GO               ?= go
GOLANGCI_VERSION := v2.15.0
GOLANGCI         := $(CURDIR)/bin/tools/golangci-lint-$(GOLANGCI_VERSION)
PROMTOOL_VERSION := v0.316.0
PROMTOOL         := $(CURDIR)/bin/tools/promtool-$(PROMTOOL_VERSION)
VERSION          := $(shell git describe --tags --always --dirty 2>/dev/null || echo v0.0.0-unknown)
LDFLAGS          := -X github.com/gpu-summary/gpu-summary-controller/internal/version.version=$(VERSION)

# client-go's own watchdogs: one panics when a cached object is changed, the other
# compares what was streamed with a list.
DETECTORS := KUBE_CACHE_MUTATION_DETECTOR=true KUBE_WATCHLIST_INCONSISTENCY_DETECTOR=true

# A browser, and what a node runs on. The tests find out by themselves what is there.
PACKAGES := chromium containerd runc containernetworking-plugins iptables

# Packages that have tests. go test would compile the others too, and with them,
# once more for the race detector, all of Kubernetes.
WITH_TESTS := -f '{{if or .TestGoFiles .XTestGoFiles}}{{.ImportPath}}{{end}}'
# Those of lab/e2e have a target of their own.
INTEGRATION = $$($(GO) list $(WITH_TESTS) ./... | grep -v /e2e$$)

.PHONY: all
all: bin/gpu-summary-controller bin/lab ## build the controller and the lab's command

.PHONY: bin/gpu-summary-controller
bin/gpu-summary-controller:
	$(GO) build -ldflags '$(LDFLAGS)' -o $@ ./cmd/gpu-summary-controller

.PHONY: bin/lab
bin/lab:
	cd lab && $(GO) build -ldflags '$(LDFLAGS)' -o ../$@ ./cmd/lab

.PHONY: plugin
plugin: ## build the kubectl plugin, bin/kubectl-gpu_summary
	$(GO) build -ldflags '$(LDFLAGS)' -o bin/kubectl-gpu_summary ./cmd/kubectl-gpu_summary

.PHONY: demo
demo: all ## a control plane, a cluster of 6,212 GPUs, and the controller at work on it
	bin/lab demo $(DEMO_FLAGS)

.PHONY: test
test: vet unit rules lint integration ## everything that must hold

.PHONY: vet
vet: ## gofmt, go vet, and whether go.mod is tidy
	@files=$$(git ls-files '*.go' | xargs gofmt -l); test -z "$$files" || { echo "not gofmt-ed: $$files"; exit 1; }
	$(GO) vet ./...
	$(GO) mod tidy -diff
	cd lab && $(GO) mod tidy -diff
	cd lab/tools && $(GO) mod tidy -diff

.PHONY: unit
unit: ## the root module's tests: pure code, virtual time, the layout
	$(GO) test -race ./...

.PHONY: lab-binaries
lab-binaries: bin/lab ## compile the control plane, about 12 minutes the first time
	bin/lab build

.PHONY: integration
integration: lab-binaries ## the lab's tests, on a real control plane
	cd lab && $(GO) vet ./...
	@echo compile the tests
	@cd lab && $(GO) list -race -export -test -deps $(INTEGRATION) >/dev/null # on all processors: -p 1 below is for compilers, too
	cd lab && $(DETECTORS) $(GO) test -race -count=1 -p 1 -timeout 30m $(INTEGRATION)

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
	GOBIN=$(dir $@) $(GO) install github.com/golangci/golangci-lint/v2/cmd/golangci-lint@$(GOLANGCI_VERSION)
	mv $(dir $@)golangci-lint $@

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

$(PROMTOOL):
	GOBIN=$(dir $@) $(GO) install github.com/prometheus/prometheus/cmd/promtool@$(PROMTOOL_VERSION)
	mv $(dir $@)promtool $@

.PHONY: clean
clean: ## remove what was built here (the lab's binaries stay in the user's cache)
	rm -rf bin

.PHONY: help
help: ## this list
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## /{printf "  make %-14s %s\n", $$1, $$2}' $(MAKEFILE_LIST)
