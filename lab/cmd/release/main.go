// Command release builds what users install: binaries, the container image, and
// the plain manifests.
package main

import (
	"os"

	"github.com/spf13/cobra"

	"github.com/gpu-summary/gpu-summary-controller/lab/command"
)

func main() {
	root := &cobra.Command{Use: "release", Short: "Build what users install"}
	root.AddCommand(newBuildCommand(), newManifestsCommand())
	os.Exit(command.Run("release", root))
}
