// Package command is what the lab's programs have in common on a command line.
package command

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"
)

// Run runs a program until it ends by itself, or SIGINT or SIGTERM ends its context, and
// returns its exit status. An error goes to standard error after the program's name.
func Run(name string, root *cobra.Command) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	// From the first signal on the next one ends the program at once, should stopping
	// take too long for someone.
	context.AfterFunc(ctx, stop)
	root.SilenceUsage, root.SilenceErrors = true, true
	if err := root.ExecuteContext(ctx); err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", name, err)
		return 1
	}
	return 0
}
