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
	entry, err := controlPlane.build(ctx, progress)
	if err != nil {
		return Binaries{}, err
	}
	return binariesIn(entry), nil
}

func binariesIn(entry string) Binaries {
	return Binaries{ControlPlane: filepath.Join(entry, "controlplane"), KWOK: filepath.Join(entry, "kwok")}
}

// NodeBinaries are the paths of the programs of a real node.
type NodeBinaries struct {
	Kubelet string // and kube-proxy
	Keeper  string // which makes the node's namespaces and clears up after it
	Pause   string // what holds the namespaces of each pod
}

// BuildNode is Build for the programs of a real node.
func BuildNode(ctx context.Context, progress io.Writer) (NodeBinaries, error) {
	entry, err := nodePrograms.build(ctx, progress)
	if err != nil {
		return NodeBinaries{}, err
	}
	return NodeBinaries{
		Kubelet: filepath.Join(entry, "kubelet"),
		Keeper:  filepath.Join(entry, "kubelet-keeper"),
		Pause:   filepath.Join(entry, "kubelet-pause"),
	}, nil
}

// build returns the directory of the programs.
func (p programs) build(ctx context.Context, progress io.Writer) (string, error) {
	if progress == nil {
		progress = io.Discard
	}
	module, err := compile.Module()
	if err != nil {
		return "", err
	}
	key, err := p.key(ctx, module)
	if err != nil {
		return "", err
	}
	cache, err := cacheDir()
	if err != nil {
		return "", err
	}
	entry := filepath.Join(cache, p.prefix+key)
	if p.builtIn(entry) {
		return entry, nil
	}
	return entry, p.buildInto(ctx, cache, entry, module, progress)
}

// buildInto compiles under a lock: of two labs that need the same binaries the
// second waits and then finds them.
func (p programs) buildInto(ctx context.Context, cache, entry, module string, progress io.Writer) error {
	if err := os.MkdirAll(cache, 0o700); err != nil {
		return fmt.Errorf("make cache directory: %w", err)
	}
	lock, err := waitLock(ctx, filepath.Join(cache, "build.lock"), func() {
		fmt.Fprintf(progress, "another lab is building the %s: waiting for it\n", p.job.Name)
	})
	if err != nil {
		return err
	}
	defer lock.Close()
	if p.builtIn(entry) {
		return nil
	}
	temp, err := newBuildDir(cache)
	if err != nil {
		return err
	}
	defer os.RemoveAll(temp)
	if err := p.job.Into(ctx, module, temp, progress); err != nil {
		return err
	}
	// Renamed as a whole, so that an entry is never half there.
	if err := os.Rename(temp, entry); err != nil {
		return fmt.Errorf("store binaries: %w", err)
	}
	p.prune(cache, entry)
	if !p.builtIn(entry) {
		return fmt.Errorf("build %s: no binaries in %s afterwards", p.job.Name, entry)
	}
	return nil
}

// builtIn reports whether all programs are in the directory.
func (p programs) builtIn(entry string) bool {
	for _, main := range p.job.Mains {
		if _, err := os.Stat(filepath.Join(entry, filepath.Base(main))); err != nil {
			return false
		}
	}
	return true
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

// prune removes the other builds of these programs (up to 250 MB each) that
// no running plane holds. It does what it can.
func (p programs) prune(cache, keep string) {
	entries, err := filepath.Glob(filepath.Join(cache, p.prefix+"*"))
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

// Hold keeps the binaries in the cache until the file is closed, which may be nil.
func (b NodeBinaries) Hold() *os.File { return holdEntry(filepath.Dir(b.Kubelet)) }

func (b Binaries) hold() *os.File { return holdEntry(filepath.Dir(b.ControlPlane)) }

// holdEntry takes a share in the binaries' cache entry, so that prune leaves them
// alone as long as a component may be restarted. Binaries from elsewhere have
// no lock, and nobody removes them.
func holdEntry(entry string) *os.File {
	lock, err := os.Open(filepath.Join(entry, lockName))
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
