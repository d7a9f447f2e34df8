// Command gpudriver plays the GPU driver of a node that has no GPU: the kubelet is
// offered devices, and pods that get one find its UUID in their environment.
// While it runs, other calls of it command it.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/gpu-summary/gpu-summary-controller/lab/gpudriver"
)

func main() {
	os.Exit(run())
}

func run() int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop)
	if filepath.Base(os.Args[0]) == gpudriver.RuntimeName {
		return runtime(ctx)
	}
	if err := newCommand().ExecuteContext(ctx); err != nil {
		fmt.Fprintf(os.Stderr, "gpudriver: %v\n", err)
		return 1
	}
	return 0
}

// runtime is what the program is for a containerd without CDI, under another name.
func runtime(ctx context.Context) int {
	r, err := gpudriver.NewRuntime()
	if err == nil {
		err = r.Exec(ctx, os.Args[1:])
	}
	fmt.Fprintf(os.Stderr, "gpudriver as %s: %v\n", gpudriver.RuntimeName, err)
	return 1
}

// place is where the driver is to be found.
type place struct{ kubeletDir, control string }

func (p *place) socket() string {
	if p.control != "" {
		return p.control
	}
	return filepath.Join(p.kubeletDir, "gpudriver.sock")
}

func newCommand() *cobra.Command {
	var p place
	cmd := &cobra.Command{
		Use:           "gpudriver",
		Short:         "A stand-in for a node's GPU driver",
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	cmd.PersistentFlags().StringVar(&p.kubeletDir, "kubelet-dir", "/var/lib/kubelet", "root directory of the kubelet")
	cmd.PersistentFlags().StringVar(&p.control, "control", "", "socket for commands (default gpudriver.sock in the kubelet's directory)")
	cmd.AddCommand(newRunCommand(&p), newDevicesCommand(&p), newHealthCommand(&p), newUseCommand(&p))
	cmd.AddCommand(newPlainCommands(&p)...)
	return cmd
}
