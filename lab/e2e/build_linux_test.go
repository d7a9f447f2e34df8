package e2e

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/gpu-summary/gpu-summary-controller/lab/compile"
	"github.com/gpu-summary/gpu-summary-controller/lab/install"
)

// build builds helm, kubectl, the test program, and the controller's image under two
// versions.
func build(ctx context.Context) error {
	module, err := compile.Module()
	if err != nil {
		return err
	}
	if lab.tools, err = install.Build(ctx, lab.dir); err != nil {
		return err
	}
	step("helm and kubectl are built")
	cmd := compile.Go(ctx, module, "build", "-ldflags=-s -w", "-o", filepath.Join(lab.dir, "testprogram"), "./e2e/testprogram")
	cmd.Env = append(cmd.Env, "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("build test program: %w\n%s", err, out)
	}
	for _, version := range []string{tag, olderTag} {
		archive, err := makeImage(ctx, version)
		if err != nil {
			return err
		}
		lab.images = append(lab.images, archive)
	}
	step("images are built")
	return nil
}

// makeImage does what "make image" does, with the output in a folder of the lab's and
// not over what the user has in dist, and returns the image's archive. What that is,
// make says; of a flag that is given twice the later one counts. For other processors
// there is nothing to build here.
func makeImage(ctx context.Context, version string) (archive string, err error) {
	recipe, err := runMake(ctx, "--dry-run", "image", "VERSION="+version)
	if err != nil {
		return "", err
	}
	dir := filepath.Join(lab.dir, "image-"+version)
	cmd := exec.CommandContext(ctx, "sh", "-ec", strings.TrimSpace(recipe)+" --dir '"+dir+"' --platform linux/"+runtime.GOARCH)
	cmd.Dir = lab.tools.Root
	// The time of the sources is not that of a commit, which would make other images of
	// the same sources. A workspace around the checkout would bring in other versions.
	cmd.Env = append(os.Environ(), "SOURCE_DATE_EPOCH=0", "GOWORK=off")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("make image: %w\n%s\n%s", err, recipe, out)
	}
	found, err := filepath.Glob(filepath.Join(dir, "*_image.tar"))
	if err == nil && len(found) != 1 {
		err = fmt.Errorf("make image: it has made %q, want one archive; it is\n%s", found, recipe)
	}
	return strings.Join(found, ""), err
}

// runMake runs make as a user would, whatever make has started this test.
func runMake(ctx context.Context, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "make", append([]string{"--no-print-directory"}, args...)...)
	cmd.Dir = lab.tools.Root
	cmd.Env = slices.DeleteFunc(os.Environ(), func(v string) bool {
		name, _, _ := strings.Cut(v, "=")
		return slices.Contains([]string{"MAKEFLAGS", "MFLAGS", "MAKELEVEL", "VERSION"}, name)
	})
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("make %s: %w\n%s", strings.Join(args, " "), err, stderr.Bytes())
	}
	return stdout.String(), nil
}
