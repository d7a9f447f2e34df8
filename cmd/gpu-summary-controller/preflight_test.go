package main

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/spf13/pflag"
	logsapi "k8s.io/component-base/logs/api/v1"

	"github.com/gpu-summary/gpu-summary-controller/internal/preflight"
	"github.com/gpu-summary/gpu-summary-controller/internal/run"
)

// answers is a report in which the verbs named are missing; "?" marks those that are
// done without.
func answers(missing ...string) (r preflight.Report) {
	r.Answers = []preflight.Answer{{Need: preflight.Need{Resource: "pods", For: "count"}, Verb: "list", Allowed: true}}
	for _, verb := range missing {
		a := preflight.Answer{Need: preflight.Need{Resource: "pods", For: "count"}, Verb: strings.TrimSuffix(verb, "?")}
		if a.Verb != verb {
			a.Optional = "less is counted"
		}
		r.Answers = append(r.Answers, a)
	}
	return r
}

// fresh lets a command configure logging, which a process does once.
func fresh(t *testing.T) {
	t.Helper()
	if err := logsapi.ResetForTest(nil); err != nil {
		t.Fatal(err)
	}
}

// TestPreflightsExitStatus is what scripts look at: 0, 1 and 2 are different news.
func TestPreflightsExitStatus(t *testing.T) {
	unreachable := errors.New("unreachable")
	for name, tc := range map[string]struct {
		args   []string
		report preflight.Report
		err    error
		status int
		said   string // in the error
		table  string // in the output
	}{
		"nothing missing":    {nil, answers(), nil, 0, "", "has all 1 permissions"},
		"optional missing":   {nil, answers("get?"), nil, 0, "", "missing (optional)"},
		"required missing":   {nil, answers("get?", "watch", "update"), nil, 1, "required permissions that are missing: 2", "missing"},
		"also as YAML":       {[]string{"-o", "yaml"}, answers("watch"), nil, 1, "missing: 1", "kind: ClusterRole"},
		"could not be asked": {nil, answers(), unreachable, 2, "unreachable", ""},
		"format":             {[]string{"-o", "xml"}, answers(), nil, 2, "--output=xml", ""},
		"flag":               {[]string{"--bogus"}, answers(), nil, 2, "--bogus", ""},
		"argument":           {[]string{"now"}, answers(), nil, 2, "now", ""},
	} {
		t.Run(name, func(t *testing.T) {
			fresh(t)
			var out bytes.Buffer
			cmd := preflightCommand(func(context.Context, *run.Options, string) (preflight.Report, error) { return tc.report, tc.err })
			cmd.SetArgs(append([]string{}, tc.args...))
			cmd.SetOut(&out)
			err := cmd.ExecuteContext(t.Context())
			status := 0
			if err != nil {
				status = exitStatus(err)
				if !strings.Contains(err.Error(), tc.said) {
					t.Errorf("error %v, want %q", err, tc.said)
				}
			}
			if status != tc.status || !strings.Contains(out.String(), tc.table) || (tc.table == "" && out.Len() > 0) {
				t.Errorf("exit status %d, want %d; it prints:\n%s", status, tc.status, out.String())
			}
		})
	}
	if status := exitStatus(unreachable); status != 1 {
		t.Errorf("another error ends with %d, want 1", status)
	}
}

// TestPreflightTakesTheControllersFlags, all of them, so that a deployment's can be
// given as they are.
func TestPreflightTakesTheControllersFlags(t *testing.T) {
	fresh(t)
	var got run.Options
	var user string
	cmd := preflightCommand(func(_ context.Context, o *run.Options, as string) (preflight.Report, error) {
		got, user = *o, as
		return answers(), nil
	})
	cmd.SetArgs([]string{"--watch-nodes=false", "--watch-namespace=a", "--namespace=b", "-v=2", "--as=someone"})
	cmd.SetOut(&bytes.Buffer{})
	if err := cmd.ExecuteContext(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got.WatchNodes || got.WatchNamespace != "a" || got.Namespace != "b" || user != "someone" {
		t.Errorf("asked as %q for %+v", user, got)
	}
	command().Flags().VisitAll(func(f *pflag.Flag) {
		if f.Name != "version" && cmd.Flags().Lookup(f.Name) == nil {
			t.Errorf("preflight does not take --%s", f.Name)
		}
	})
}
