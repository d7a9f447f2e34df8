package plane

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/gpu-summary/gpu-summary-controller/lab/progress"
)

// mains are the commands to build; madeFrom is everything in this module that
// they are made from (all else comes from modules that go.sum pins).
var (
	mains    = []string{"./cmd/controlplane", "./cmd/kwok"}
	madeFrom = []string{"cmd/controlplane/*.go", "cmd/kwok/*.go", "plane/tether/*.go", "go.mod", "go.sum"}
)

// manyPackages is from where on a build takes long enough to be announced.
const manyPackages = 300

// buildKey identifies what a build would give: same key, same binaries.
func buildKey(ctx context.Context, module string) (string, error) {
	hash := sha256.New()
	env, err := goCommand(ctx, module, "env", "GOVERSION", "GOOS", "GOARCH").Output()
	if err != nil {
		return "", fmt.Errorf("run go, which builds the control plane: %w", explain(err))
	}
	fmt.Fprintf(hash, "%s %s %q %s", KubernetesVersion, KWOKVersion, buildFlags(), env)
	for _, pattern := range madeFrom {
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

// compile builds the mains into dir.
func compile(ctx context.Context, module, dir string, out io.Writer) error {
	stale, err := stalePackages(ctx, module, out)
	if err != nil {
		return err
	}
	announce(out, len(stale))
	args := append([]string{"build", "-v", "-o", dir + string(filepath.Separator)}, buildFlags()...)
	cmd := goCommand(ctx, module, append(args, mains...)...)
	bar := progress.New(out, len(stale), "packages compiled")
	if len(stale) == 0 {
		bar = progress.New(nil, 0, "")
	}
	defer bar.Done()
	last, err := runLines(cmd, func(line string) bool {
		// go build -v names a package when its turn to be compiled comes.
		if stale[line] {
			delete(stale, line)
			bar.Add(1)
			if len(stale) == 0 {
				bar.Done()
				fmt.Fprintln(out, "linking")
			}
			return true
		}
		return slices.Contains(mains, "./"+strings.TrimPrefix(line, modulePath+"/"))
	})
	if ctx.Err() != nil {
		return fmt.Errorf("build control plane: %w", context.Cause(ctx))
	}
	if err != nil {
		return fmt.Errorf("build control plane: %w\n%s", explain(err), last)
	}
	return nil
}

func announce(out io.Writer, packages int) {
	what := fmt.Sprintf("Kubernetes %s and KWOK %s", KubernetesVersion, KWOKVersion)
	switch {
	case packages >= manyPackages:
		fmt.Fprintf(out, "building %s from source: %d packages, about 12 minutes on two cores; once built, a start takes seconds\n",
			what, packages)
	case packages > 0:
		fmt.Fprintf(out, "building %s: %d packages\n", what, packages)
	default:
		fmt.Fprintf(out, "linking %s\n", what)
	}
}

// stalePackages asks the go command which packages are not in its cache. It
// downloads the modules if need be.
func stalePackages(ctx context.Context, module string, out io.Writer) (map[string]bool, error) {
	args := append([]string{"list", "-deps", "-f", "{{if .Stale}}{{.ImportPath}}{{end}}"}, buildFlags()...)
	cmd := goCommand(ctx, module, append(args, mains...)...)
	var stdout bytes.Buffer
	cmd.Stdout = &stdout
	told := false
	last, err := runLines(cmd, func(line string) bool {
		if !strings.HasPrefix(line, "go: downloading ") {
			return false
		}
		if !told {
			fmt.Fprintln(out, "downloading Go modules")
			told = true
		}
		return true
	})
	if ctx.Err() != nil {
		return nil, fmt.Errorf("list packages to build: %w", context.Cause(ctx))
	}
	if err != nil {
		return nil, fmt.Errorf("list packages to build: %w\n%s", explain(err), last)
	}
	stale := map[string]bool{}
	for name := range strings.FieldsSeq(stdout.String()) {
		// The mains are linked each time; that is no compiling.
		if !strings.HasPrefix(name, modulePath+"/cmd/") {
			stale[name] = true
		}
	}
	return stale, nil
}

func goCommand(ctx context.Context, module string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = module
	// A workspace around the checkout would bring in other versions.
	cmd.Env = append(os.Environ(), "GOWORK=off")
	// Interrupted, go ends its compilers; killed, it would leave them.
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = 10 * time.Second
	return cmd
}

// runLines runs cmd and hands take each line of its standard error. It returns
// the last of those that take did not want: what the compiler complained about.
func runLines(cmd *exec.Cmd, take func(string) bool) (last string, err error) {
	stderr, err := cmd.StderrPipe()
	if err != nil {
		return "", err
	}
	if err := cmd.Start(); err != nil {
		return "", err
	}
	var lines []string
	scanner := bufio.NewScanner(stderr)
	scanner.Buffer(nil, 1<<20)
	for scanner.Scan() {
		if line := scanner.Text(); !take(line) {
			lines = append(lines, line)
			lines = lines[max(0, len(lines)-30):]
		}
	}
	err = errors.Join(scanner.Err(), cmd.Wait())
	return strings.Join(lines, "\n"), err
}

// explain adds what to do when there is no go command, and what it wrote.
func explain(err error) error {
	if errors.Is(err, exec.ErrNotFound) {
		return fmt.Errorf("%w: install Go from https://go.dev/dl", err)
	}
	var exit *exec.ExitError
	if errors.As(err, &exit) && len(exit.Stderr) > 0 {
		return fmt.Errorf("%w: %s", err, bytes.TrimSpace(exit.Stderr))
	}
	return err
}
