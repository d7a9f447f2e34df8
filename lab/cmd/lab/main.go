// Command lab runs a real Kubernetes control plane on this machine, fills it
// with real clusters, and shows the controller at work on it.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"
)

func main() {
	os.Exit(run())
}

func run() int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	// From the first signal on the next one ends the command at once, should
	// stopping take too long for someone; the components end with it.
	context.AfterFunc(ctx, stop)
	root := &cobra.Command{
		Use:           "lab",
		Short:         "A real Kubernetes control plane to run the GPU summary controller on",
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	root.AddCommand(newUpCommand(), newBuildCommand(), newDemoCommand(), newLoadCommand(), newDiffCommand(), newBenchCommand())
	if err := root.ExecuteContext(ctx); err != nil {
		fmt.Fprintf(os.Stderr, "lab: %v\n", err)
		return 1
	}
	return 0
}
