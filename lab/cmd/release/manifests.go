package main

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/gpu-summary/gpu-summary-controller/lab/install"
)

func newManifestsCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "manifests",
		Short: "Write deploy/manifests: the chart with its default values",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			dir, err := os.MkdirTemp("", "gpu-summary-tools-")
			if err != nil {
				return fmt.Errorf("make folder for helm: %w", err)
			}
			defer os.RemoveAll(dir)
			tools, err := install.Build(cmd.Context(), dir)
			if err != nil {
				return err
			}
			return tools.Write(cmd.Context())
		},
	}
}
