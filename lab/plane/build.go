package plane

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"syscall"

	"github.com/gpu-summary/gpu-summary-controller/lab/compile"
)

// Binaries are the paths of the two programs a plane consists of.
type Binaries struct {
	ControlPlane string // etcd and the Kubernetes components
	KWOK         string
}

// Build returns the binaries, which it compiles the first time: that takes
// minutes and is shown on progress (nil is silent). They are kept in the user's
// cache directory, once for all checkouts that would build the same.
func Build(ctx context.Context, progress io.Writer) (Binaries, error) {
	if progress == nil {
		progress = io.Discard
	}
	module, err := compile.Module()
	if err != nil {
		return Binaries{}, err
	}
	key, err := buildKey(ctx, module)
	if err != nil {
		return Binaries{}, err
	}
	cache, err := cacheDir()
	if err != nil {
		return Binaries{}, err
	}
	entry := filepath.Join(cache, KubernetesVersion+"-"+key)
	if built, ok := lookUp(entry); ok {
		return built, nil
	}
	return buildInto(ctx, cache, entry, module, progress)
}

// buildInto compiles under a lock: of two labs that need the same binaries the
// second waits and then finds them.
func buildInto(ctx context.Context, cache, entry, module string, progress io.Writer) (Binaries, error) {
	if err := os.MkdirAll(cache, 0o700); err != nil {
		return Binaries{}, fmt.Errorf("make cache directory: %w", err)
	}
	lock, err := waitLock(ctx, filepath.Join(cache, "build.lock"), func() {
		fmt.Fprintln(progress, "another lab is building the control plane: waiting for it")
	})
	if err != nil {
		return Binaries{}, err
	}
	defer lock.Close()
	if built, ok := lookUp(entry); ok {
		return built, nil
	}
	temp, err := newBuildDir(cache)
	if err != nil {
		return Binaries{}, err
	}
	defer os.RemoveAll(temp)
	if err := controlPlane.Into(ctx, module, temp, progress); err != nil {
		return Binaries{}, err
	}
	// Renamed as a whole, so that an entry is never half there.
	if err := os.Rename(temp, entry); err != nil {
		return Binaries{}, fmt.Errorf("store binaries: %w", err)
	}
	prune(cache, entry)
	built, ok := lookUp(entry)
	if !ok {
		return Binaries{}, fmt.Errorf("build control plane: no binaries in %s afterwards", entry)
	}
	return built, nil
}

const buildPrefix = ".build-"

// newBuildDir makes a directory for the compiler's output, with the lock file
// that users of the binaries will hold. The caller has the build lock, so any
// older such directory is from a build that was killed.
func newBuildDir(cache string) (string, error) {
	old, err := filepath.Glob(filepath.Join(cache, buildPrefix+"*"))
	if err != nil {
		return "", fmt.Errorf("look for abandoned builds: %w", err)
	}
	for _, dir := range old {
		if err := os.RemoveAll(dir); err != nil {
			return "", fmt.Errorf("remove abandoned build: %w", err)
		}
	}
	temp, err := os.MkdirTemp(cache, buildPrefix)
	if err != nil {
		return "", fmt.Errorf("make build directory: %w", err)
	}
	return temp, writeSecret(filepath.Join(temp, lockName), nil)
}

func lookUp(entry string) (Binaries, bool) {
	b := Binaries{
		ControlPlane: filepath.Join(entry, "controlplane"),
		KWOK:         filepath.Join(entry, "kwok"),
	}
	for _, path := range []string{b.ControlPlane, b.KWOK} {
		if _, err := os.Stat(path); err != nil {
			return Binaries{}, false
		}
	}
	return b, true
}

// prune removes the other builds of this Kubernetes version (250 MB each) that
// no running plane holds. It does what it can.
func prune(cache, keep string) {
	entries, err := filepath.Glob(filepath.Join(cache, KubernetesVersion+"-*"))
	if err != nil {
		return
	}
	for _, entry := range entries {
		if entry == keep {
			continue
		}
		lock, err := lockFile(filepath.Join(entry, lockName), syscall.LOCK_EX)
		if err != nil {
			continue
		}
		_ = os.RemoveAll(entry)
		_ = lock.Close()
	}
}

// hold takes a share in the binaries' cache entry, so that prune leaves them
// alone as long as a component may be restarted. Binaries from elsewhere have
// no lock, and nobody removes them.
func (b Binaries) hold() *os.File {
	lock, err := os.Open(filepath.Join(filepath.Dir(b.ControlPlane), lockName))
	if err != nil {
		return nil
	}
	if err := tryLock(lock, syscall.LOCK_SH); err != nil {
		_ = lock.Close()
		return nil
	}
	return lock
}

func cacheDir() (string, error) {
	dir, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("find cache directory: %w", err)
	}
	return filepath.Join(dir, "gpu-summary-lab"), nil
}
