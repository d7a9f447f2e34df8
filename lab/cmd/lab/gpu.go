package main

import (
	"os"

	"github.com/spf13/cobra"

	"github.com/gpu-summary/gpu-summary-controller/lab/compile"
)

// driver is the program that "lab gpu" runs.
var driver = compile.Job{
	Name:  "gpudriver",
	Of:    "the stand-in GPU driver",
	Long:  "which takes a minute",
	Mains: []string{"./cmd/gpudriver"},
	Flags: []string{"-buildvcs=false", "-ldflags=-s -w"},
}

func newGPUCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "gpu [arguments]",
		Short: "Give a real node GPUs that do not exist, and command them",
		Long: `Gpu runs the stand-in GPU driver, which is built the first time: a device plugin, or a
DRA driver, for the kubelet of a real node. Pods that get a device find its id in their
environment. While "lab gpu run" runs, other calls make devices unhealthy and healthy,
and have the driver restart, vanish and return. "lab up --real-node" prints the
directory of its kubelet; "lab gpu --help" says everything about the driver.`,
		Example: `  lab gpu --kubelet-dir DIR run --node real-node --resource nvidia.com/gpu=8
  lab gpu --kubelet-dir DIR health gpu-3 unhealthy
  lab gpu --kubelet-dir DIR vanish`,
		// All flags are the program's.
		DisableFlagParsing: true,
		RunE: func(cmd *cobra.Command, args []string) error {
			path, err := beside(cmd.Context(), driver, "", "gpudriver", cmd.ErrOrStderr())
			if err != nil {
				return err
			}
			return become(path, path, args, os.Environ())
		},
	}
}
