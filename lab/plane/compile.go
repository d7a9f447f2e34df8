package plane

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/gpu-summary/gpu-summary-controller/lab/compile"
)

// programs are built and kept together.
type programs struct {
	job compile.Job
	// prefix begins the names of their entries in the cache.
	prefix string
	// madeFrom is everything in this module that they are made from (all else comes
	// from modules that go.sum pins).
	madeFrom []string
}

// BuildTime is how long Build takes the first time, after "make".
const BuildTime = "about five minutes on two cores"

// controlPlane is what Build compiles, nodePrograms what BuildNode does.
var (
	controlPlane = programs{
		job: compile.Job{
			Name:  "control plane",
			Of:    "Kubernetes " + KubernetesVersion + " and KWOK " + KWOKVersion,
			Long:  BuildTime + "; once built, a start takes seconds",
			Mains: []string{"./cmd/controlplane", "./cmd/kwok"},
			Flags: buildFlags(),
		},
		prefix:   KubernetesVersion + "-",
		madeFrom: []string{"cmd/controlplane/*.go", "cmd/kwok/*.go", "plane/tether/*.go", "go.mod", "go.sum"},
	}
	nodePrograms = programs{
		job: compile.Job{
			Name:  "node",
			Of:    "kubelet and kube-proxy " + KubernetesVersion,
			Long:  "about two minutes on two cores after the control plane",
			Mains: []string{"./cmd/kubelet", "./cmd/kubelet-keeper", "./cmd/kubelet-pause"},
			Flags: buildFlags(),
		},
		prefix:   "node-" + KubernetesVersion + "-",
		madeFrom: []string{"cmd/kubelet*/*.go", "realnode/keeper/*.go", "plane/tether/*.go", "go.mod", "go.sum"},
	}
)

// key identifies what a build would give: same key, same binaries.
func (p programs) key(ctx context.Context, module string) (string, error) {
	hash := sha256.New()
	env, err := compile.Go(ctx, module, "env", "GOVERSION", "GOOS", "GOARCH").Output()
	if err != nil {
		return "", fmt.Errorf("run go, which builds the %s: %w", p.job.Name, compile.Explain(err))
	}
	fmt.Fprintf(hash, "%s %s %q %s", KubernetesVersion, KWOKVersion, buildFlags(), env)
	for _, pattern := range p.madeFrom {
		paths, err := filepath.Glob(filepath.Join(module, pattern))
		if err != nil {
			return "", fmt.Errorf("list sources: %w", err)
		}
		for _, path := range paths {
			if strings.HasSuffix(path, "_test.go") {
				continue
			}
			data, err := os.ReadFile(path)
			if err != nil {
				return "", fmt.Errorf("read source: %w", err)
			}
			fmt.Fprintf(hash, "%s %d\n", filepath.Base(path), len(data))
			hash.Write(data)
		}
	}
	return hex.EncodeToString(hash.Sum(nil))[:12], nil
}

// buildFlags: only the linker's flags differ from a plain go build, so that all
// compiled packages are shared with it through Go's own cache.
func buildFlags() []string {
	major, minor, _ := strings.Cut(strings.TrimPrefix(KubernetesVersion, "v"), ".")
	minor, _, _ = strings.Cut(minor, ".")
	ldflags := []string{"-s", "-w"}
	// Without these the server calls itself v0.0.0-master, and clients that
	// compare versions go wrong.
	for _, pkg := range []string{"k8s.io/component-base/version", "k8s.io/client-go/pkg/version"} {
		ldflags = append(ldflags,
			"-X "+pkg+".gitVersion="+KubernetesVersion,
			"-X "+pkg+".gitMajor="+major,
			"-X "+pkg+".gitMinor="+minor,
			"-X "+pkg+".gitTreeState=clean",
		)
	}
	return []string{"-buildvcs=false", "-ldflags=" + strings.Join(ldflags, " ")}
}
