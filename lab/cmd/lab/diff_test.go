package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// helperEnv makes this test program "lab diff" with its arguments.
const helperEnv = "GPU_SUMMARY_LAB_TEST_DIFF"

func TestMain(m *testing.M) {
	if os.Getenv(helperEnv) == "" {
		os.Exit(m.Run())
	}
	cmd := newDiffCommand()
	cmd.SetArgs(os.Args[1:])
	if err := cmd.Execute(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// standIn takes the place of the judge, which takes long to compile.
const standIn = `package main

import (
	"fmt"
	"io"
	"os"
)

func main() {
	in, _ := io.ReadAll(os.Stdin)
	fmt.Printf("%d %q %s", os.Getpid(), os.Args[1:], in)
	fmt.Fprint(os.Stderr, "not the scheduler's")
	os.Exit(7)
}
`

// TestDiffBecomesTheJudge: it is the same process, so that whatever is sent to it
// and whatever it says reaches the right one. It gets all flags, help included.
func TestDiffBecomesTheJudge(t *testing.T) {
	checkout := t.TempDir()
	for name, text := range map[string]string{
		"lab/go.mod":              "module github.com/gpu-summary/gpu-summary-controller/lab\n\ngo 1.26.0\n",
		"lab/cmd/labdiff/main.go": standIn,
	} {
		path := filepath.Join(checkout, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, args := range [][]string{{"--pods", "3", "-o", "json"}, {"--help"}} {
		var stdout, stderr bytes.Buffer
		cmd := exec.Command(os.Args[0], args...)
		cmd.Dir, cmd.Env = checkout, append(os.Environ(), helperEnv+"=1")
		cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader("input"), &stdout, &stderr
		err := cmd.Run()
		var exit *exec.ExitError
		if !errors.As(err, &exit) || exit.ExitCode() != 7 {
			t.Errorf("%q: %v, want exit status 7", args, err)
		}
		if want := fmt.Sprintf("%d %q input", cmd.Process.Pid, args); stdout.String() != want {
			t.Errorf("%q: stdout %q, want %q", args, stdout.String(), want)
		}
		if !strings.HasSuffix(stderr.String(), "not the scheduler's") {
			t.Errorf("%q: stderr %q", args, stderr.String())
		}
	}
}

// TestTheSchedulerIsNotLinked keeps "make" short: whatever the command imports is
// compiled before anything else can begin.
func TestTheSchedulerIsNotLinked(t *testing.T) {
	out, err := exec.Command("go", "list", "-deps", ".").Output()
	if err != nil {
		t.Fatal(err)
	}
	deps := strings.Fields(string(out))
	for _, dep := range deps {
		if strings.HasPrefix(dep, "k8s.io/kubernetes/") || strings.HasPrefix(dep, "k8s.io/kube-scheduler/") {
			t.Errorf("bin/lab contains %s", dep)
		}
	}
	if len(deps) < 100 {
		t.Errorf("only %d packages listed", len(deps))
	}
}
