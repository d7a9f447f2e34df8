// Command gpu-summary-controller keeps a ConfigMap that says how many GPUs are
// requested on each node of a Kubernetes cluster.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"
	"k8s.io/component-base/logs"
	logsapi "k8s.io/component-base/logs/api/v1"

	"github.com/gpu-summary/gpu-summary-controller/internal/run"
	"github.com/gpu-summary/gpu-summary-controller/internal/version"
)

func main() { os.Exit(execute()) }

// execute returns the exit status: 0 when the controller was asked to end and
// did, 1 when it could not do its work.
func execute() int {
	defer logs.FlushLogs()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	// The first signal asks for a clean end; a second one gets the default, an
	// end at once.
	context.AfterFunc(ctx, stop)
	if err := command().ExecuteContext(ctx); err != nil {
		logs.FlushLogs()
		fmt.Fprintf(os.Stderr, "gpu-summary-controller: %v\n", err)
		return exitStatus(err)
	}
	return 0
}

func command() *cobra.Command {
	options, logging := run.DefaultOptions(), logsapi.NewLoggingConfiguration()
	cmd := &cobra.Command{
		Use:   "gpu-summary-controller",
		Short: "Keep one true answer to how many GPUs are requested on which node",
		Long: `gpu-summary-controller watches pods and nodes and keeps the ConfigMap
"gpu-summary": a key for each GPU node, and the number of GPUs requested there
as kube-scheduler counts them. Annotations carry the totals.

In a pod it talks to the cluster it runs in; elsewhere to the current context of
your kubeconfig, writing to that context's namespace.`,
		Example: `  # the current kubeconfig context
  gpu-summary-controller

  # another context, another namespace, a line for each write
  gpu-summary-controller --context prod --namespace monitoring -v=2

  # without permission to see nodes: rows follow the pods alone
  gpu-summary-controller --watch-nodes=false

  # is a permission missing?
  gpu-summary-controller preflight

  # the result
  kubectl get configmap gpu-summary -o yaml`,
		Version:       version.String(),
		Args:          cobra.NoArgs,
		SilenceUsage:  true,
		SilenceErrors: true,
		RunE: func(cmd *cobra.Command, _ []string) error {
			logs.InitLogs()
			if err := logsapi.ValidateAndApply(logging, nil); err != nil {
				return err
			}
			return run.Run(cmd.Context(), options)
		},
	}
	options.AddFlags(cmd.Flags())
	logsapi.AddFlags(logging, cmd.Flags())
	cmd.AddCommand(preflightCommand(run.Preflight))
	return cmd
}
