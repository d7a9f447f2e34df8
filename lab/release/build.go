// Package release builds what users run: static binaries, and container images
// that no registry and no container engine is needed for. The same sources and the
// same Go make the same bytes, wherever and whenever.
package release

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/gpu-summary/gpu-summary-controller/lab/compile"
)

const module = "github.com/gpu-summary/gpu-summary-controller"

// Program is what is built: a folder of cmd.
type Program string

// The programs. Images hold the controller.
const (
	Controller Program = "gpu-summary-controller"
	Plugin     Program = "kubectl-gpu_summary"
)

// file is the name of a program's file of a version, for a platform.
func (p Program) file(version string, on Platform) string {
	return strings.Join([]string{string(p), version, on.OS, on.Arch}, "_")
}

// Platform is an operating system and a processor.
type Platform struct{ OS, Arch string }

func (p Platform) String() string { return p.OS + "/" + p.Arch }

// Platforms are what releases are made for. Images are made of those with Linux.
var Platforms = []Platform{{"linux", "amd64"}, {"linux", "arm64"}, {"darwin", "amd64"}, {"darwin", "arm64"}}

// Source is what is built, and what it is called.
type Source struct {
	Root    string // of the checkout
	Version string
	// Time is that of the sources, not of the build.
	Time time.Time
}

// Build builds a program for a platform.
func (s Source) Build(ctx context.Context, program Program, p Platform, path string) error {
	cmd := compile.Go(ctx, s.Root, "build",
		"-trimpath",       // says not where the checkout is
		"-buildvcs=false", // nor in what state
		"-ldflags=-s -w -X "+module+"/internal/version.version="+s.Version,
		"-o", path, "./cmd/"+string(program))
	// What the user has set would be in the binary too. Empty means set to nothing only
	// where no "go env -w" says otherwise, so GOFLAGS gets what is the default anyway.
	cmd.Env = append(cmd.Env, "CGO_ENABLED=0", "GOOS="+p.OS, "GOARCH="+p.Arch, "GOAMD64=v1", "GOARM64=v8.0", "GOFLAGS=-mod=readonly")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("build %s for %s: %w\n%s", program, p, compile.Explain(err), out)
	}
	return nil
}

// Binary is a program that was built.
type Binary struct {
	Program
	Platform
	Path string
	SBOM []byte
}

// Binaries builds a program for each platform into a folder, and beside each
// writes what it is made of.
func (s Source) Binaries(ctx context.Context, program Program, platforms []Platform, dir string) ([]Binary, error) {
	dir, err := filepath.Abs(dir) // go build runs elsewhere
	if err != nil {
		return nil, fmt.Errorf("find folder: %w", err)
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("make folder: %w", err)
	}
	var built []Binary
	for _, p := range platforms {
		path := filepath.Join(dir, program.file(s.Version, p))
		if err := s.Build(ctx, program, p, path); err != nil {
			return nil, err
		}
		sbom, err := s.sbom(path)
		if err != nil {
			return nil, err
		}
		if err := os.WriteFile(path+".cdx.json", sbom, 0o644); err != nil {
			return nil, fmt.Errorf("write SBOM: %w", err)
		}
		built = append(built, Binary{program, p, path, sbom})
	}
	return built, nil
}
