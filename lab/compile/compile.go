// Package compile builds the lab's larger programs from source when they are
// first needed, and shows how far that is. They are programs of their own because
// of Kubernetes, thousands of packages that "make" need not wait for.
package compile

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"github.com/gpu-summary/gpu-summary-controller/lab/progress"
)

// Job is what to build.
type Job struct {
	Name  string   // as in "build the control plane"
	Of    string   // what it is made of, with versions
	Long  string   // what to expect where very many packages are to be compiled
	Mains []string // commands of the lab's module, as ./cmd/name
	Flags []string // more flags for go build
}

// manyPackages is from where on a build takes long enough to be announced.
const manyPackages = 300

// Into builds the commands into dir, of the module's sources in module. A command
// that is there and made from the same is left as it is, which takes a second or
// two; then nothing is said.
func (j Job) Into(ctx context.Context, module, dir string, out io.Writer) error {
	stale, err := j.stale(ctx, module, out)
	if err != nil {
		return err
	}
	bar := progress.New(nil, 0, "")
	if len(stale) > 0 || j.missing(dir) {
		j.announce(out, len(stale))
	}
	if len(stale) > 0 {
		bar = progress.New(out, len(stale), "packages compiled")
	}
	defer bar.Done()
	args := append([]string{"build", "-v", "-o", dir + string(filepath.Separator)}, j.Flags...)
	last, err := runLines(Go(ctx, module, append(args, j.Mains...)...), func(line string) bool {
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
		return slices.Contains(j.Mains, "./"+strings.TrimPrefix(line, modulePath+"/"))
	})
	if ctx.Err() != nil {
		return fmt.Errorf("build %s: %w", j.Name, context.Cause(ctx))
	}
	if err != nil {
		return fmt.Errorf("build %s: %w\n%s", j.Name, Explain(err), last)
	}
	return nil
}

// missing reports whether a command has never been built into dir.
func (j Job) missing(dir string) bool {
	return slices.ContainsFunc(j.Mains, func(main string) bool { return !isFile(filepath.Join(dir, filepath.Base(main))) })
}

func (j Job) announce(out io.Writer, packages int) {
	switch {
	case packages >= manyPackages:
		fmt.Fprintf(out, "building %s from source: %d packages, %s\n", j.Of, packages, j.Long)
	case packages > 0:
		fmt.Fprintf(out, "building %s, packages to compile: %d\n", j.Of, packages)
	default:
		fmt.Fprintf(out, "linking %s\n", j.Of)
	}
}

// stale asks the go command which packages are not in its cache. It downloads the
// modules if need be.
func (j Job) stale(ctx context.Context, module string, out io.Writer) (map[string]bool, error) {
	// The mains are linked each time; that is no compiling.
	args := append([]string{"list", "-deps", "-f", `{{if and .Stale (ne .Name "main")}}{{.ImportPath}}{{end}}`}, j.Flags...)
	cmd := Go(ctx, module, append(args, j.Mains...)...)
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
		return nil, fmt.Errorf("list packages to build: %w\n%s", Explain(err), last)
	}
	stale := map[string]bool{}
	for name := range strings.FieldsSeq(stdout.String()) {
		stale[name] = true
	}
	return stale, nil
}
