package main

import (
	"bytes"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gpu-summary/gpu-summary-controller/lab/load"
)

// TestDemoRefuses: what cannot work is said before a control plane is started.
func TestDemoRefuses(t *testing.T) {
	nowhere := filepath.Join(t.TempDir(), "x")
	for name, tc := range map[string]struct {
		args []string
		want string
	}{
		"format":            {[]string{"-o", "yaml"}, "-o yaml: want table or json"},
		"json without once": {[]string{"-o", "json"}, "-o json needs --once"},
		"address":           {[]string{"--http-address", "8080"}, "--http-address=8080"},
		"no such directory": {[]string{"--openb", nowhere}, "must hold " + load.NodesFile + " and " + load.PodsFile},
		"argument":          {[]string{"now"}, `unknown command "now"`},
	} {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			cmd := newDemoCommand()
			cmd.SilenceErrors, cmd.SilenceUsage = true, true
			cmd.SetOut(&out)
			cmd.SetErr(&out)
			cmd.SetArgs(tc.args)
			if err := cmd.ExecuteContext(t.Context()); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got  %v\nwant %q in it", err, tc.want)
			}
			if out.Len() > 0 {
				t.Errorf("it said %q", out.String())
			}
		})
	}
}
