// Package install renders what users install, the Helm chart and the manifests,
// with the programs they do it with.
package install

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/gpu-summary/gpu-summary-controller/lab/compile"
	"github.com/gpu-summary/gpu-summary-controller/lab/plane"
)

// Release is what the installation is called.
const Release = "gpu-summary"

// Tools are helm and kubectl, and the checkout they are used on.
type Tools struct {
	Helm, Kubectl string // paths
	Root          string // of the checkout
}

// Build builds the tools into dir. They are a module of their own, which shares
// nearly all it compiles with the lab.
func Build(ctx context.Context, dir string) (Tools, error) {
	module, err := compile.Module()
	if err != nil {
		return Tools{}, err
	}
	// Without symbols the two take half as long to link.
	cmd := compile.Go(ctx, filepath.Join(module, "tools"), "build", "-ldflags=-s -w", "-o", dir+string(filepath.Separator),
		"helm.sh/helm/v3/cmd/helm", "./kubectl")
	if out, err := cmd.CombinedOutput(); err != nil {
		return Tools{}, fmt.Errorf("build helm and kubectl: %w\n%s", compile.Explain(err), out)
	}
	return Tools{
		Helm: filepath.Join(dir, "helm"), Kubectl: filepath.Join(dir, "kubectl"), Root: filepath.Dir(module),
	}, nil
}

// Chart is where the chart is.
func (t Tools) Chart() string { return filepath.Join(t.Root, "deploy", "chart") }

// Manifests is where the plain manifests are.
func (t Tools) Manifests() string { return filepath.Join(t.Root, "deploy", "manifests") }

// Lint lets helm judge the chart.
func (t Tools) Lint(ctx context.Context) error {
	_, err := t.helm(ctx, "", "lint", "--strict", t.Chart(), "--kube-version", plane.KubernetesVersion)
	return err
}

// Render returns the chart as it would be installed in a namespace with these
// values, given as YAML.
func (t Tools) Render(ctx context.Context, namespace, values string) (string, error) {
	// Helm would take the newest version it knows for that of the cluster, but learns
	// it from its own makefile.
	return t.helm(ctx, values, "template", Release, t.Chart(), "--namespace", namespace, "--values", "-", "--kube-version", plane.KubernetesVersion)
}

// Install installs the chart in a cluster, and returns what helm says when the
// replicas are ready.
func (t Tools) Install(ctx context.Context, kubeconfig, namespace, values string) (string, error) {
	return t.helm(ctx, values, "install", Release, t.Chart(), "--kubeconfig", kubeconfig, "--namespace", namespace, "--values", "-", "--wait", "--timeout", "90s")
}

// Uninstall removes what Install has installed.
func (t Tools) Uninstall(ctx context.Context, kubeconfig, namespace string) error {
	_, err := t.helm(ctx, "", "uninstall", Release, "--kubeconfig", kubeconfig, "--namespace", namespace, "--wait", "--timeout", "90s")
	return err
}

func (t Tools) helm(ctx context.Context, stdin string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, t.Helm, args...)
	// Not the user's plugins, repositories and caches.
	cmd.Env = append(os.Environ(), "HELM_NO_PLUGINS=1", "HELM_CONFIG_HOME=/nonexistent", "HELM_CACHE_HOME=/nonexistent", "HELM_DATA_HOME=/nonexistent")
	cmd.Stdin = strings.NewReader(stdin)
	return output(cmd)
}

// Kustomize returns what kubectl apply -k would apply.
func (t Tools) Kustomize(ctx context.Context, folder string) (string, error) {
	return output(exec.CommandContext(ctx, t.Kubectl, "kustomize", folder))
}

// output runs a command and returns what it wrote. What it said to standard error
// is in the error.
func output(cmd *exec.Cmd) (string, error) {
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("%s %s: %w\n%s%s", filepath.Base(cmd.Path), cmd.Args[1], err, stdout.Bytes(), stderr.Bytes())
	}
	return stdout.String(), nil
}
