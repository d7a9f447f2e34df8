// Command kwok plays the kubelets of all nodes. It is a binary of its own
// because KWOK's packages register a "version" flag for the whole process,
// which the Kubernetes commands do not survive.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/pflag"
	"sigs.k8s.io/kwok/pkg/config"
	"sigs.k8s.io/kwok/pkg/kwok/cmd"
	"sigs.k8s.io/kwok/pkg/log"

	"github.com/gpu-summary/gpu-summary-controller/lab/plane/tether"
)

func main() {
	tether.Hold()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx)
	stop()
	if err != nil {
		fmt.Fprintf(os.Stderr, "kwok: %v\n", err)
		os.Exit(1)
	}
}

// run reads the command line twice: --config and -v are needed to build the
// command (its defaults come from the configuration), all others by the
// command itself.
func run(ctx context.Context) error {
	early := pflag.NewFlagSet("kwok", pflag.ContinueOnError)
	early.ParseErrorsAllowlist.UnknownFlags = true
	early.Usage = func() {}

	ctx, _ = log.InitFlags(ctx, early)
	ctx, err := config.InitFlags(ctx, early)
	if err != nil {
		return fmt.Errorf("read configuration: %w", err)
	}
	command := cmd.NewCommand(ctx)
	command.PersistentFlags().AddFlagSet(early)
	return command.ExecuteContext(ctx)
}
