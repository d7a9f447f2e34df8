package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/gpu-summary/gpu-summary-controller/lab/plane"
)

func newBuildCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "build",
		Short: "Build the programs of the control plane without starting them",
		Long: `Build what "lab up" needs and print where it is. The first time this compiles
Kubernetes ` + plane.KubernetesVersion + ` and KWOK ` + plane.KWOKVersion + ` from source, ` + plane.BuildTime + `;
the result is kept in the user's cache directory. "lab up" does the same when need be: this
command is for doing it beforehand, for example before tests with a time limit.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			built, err := plane.Build(cmd.Context(), cmd.ErrOrStderr())
			if err != nil {
				return err
			}
			fmt.Fprintf(cmd.OutOrStdout(), "%s\n%s\n", built.ControlPlane, built.KWOK)
			return nil
		},
	}
}
