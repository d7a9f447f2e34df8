package main

import (
	"bytes"
	"encoding/json"
	"io"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"

	"github.com/gpu-summary/gpu-summary-controller/lab/diff"
)

func diffCommand(args ...string) (stdout, stderr string, err error) {
	var out, errOut bytes.Buffer
	cmd := newCommand()
	cmd.SetOut(&out)
	cmd.SetErr(&errOut)
	cmd.SetArgs(args)
	err = cmd.Execute()
	return out.String(), errOut.String(), err
}

func TestDiff(t *testing.T) {
	stdout, stderr, err := diffCommand("--pods", "500", "--seed", "3")
	if err != nil || !strings.Contains(stdout, "500 pods tried") || !strings.Contains(stdout, " 0 mismatches") || !strings.Contains(stderr, "pods: 500 of 500") {
		t.Errorf("%v\n%s\n%s", err, stdout, stderr)
	}
}

func TestDiffAsJSONIsNothingButJSON(t *testing.T) {
	stdout, _, err := diffCommand("--pods", "500", "-o", "json")
	var report diff.Report
	if err == nil {
		err = json.Unmarshal([]byte(stdout), &report)
	}
	if err != nil || report.Pods != 500 || len(report.Features) == 0 {
		t.Errorf("%v\n%s", err, stdout)
	}
}

func TestDiffOfOnePod(t *testing.T) {
	stdout, _, err := diffCommand("--seed", "3", "--only", "12")
	if err != nil || !strings.Contains(stdout, "pod 12 of seed 3") {
		t.Errorf("%v\n%s", err, stdout)
	}
}

func TestDiffRefuses(t *testing.T) {
	for _, args := range [][]string{{"--pods", "0"}, {"--workers", "0"}, {"-o", "yaml"}, {"--only", "-1"}, {"extra"}} {
		if _, _, err := diffCommand(args...); err == nil {
			t.Errorf("%q is not refused", args)
		}
	}
}

// TestDiffIsCalledByItsName: people type "lab diff", not the name of the file.
func TestDiffIsCalledByItsName(t *testing.T) {
	stdout, _, err := diffCommand("--help")
	if err != nil || !strings.Contains(stdout, "\n  lab diff [flags]\n") || strings.Contains(stdout, "labdiff") {
		t.Errorf("%v\n%s", err, stdout)
	}
}

// TestDiffFailsOnAMismatch: the exit status is what a pipeline looks at.
func TestDiffFailsOnAMismatch(t *testing.T) {
	nothing := func([]*corev1.Node, []*corev1.Pod) diff.Counts { return nil }
	var out bytes.Buffer
	cmd := &cobra.Command{}
	cmd.SetContext(t.Context())
	cmd.SetOut(&out)
	err := runDiff(cmd, diff.Options{Pods: 200, Workers: 1, Counter: nothing, Progress: io.Discard}, diff.Table)
	if err == nil || !strings.Contains(err.Error(), "are not the scheduler's") || !strings.Contains(out.String(), "Mismatch 1: ") {
		t.Errorf("%v\n%s", err, out.String())
	}
}

// TestDiffOfDRARefuses before anything is started, and says which flag it is.
func TestDiffOfDRARefuses(t *testing.T) {
	for want, args := range map[string][]string{
		"--only":    {"--dra", "--only", "1"},
		"--workers": {"--dra", "--workers", "2"},
		"--nodes":   {"--nodes", "5"},
		"--pods":    {"--dra", "--pods", "0"},
		"--nodes h": {"--dra", "--nodes", "0"},
		"--output":  {"--dra", "-o", "yaml"},
	} {
		if _, _, err := diffCommand(args...); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%q: %v; want %s refused", args, err, want)
		}
	}
}

// TestDiffOfDRAFailsOnAMismatch, which is in the report, and in JSON too.
func TestDiffOfDRAFailsOnAMismatch(t *testing.T) {
	report := &diff.DRAReport{Rows: 3, Mismatches: 1, Found: []diff.DRAMismatch{{Number: "free", Scheduler: 1, Ours: 2}}}
	for format, want := range map[diff.Format]string{diff.Table: "free is 1, we say 2", diff.JSON: `"scheduler": 1`} {
		var out bytes.Buffer
		err := writeDRA(&out, report, nil, format)
		if err == nil || !strings.Contains(err.Error(), "are not the scheduler's") || !strings.Contains(out.String(), want) {
			t.Errorf("%v\n%s", err, out.String())
		}
	}
	report.Mismatches = 0
	if err := writeDRA(io.Discard, report, nil, diff.Table); err != nil {
		t.Errorf("without a mismatch: %v", err)
	}
}
