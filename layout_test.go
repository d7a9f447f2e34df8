// Package project_test keeps the layout true: what each package may import, and
// that the README's table of folders is the list of folders.
package project_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/gpu-summary/gpu-summary-controller/"

// allowed lists, for each package, every import from outside the standard
// library; "…" stands for all packages below. The data flows from watch to serve,
// so a stage imports the ones before it at most, and count imports none. A line
// that has to be added here is a decision about the architecture.
var allowed = map[string][]string{
	"cmd/gpu-summary-controller": {"internal/preflight", "internal/run", "internal/version", "github.com/spf13/cobra", "k8s.io/component-base/logs…"},

	"cmd/kubectl-gpu_summary": {"internal/plugin", "k8s.io/cli-runtime/pkg/genericiooptions"},

	"deploy/manifests": {},

	"internal/count": {
		"internal/count/selector", "k8s.io/api/core/v1", "k8s.io/api/resource/v1",
		"k8s.io/apimachinery/pkg/api/resource", "k8s.io/apimachinery/pkg/apis/meta/v1",
		"k8s.io/apimachinery/pkg/types", "k8s.io/apimachinery/pkg/util/validation", "k8s.io/component-helpers/resource",
	},
	// CEL is what DeviceClasses are written in. The scheduler's own evaluator brings
	// cel-go and a few packages of k8s.io/apiserver (none that serve, store or
	// register anything), 72 packages in all: an imitation of it would be smaller,
	// and wrong sooner or later.
	"internal/count/selector": {"k8s.io/api/resource/v1", "k8s.io/dynamic-resource-allocation/cel"},
	"internal/version":        {},
	"internal/discover":       {"internal/count", "k8s.io/api/resource/v1", "k8s.io/apimachinery/pkg/api/errors", "k8s.io/apimachinery/pkg/apis/meta/v1", "k8s.io/client-go/discovery"},
	"internal/watch": {
		"internal/count", "internal/count/selector", "internal/discover", "google.golang.org/protobuf/encoding/protowire",
		"k8s.io/api/core/v1", "k8s.io/api/resource/v1", "k8s.io/apimachinery/…", "k8s.io/klog/v2",
		"k8s.io/client-go/kubernetes", "k8s.io/client-go/kubernetes/scheme",
		"k8s.io/client-go/informers", "k8s.io/client-go/rest", "k8s.io/client-go/tools/cache",
	},
	// What the scheduler has libraries for is left to them: affinity, taints, host ports.
	"internal/fit": {
		"internal/count", "k8s.io/api/apps/v1", "k8s.io/api/batch/v1", "k8s.io/api/core/v1", "k8s.io/api/resource/v1", "k8s.io/apimachinery/…",
		"k8s.io/component-helpers/resource", "k8s.io/component-helpers/scheduling/corev1…", "k8s.io/klog/v2",
		"k8s.io/kube-scheduler/framework", "k8s.io/utils/ptr", "sigs.k8s.io/json",
	},
	"internal/gather": {
		"k8s.io/api/core/v1", "k8s.io/api/resource/v1", "k8s.io/apimachinery/…", "k8s.io/client-go/kubernetes…",
		"sigs.k8s.io/yaml…", "internal/publish", "internal/count", "internal/discover",
		"golang.org/x/text/encoding/unicode", "k8s.io/dynamic-resource-allocation/api/v1beta1",
	},
	"internal/lead": {
		"k8s.io/apimachinery/…", "k8s.io/client-go/kubernetes/typed/coordination/v1", "k8s.io/client-go/rest",
		"k8s.io/client-go/tools/leaderelection…", "k8s.io/klog/v2",
	},
	"internal/queue": {"internal/count", "k8s.io/api/core/v1", "k8s.io/client-go/util/workqueue", "k8s.io/utils/clock"},
	"internal/publish": {
		"internal/count", "k8s.io/api/core/v1", "k8s.io/api/events/v1", "k8s.io/apimachinery/…", "k8s.io/klog/v2",
		"k8s.io/client-go/kubernetes/typed/core/v1", "k8s.io/client-go/kubernetes/typed/events/v1", "k8s.io/client-go/tools/events",
	},
	"internal/reconcile": {"internal/count", "internal/queue", "internal/publish", "k8s.io/klog/v2"},
	"internal/serve": {
		"internal/count", "internal/publish", "github.com/prometheus/client_golang/prometheus…",
		"golang.org/x/sync/singleflight", "golang.org/x/time/rate", "maragu.dev/gomponents…", "k8s.io/api/authentication/v1", "k8s.io/api/authorization/v1",
		"k8s.io/apimachinery/pkg/api/errors", "k8s.io/apimachinery/pkg/apis/meta/v1", "k8s.io/component-base/metrics/…",
		"k8s.io/klog/v2", "k8s.io/utils/lru",
	},
	"internal/plugin": {
		"internal/count", "internal/count/selector", "internal/fit", "internal/gather", "internal/publish", "internal/version", "github.com/spf13/cobra", "golang.org/x/term",
		"k8s.io/api/core/v1", "k8s.io/api/resource/v1", "k8s.io/apimachinery/…", "k8s.io/cli-runtime/pkg/genericclioptions", "k8s.io/cli-runtime/pkg/genericiooptions",
		"k8s.io/client-go/kubernetes", "k8s.io/client-go/rest", "k8s.io/client-go/tools/clientcmd/api", "k8s.io/klog/v2", "k8s.io/utils/ptr", "sigs.k8s.io/yaml",
	},
	"internal/serve/api":      {"internal/count", "internal/publish"},
	"internal/serve/page":     {"internal/count", "internal/serve/api", "maragu.dev/gomponents…"},
	"internal/serve/pipeline": {"internal/serve/api", "internal/serve/page", "maragu.dev/gomponents…", "github.com/prometheus/client_golang/prometheus"},
	"internal/preflight": {
		"internal/discover",
		"k8s.io/api/authentication/v1", "k8s.io/api/authorization/v1", "k8s.io/apimachinery/pkg/api/errors", "k8s.io/apimachinery/pkg/apis/meta/v1",
		"k8s.io/client-go/kubernetes/typed/authentication/v1", "k8s.io/client-go/kubernetes/typed/authorization/v1",
	},
	"internal/run": {
		"internal/…", "github.com/spf13/pflag", "k8s.io/apimachinery/…", "k8s.io/client-go/kubernetes", "k8s.io/client-go/rest",
		"k8s.io/client-go/tools/clientcmd", "k8s.io/klog/v2", "k8s.io/utils/clock",
		"github.com/prometheus/client_golang/prometheus", "k8s.io/client-go/kubernetes/typed/coordination/v1",
		"github.com/prometheus/client_model/go", "golang.org/x/sync/singleflight", "k8s.io/component-base/metrics/legacyregistry",
	},
}

// tooHeavy must not be among the dependencies of anything in this module: it is
// what lab/ is a module of its own for.
var tooHeavy = []string{
	"k8s.io/kubernetes", "k8s.io/apiserver/pkg/server", "k8s.io/apiserver/pkg/storage", "k8s.io/apiserver/pkg/registry",
	"sigs.k8s.io/controller-runtime", "go.etcd.io/",
}

type pkg struct {
	ImportPath string
	Standard   bool
	Imports    []string
}

// goList returns the packages that match, and with -deps all they need.
func goList(t *testing.T, args ...string) []pkg {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", append([]string{"list", "-json=ImportPath,Standard,Imports"}, args...)...)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	var pkgs []pkg
	for dec := json.NewDecoder(bytes.NewReader(out)); ; {
		var p pkg
		if err := dec.Decode(&p); errors.Is(err, io.EOF) {
			return pkgs
		} else if err != nil {
			t.Fatal(err)
		}
		pkgs = append(pkgs, p)
	}
}

func matches(pattern, importPath string) bool {
	if prefix, ok := strings.CutSuffix(pattern, "…"); ok {
		return strings.HasPrefix(importPath, prefix)
	}
	return pattern == importPath
}

func TestImports(t *testing.T) {
	seen := map[string]bool{}
	for _, p := range goList(t, "./...") {
		name := strings.TrimPrefix(p.ImportPath, module)
		if name == strings.TrimSuffix(module, "/") {
			continue // this package has only tests
		}
		seen[name] = true
		for _, imported := range p.Imports {
			imported = strings.TrimPrefix(imported, module)
			if first, _, _ := strings.Cut(imported, "/"); !strings.Contains(first, ".") && first != "internal" {
				continue // standard library
			}
			if !slices.ContainsFunc(allowed[name], func(pattern string) bool { return matches(pattern, imported) }) {
				t.Errorf("%s imports %s, which its line in this test does not allow", name, imported)
			}
		}
	}
	for name := range allowed {
		if !seen[name] {
			t.Errorf("%s is listed here but does not exist", name)
		}
	}
}

func TestTheModuleStaysLean(t *testing.T) {
	for _, p := range goList(t, "-deps", "./...") {
		for _, heavy := range tooHeavy {
			if strings.HasPrefix(p.ImportPath, heavy) {
				t.Errorf("the module depends on %s", p.ImportPath)
			}
		}
	}
}

var folderCell = regexp.MustCompile("(?m)^\\|[^|]*\\| `([a-z_/-]+)` \\|")

// TestReadmeNamesEveryFolder: the README's table of folders has a line for each
// folder that holds Go code of this module, and no line without a folder.
func TestReadmeNamesEveryFolder(t *testing.T) {
	readme, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	named := map[string]bool{}
	for _, m := range folderCell.FindAllStringSubmatch(string(readme), -1) {
		folder := path.Clean(m[1])
		named[folder] = true
		if info, err := os.Stat(filepath.FromSlash(folder)); err != nil || !info.IsDir() {
			t.Errorf("README.md names the folder %s, which does not exist", folder)
		}
	}
	for name := range allowed {
		if !named[name] {
			t.Errorf("README.md has no line for the folder %s", name)
		}
	}
}
