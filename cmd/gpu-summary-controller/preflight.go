package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"
	"k8s.io/component-base/logs"
	logsapi "k8s.io/component-base/logs/api/v1"

	"github.com/gpu-summary/gpu-summary-controller/internal/preflight"
	"github.com/gpu-summary/gpu-summary-controller/internal/run"
)

// asker asks the API server for what the options need, as another user unless as is "".
type asker func(ctx context.Context, o *run.Options, as string) (preflight.Report, error)

func preflightCommand(ask asker) *cobra.Command {
	options, logging := run.DefaultOptions(), logsapi.NewLoggingConfiguration()
	var as, output string
	cmd := &cobra.Command{
		Use:   "preflight",
		Short: "Ask the API server which permissions are missing",
		Long: `Preflight asks the API server, verb by verb, for the permissions that the controller
needs with these flags, and prints a table: what is missing first, then the rules to
add. It takes all flags of the controller, so that those of a deployment can be given
as they are. It changes nothing, and everybody may ask this about themselves.

Exit status: 0 if nothing required is missing, 1 if something is, 2 if the API server
could not be asked.`,
		Example: `  # may I run it in the current kubeconfig context?
  gpu-summary-controller preflight

  # may the service account of the manifests? (takes the right to impersonate)
  gpu-summary-controller preflight --namespace gpu-summary \
    --as system:serviceaccount:gpu-summary:gpu-summary-controller

  # is less needed without nodes, and for one namespace?
  gpu-summary-controller preflight --watch-nodes=false --watch-namespace training

  # grant what is missing
  gpu-summary-controller preflight --context prod-viewer -o yaml | kubectl --context prod-admin apply -f -

  # for a script
  gpu-summary-controller preflight -o json | jq '.permissions[] | select(.allowed | not)'`,
		Args: func(cmd *cobra.Command, args []string) error {
			return withStatus(2, cobra.NoArgs(cmd, args))
		},
		SilenceUsage:  true,
		SilenceErrors: true,
		RunE: func(cmd *cobra.Command, _ []string) error {
			format := preflight.Format(output)
			if err := format.Check(); err != nil {
				return withStatus(2, err)
			}
			logs.InitLogs()
			if err := logsapi.ValidateAndApply(logging, nil); err != nil {
				return withStatus(2, err)
			}
			report, err := ask(cmd.Context(), options, as)
			if err != nil {
				return withStatus(2, err)
			}
			if err := report.Write(cmd.OutOrStdout(), format); err != nil {
				return withStatus(2, err)
			}
			if required, _ := report.Missing(); required > 0 {
				return withStatus(1, fmt.Errorf("required permissions that are missing: %d", required))
			}
			return nil
		},
	}
	cmd.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return withStatus(2, err) })
	options.AddFlags(cmd.Flags())
	logsapi.AddFlags(logging, cmd.Flags())
	cmd.Flags().StringVar(&as, "as", "", "ask for the permissions of this `user` instead")
	cmd.Flags().StringVarP(&output, "output", "o", string(preflight.Table), "`format`: table; json; or yaml, roles and bindings that grant what is missing")
	return cmd
}

// statusError is an error that decides the exit status.
type statusError struct {
	error
	status int
}

func (e statusError) Unwrap() error { return e.error }

func withStatus(status int, err error) error {
	if err == nil {
		return nil
	}
	return statusError{err, status}
}

// exitStatus is 1 for an error that does not say otherwise.
func exitStatus(err error) int {
	var e statusError
	if errors.As(err, &e) {
		return e.status
	}
	return 1
}
