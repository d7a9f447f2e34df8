// Command lab runs a real Kubernetes control plane on this machine, fills it
// with real clusters, and shows the controller at work on it.
package main

import (
	"os"

	"github.com/spf13/cobra"

	"github.com/gpu-summary/gpu-summary-controller/lab/command"
)

func main() {
	root := &cobra.Command{
		Use:   "lab",
		Short: "A real Kubernetes control plane to run the GPU summary controller on",
	}
	root.AddCommand(newUpCommand(), newBuildCommand(), newDemoCommand(), newLoadCommand(), newDiffCommand(), newBenchCommand(), newGPUCommand(), newKubectlCommand())
	os.Exit(command.Run("lab", root))
}
