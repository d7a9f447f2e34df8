package realnode

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"time"
)

const (
	// snapshotter of containerd, for containers and for what ctr unpacks.
	snapshotter = "native"
	// imageNamespace is where containerd keeps the images of pods.
	imageNamespace = "k8s.io"
	// knownLabel is on the images that containerd offers to the kubelet.
	knownLabel  = "io.cri-containerd.image=managed"
	loadTimeout = time.Minute
)

// LoadImage loads the images of an archive, as docker or an OCI tool saves them. When it
// returns, pods can use them, with imagePullPolicy: Never or IfNotPresent.
func (n *Node) LoadImage(ctx context.Context, path string) error {
	archive, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("load image: %w", err)
	}
	defer archive.Close()
	return n.loadImage(ctx, archive)
}

// LoadProgram loads an image of one static program.
func (n *Node) LoadProgram(ctx context.Context, reference, program string) error {
	var archive bytes.Buffer
	if err := WriteImage(&archive, reference, program); err != nil {
		return err
	}
	return n.loadImage(ctx, &archive)
}

func (n *Node) loadPause(ctx context.Context) error {
	return n.LoadProgram(ctx, pauseImage, n.options.Binaries.Pause)
}

func (n *Node) loadImage(ctx context.Context, archive io.Reader) error {
	ctx, cancel := context.WithTimeoutCause(ctx, loadTimeout, fmt.Errorf("not done within %s", loadTimeout))
	defer cancel()
	if err := n.ctr(ctx, archive, nil, "images", "import", "--snapshotter", snapshotter, "-"); err != nil {
		return fmt.Errorf("load image: %w", err)
	}
	// What offers images to the kubelet hears of them a moment later.
	ticker := time.NewTicker(pollInterval)
	defer ticker.Stop()
	for {
		var all, known bytes.Buffer
		err := errors.Join(
			n.ctr(ctx, nil, &known, "images", "list", "--quiet", `labels."`+strings.Replace(knownLabel, "=", `"==`, 1)),
			n.ctr(ctx, nil, &all, "images", "list", "--quiet"),
		)
		if err == nil && all.String() == known.String() {
			return nil
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return fmt.Errorf("wait for the image to be known to containerd: %w", errors.Join(context.Cause(ctx), err))
		}
	}
}

// ctr runs containerd's own client inside.
func (n *Node) ctr(ctx context.Context, stdin io.Reader, stdout *bytes.Buffer, args ...string) error {
	cmd := exec.CommandContext(ctx, "ctr", append([]string{"--address", containerdSocket, "--namespace", imageNamespace}, args...)...)
	var stderr bytes.Buffer
	cmd.Stdin, cmd.Stderr = stdin, &stderr
	if stdout != nil {
		cmd.Stdout = stdout
	}
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "TMPDIR=/run/tmp"}
	if err := n.inside.start(cmd); err != nil {
		return fmt.Errorf("start ctr: %w", err)
	}
	if err := cmd.Wait(); err != nil {
		return fmt.Errorf("ctr %s: %w: %s", args[0], err, bytes.TrimSpace(stderr.Bytes()))
	}
	return nil
}
