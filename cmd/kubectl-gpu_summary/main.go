// Command kubectl-gpu_summary is the kubectl plugin "kubectl gpu-summary": how many
// GPUs are requested, free and waited for.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/gpu-summary/gpu-summary-controller/internal/plugin"
)

func main() { os.Exit(execute()) }

func execute() int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	// The first signal asks for a clean end; a second one gets the default, an end at
	// once.
	context.AfterFunc(ctx, stop)
	command := plugin.New(genericiooptions.IOStreams{In: os.Stdin, Out: os.Stdout, ErrOut: os.Stderr})
	command.SetArgs(plugin.Args(os.Args[0], os.Args[1:]))
	status, message := plugin.Status(command.ExecuteContext(ctx))
	if message != "" {
		fmt.Fprintf(os.Stderr, "error: %s\n", message)
	}
	return status
}
