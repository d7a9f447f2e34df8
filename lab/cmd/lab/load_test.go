package main

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gpu-summary/gpu-summary-controller/lab/load"
)

const kubeconfig = `apiVersion: v1
kind: Config
current-context: one
clusters:
- {name: one, cluster: {server: "http://127.0.0.1:1"}}
- {name: two, cluster: {server: "http://127.0.0.1:2"}}
contexts:
- {name: one, context: {cluster: one}}
- {name: two, context: {cluster: two}}
`

// setLabs says which labs run.
func setLabs(t *testing.T, err error, labs ...string) {
	t.Helper()
	before := runningLabs
	t.Cleanup(func() { runningLabs = before })
	runningLabs = func() ([]string, error) { return labs, err }
}

// loadCommand runs "lab load" with the given labs running.
func loadCommand(t *testing.T, labs []string, args ...string) (string, error) {
	t.Helper()
	setLabs(t, nil, labs...)
	var out bytes.Buffer
	cmd := newLoadCommand()
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	cmd.SetOut(&out)
	cmd.SetErr(&out)
	cmd.SetArgs(args)
	err := cmd.ExecuteContext(t.Context())
	return out.String(), err
}

func kubeconfigFile(t *testing.T) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "config")
	if err := os.WriteFile(file, []byte(kubeconfig), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

func TestLoadRefuses(t *testing.T) {
	broken := t.TempDir()
	for name, text := range map[string]string{
		load.NodesFile: "sn,cpu_milli,memory_mib,gpu,model\nn0,1,1,-8,G2\n",
		load.PodsFile:  "name\n",
	} {
		if err := os.WriteFile(filepath.Join(broken, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	// The user's own cluster is there in every case, and must not be picked.
	t.Setenv("KUBECONFIG", kubeconfigFile(t))
	for name, tc := range map[string]struct {
		labs []string
		args []string
		want string
	}{
		"nothing to load":   {nil, nil, "give exactly one of --openb DIR and --like openb"},
		"two things":        {nil, []string{"--openb", broken, "--like", "openb"}, "give exactly one of --openb DIR and --like openb"},
		"another trace":     {nil, []string{"--like", "philly"}, "--like philly: there are figures of openb only"},
		"seed of the trace": {nil, []string{"--openb", broken, "--seed", "3"}, "--seed goes with --like"},
		"no workers":        {nil, []string{"--like", "openb", "--workers", "0"}, "--workers is 0, want at least 1"},
		"no such directory": {nil, []string{"--openb", filepath.Join(broken, "x")}, "must hold " + load.NodesFile + " and " + load.PodsFile},
		"broken row":        {nil, []string{"--openb", broken}, filepath.Join(broken, load.NodesFile) + ":2: gpu: -8 is negative"},
		"no lab":            {nil, []string{"--like", "openb"}, `no lab is running: start one with "lab up", or name the cluster with --kubeconfig or --context`},
		"two labs":          {[]string{"/a", "/b"}, []string{"--like", "openb"}, "2 labs are running, choose one: --kubeconfig /a, or --kubeconfig /b"},
		"no kubeconfig":     {nil, []string{"--like", "openb", "--kubeconfig", "/nowhere/config"}, "read kubeconfig /nowhere/config: "},
		"no context":        {nil, []string{"--like", "openb", "--context", "three"}, `context "three" does not exist`},
	} {
		t.Run(name, func(t *testing.T) {
			out, err := loadCommand(t, tc.labs, tc.args...)
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got  %v\nwant %q in it", err, tc.want)
			}
			if out != "" {
				t.Errorf("it said %q", out)
			}
		})
	}
}

func TestLoadPicksTheCluster(t *testing.T) {
	file, users := kubeconfigFile(t), kubeconfigFile(t)
	t.Setenv("KUBECONFIG", users)
	for name, tc := range map[string]struct {
		labs []string
		f    loadFlags
		want string
	}{
		"running lab":             {[]string{file}, loadFlags{}, "http://127.0.0.1:1"},
		"file":                    {nil, loadFlags{kubeconfig: file}, "http://127.0.0.1:1"},
		"file and context":        {nil, loadFlags{kubeconfig: file, context: "two"}, "http://127.0.0.1:2"},
		"context of the user":     {nil, loadFlags{context: "two"}, "http://127.0.0.1:2"},
		"named beats running lab": {[]string{"/nowhere/config"}, loadFlags{context: "one"}, "http://127.0.0.1:1"},
	} {
		t.Run(name, func(t *testing.T) {
			setLabs(t, nil, tc.labs...)
			cfg, err := tc.f.config()
			if err != nil {
				t.Fatal(err)
			}
			if cfg.Host != tc.want {
				t.Errorf("picked %s, want %s", cfg.Host, tc.want)
			}
		})
	}
	setLabs(t, errors.New("unreadable"))
	if _, err := (loadFlags{}).config(); err == nil || !strings.Contains(err.Error(), "look for a running lab: unreadable") {
		t.Errorf("got %v", err)
	}
}
