package plugin

import (
	"bytes"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/kubernetes"
)

var update = flag.Bool("update", false, "write the golden files anew")

const world = "testdata/world.yaml"

var (
	noon          = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	subcommands   = []string{"nodes", "pods", "namespaces", "models", "pending", "claims", "describe"}
	errNoneNeeded = errors.New("no cluster is needed")
)

// argumentsOf are what a subcommand needs.
func argumentsOf(subcommand string) []string {
	if subcommand == "describe" {
		return []string{"describe", "node-x", "node-d", "node-gone", "node-cpu"}
	}
	return []string{subcommand}
}

// outcome is what a process would leave behind.
type outcome struct {
	out, err string // of its streams
	status   int
}

// stand replaces what a test has not got: a clock, a cluster, a screen.
type stand struct {
	cluster kubernetes.Interface
	screen  screen
	in      string
}

func (s stand) common() (c *common, out, errOut *bytes.Buffer) {
	out, errOut = &bytes.Buffer{}, &bytes.Buffer{}
	c = newCommon(genericiooptions.IOStreams{In: strings.NewReader(s.in), Out: out, ErrOut: errOut})
	c.now = func() time.Time { return noon }
	c.screen = func() screen { return s.screen }
	c.connect = func() (kubernetes.Interface, error) {
		if s.cluster == nil {
			return nil, errNoneNeeded
		}
		return s.cluster, nil
	}
	return c, out, errOut
}

// run executes the command as main does.
func (s stand) run(t *testing.T, args ...string) outcome {
	t.Helper()
	t.Setenv("KUBECONFIG", filepath.Join(t.TempDir(), "none"))
	c, out, errOut := s.common()
	command := c.command()
	command.SetArgs(append([]string{}, args...))
	status, message := Status(command.ExecuteContext(t.Context()))
	if message != "" {
		errOut.WriteString("error: " + message + "\n")
	}
	return outcome{out.String(), errOut.String(), status}
}

// TestGolden is every subcommand in every format, from a file: a model of MIG, an
// overcommitted node, one that is not ready, one that is cordoned and tainted, DRA, pods
// of a node that is gone, and all reasons to wait.
func TestGolden(t *testing.T) {
	for _, subcommand := range subcommands {
		t.Run(subcommand, func(t *testing.T) {
			var all strings.Builder
			for _, f := range append([]string{""}, formats...) {
				args := argumentsOf(subcommand)
				if f != "" {
					args = append(args, "-o", f)
				}
				got := stand{}.run(t, append(args, "--from", world)...)
				if got.status != 0 {
					t.Fatalf("%v ends with status %d:\n%s", args, got.status, got.err)
				}
				all.WriteString("$ " + display + " " + strings.Join(args, " ") + "\n" + got.out)
				if f == "" && got.err != "" {
					all.WriteString("standard error:\n" + got.err)
				}
				all.WriteString("\n")
			}
			golden(t, filepath.Join("testdata", subcommand+".golden"), all.String())
		})
	}
}

// golden compares with a file.
func golden(t *testing.T, path, got string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(strings.Split(string(want), "\n"), strings.Split(got, "\n")); diff != "" {
		t.Errorf("not what %s has (-want +got; -update writes it anew):\n%s", path, diff)
	}
}

// TestWithoutASubcommand it shows nodes, with their flags.
func TestWithoutASubcommand(t *testing.T) {
	want := stand{}.run(t, "nodes", "--from", world, "--sort-by", "free", "-l", "pool=training")
	if got := (stand{}).run(t, "--from", world, "--sort-by", "free", "-l", "pool=training"); got != want || got.out == "" {
		t.Errorf("without a subcommand: %+v\nnodes: %+v", got, want)
	}
}

// TestExitStatus is what scripts look at.
func TestExitStatus(t *testing.T) {
	for name, tc := range map[string]struct {
		args   []string
		in     string
		status int
		said   string
	}{
		"all is well":        {[]string{"--from", world}, "", 0, ""},
		"standard input":     {[]string{"--from", "-"}, `{"kind":"Node","apiVersion":"v1","metadata":{"name":"n"}}`, 0, "no GPUs found"},
		"no such file":       {[]string{"--from", "testdata/none"}, "", 1, "--from: open testdata/none"},
		"empty input":        {[]string{"--from", "-"}, "", 1, "standard input"},
		"broken input":       {[]string{"--from", "-"}, `{"kind":"Node","apiVersion":"v1","metadata":{"name":`, 1, "standard input"},
		"unknown subcommand": {[]string{"nods"}, "", 1, `unknown command "nods"`},
		"unknown flag":       {[]string{"--bogus"}, "", 1, "unknown flag: --bogus"},
		"argument":           {[]string{"pods", "x"}, "", 1, "x"},
		"format":             {[]string{"-o", "xml"}, "", 1, "want one of wide, json, yaml, csv, name"},
		"sort":               {[]string{"--from", world, "--sort-by", "colour"}, "", 1, "want one of node, model,"},
		"model":              {[]string{"--from", world, "--model", "H200"}, "", 1, "there are: NVIDIA B200, NVIDIA-A100-SXM4-40GB, NVIDIA-H100-80GB-HBM3"},
		"selector":           {[]string{"--from", world, "-l", "a=b=c"}, "", 1, "--selector=a=b=c"},
		"resource":           {[]string{"--from", world, "--gpu-resource", "gpu"}, "", 1, `--gpu-resource: GPU resource "gpu": want domain/name`},
		"class":              {[]string{"--from", world, "--dra-class", "x=y/z"}, "", 1, "--gpu-resource=y/z would make it one"},
		"watching a dump":    {[]string{"--from", world, "--watch"}, "", 1, "a dump does not change"},
		"hurry":              {[]string{"--watch", "--interval", "1ms"}, "", 1, "must be at least 1s"},
		"two sources":        {[]string{"--from", world, "--from-configmap"}, "", 1, "from-configmap"},
		"no node named":      {[]string{"describe", "--from", world}, "", 1, "name nodes"},
		"no such node":       {[]string{"describe", "node-z", "--from", world}, "", 1, `node "node-z" does not exist; nodes with GPUs are: node-a, node-b`},
		"pods unpublished":   {[]string{"pods", "--from-configmap"}, "", 1, "leave out --from-configmap"},
		"no cluster":         {nil, "", 1, errNoneNeeded.Error()},
	} {
		t.Run(name, func(t *testing.T) {
			got := stand{in: tc.in}.run(t, tc.args...)
			if got.status != tc.status || !strings.Contains(got.err, tc.said) {
				t.Errorf("status %d, want %d, with %q:\n%s", got.status, tc.status, tc.said, got.err)
			}
			if tc.status != 0 && got.out != "" {
				t.Errorf("it fails, and prints:\n%s", got.out)
			}
		})
	}
}

// TestStatus: an answer that is no says nothing, and there is a status all the same.
func TestStatus(t *testing.T) {
	failed := errors.New("failed")
	for name, tc := range map[string]struct {
		err     error
		code    int
		message string
	}{
		"none":     {nil, 0, ""},
		"any":      {failed, 1, "failed"},
		"no":       {withStatus(1, nil), 1, ""},
		"of two":   {withStatus(2, failed), 2, "failed"},
		"hostile":  {errors.New("a\x1b[31m\u009bb\nc\x07"), 1, "a[31mb\nc"},
		"no place": {errors.Join(failed, failed), 1, "failed\nfailed"},
	} {
		if code, message := Status(tc.err); code != tc.code || message != tc.message {
			t.Errorf("%s: %d %q, want %d %q", name, code, message, tc.code, tc.message)
		}
	}
}
