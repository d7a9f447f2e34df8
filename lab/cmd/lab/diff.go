package main

import (
	"os"

	"github.com/spf13/cobra"

	"github.com/gpu-summary/gpu-summary-controller/lab/compile"
	"github.com/gpu-summary/gpu-summary-controller/lab/plane"
)

// judge is the program that "lab diff" runs. The go command decides whether it is
// still what the sources would give: they are those of the counting as well.
var judge = compile.Job{
	Name:  "judge",
	Of:    "the judge (kube-scheduler " + plane.KubernetesVersion + " and the counting)",
	Long:  "which takes some minutes",
	Mains: []string{"./cmd/labdiff"},
	Flags: []string{"-buildvcs=false", "-ldflags=-s -w"},
}

func newDiffCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "diff [flags]",
		Short: "Let kube-scheduler judge what is counted",
		Long: `Diff compares what the controller counts with what kube-scheduler's own code counts, on
random pods. That code is in a program of its own, which is built first where that has
not been done. Then "lab diff --help" says everything about it.`,
		// All flags are the program's.
		DisableFlagParsing: true,
		RunE: func(cmd *cobra.Command, args []string) error {
			path, err := beside(cmd.Context(), judge, "", "labdiff", cmd.ErrOrStderr())
			if err != nil {
				return err
			}
			return become(path, path, args, os.Environ())
		},
	}
}
