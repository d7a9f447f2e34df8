package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/gpu-summary/gpu-summary-controller/lab/compile"
	"github.com/gpu-summary/gpu-summary-controller/lab/release"
)

func newBuildCommand() *cobra.Command {
	var version, dir string
	var imageOnly bool
	var only []string
	cmd := &cobra.Command{
		Use:   "build",
		Short: "Build binaries for all platforms, a container image, a krew manifest, SBOMs and checksums",
		Long: `Build binaries of the controller and of the kubectl plugin for all platforms, a container
image for those with Linux as an OCI image layout and as a file, archives and a manifest for
krew, an SBOM of each binary, and checksums. The same sources and the same Go make the same
bytes. Times in them are that of the commit, or of SOURCE_DATE_EPOCH.`,
		Example: `  # everything there is, in dist
  release build --version v1.2.3

  # an image for machines of one kind
  release build --image-only --platform linux/arm64`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			platforms, err := choose(only, imageOnly)
			if err != nil {
				return err
			}
			source, err := newSource(cmd.Context(), version)
			if err != nil {
				return err
			}
			return build(cmd.Context(), source, platforms, dir, imageOnly, cmd.OutOrStdout())
		},
	}
	cmd.Flags().StringVar(&version, "version", "v0.0.0-unknown", "what the build calls itself, and the tag of the image")
	cmd.Flags().StringVar(&dir, "dir", "dist", "folder for what is built; what an earlier build left there is removed")
	cmd.Flags().BoolVar(&imageOnly, "image-only", false, "build only what the image needs")
	cmd.Flags().StringSliceVar(&only, "platform", nil, "build for OS/ARCH only (repeatable; default all)")
	return cmd
}

func newSource(ctx context.Context, version string) (release.Source, error) {
	lab, err := compile.Module()
	if err != nil {
		return release.Source{}, err
	}
	root := filepath.Dir(lab)
	epoch := os.Getenv("SOURCE_DATE_EPOCH")
	if epoch == "" {
		git := exec.CommandContext(ctx, "git", "log", "-1", "--format=%ct")
		git.Dir = root
		out, err := git.Output()
		if err != nil {
			return release.Source{}, fmt.Errorf("ask git when the commit was made (SOURCE_DATE_EPOCH would say): %w", err)
		}
		epoch = strings.TrimSpace(string(out))
	}
	seconds, err := strconv.ParseInt(epoch, 10, 64)
	if err != nil {
		return release.Source{}, fmt.Errorf("read the time of the sources: %w", err)
	}
	return release.Source{Root: root, Version: version, Time: time.Unix(seconds, 0)}, nil
}

// choose returns the platforms of these names, or all; for an image those with Linux.
func choose(names []string, imageOnly bool) ([]release.Platform, error) {
	all := release.Platforms
	if imageOnly {
		all = linux(all)
	}
	if len(names) == 0 {
		return all, nil
	}
	var chosen []release.Platform
	for _, name := range names {
		at := slices.IndexFunc(all, func(p release.Platform) bool { return p.String() == name })
		if at < 0 {
			return nil, fmt.Errorf("--platform %s is none of %v", name, all)
		}
		chosen = append(chosen, all[at])
	}
	return chosen, nil
}

func build(ctx context.Context, source release.Source, platforms []release.Platform, dir string, imageOnly bool, out io.Writer) error {
	if err := empty(dir); err != nil {
		return err
	}
	fmt.Fprintf(out, "building %s %s for %v\n", release.Controller, source.Version, platforms)
	binaries, err := source.Binaries(ctx, release.Controller, platforms, dir)
	if err != nil {
		return err
	}
	if !imageOnly {
		fmt.Fprintf(out, "building %s %s for %v\n", release.Plugin, source.Version, platforms)
		if err := plugin(ctx, source, platforms, dir); err != nil {
			return err
		}
	}
	images := slices.DeleteFunc(slices.Clone(binaries), func(b release.Binary) bool { return b.OS != "linux" })
	if len(images) > 0 {
		if err := image(source, images, dir, out); err != nil {
			return err
		}
	}
	return release.Sums(dir)
}

// image makes the image of these binaries, as a layout and as a file.
func image(source release.Source, binaries []release.Binary, dir string, out io.Writer) error {
	layout := filepath.Join(dir, "image")
	digest, err := source.Image(binaries, layout)
	if err != nil {
		return err
	}
	archive := filepath.Join(dir, strings.Join([]string{string(release.Controller), source.Version, "image.tar"}, "_"))
	if err := release.Tar(layout, archive); err != nil {
		return err
	}
	fmt.Fprintf(out, "image oci:%s:%s\nalso as %s\ndigest %s\n", layout, source.Version, archive, digest)
	return nil
}

func plugin(ctx context.Context, source release.Source, platforms []release.Platform, dir string) error {
	binaries, err := source.Binaries(ctx, release.Plugin, platforms, dir)
	if err != nil {
		return err
	}
	return source.Krew(binaries, dir)
}

// empty clears the folder: what an earlier version left would get a checksum too.
func empty(dir string) error {
	var names []string
	for _, program := range []release.Program{release.Controller, release.Plugin} {
		found, err := filepath.Glob(filepath.Join(dir, string(program)+"_*"))
		if err != nil {
			return fmt.Errorf("list folder: %w", err)
		}
		names = append(names, found...)
	}
	for _, name := range append(names, filepath.Join(dir, release.KrewManifest), filepath.Join(dir, "SHA256SUMS")) {
		if err := os.RemoveAll(name); err != nil {
			return fmt.Errorf("remove what was built before: %w", err)
		}
	}
	return nil
}

func linux(platforms []release.Platform) []release.Platform {
	return slices.DeleteFunc(slices.Clone(platforms), func(p release.Platform) bool { return p.OS != "linux" })
}
