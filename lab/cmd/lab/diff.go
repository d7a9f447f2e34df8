package main

import (
	"fmt"
	"runtime"

	"github.com/spf13/cobra"

	"github.com/gpu-summary/gpu-summary-controller/lab/diff"
	"github.com/gpu-summary/gpu-summary-controller/lab/plane"
)

func newDiffCommand() *cobra.Command {
	var o diff.Options
	var only int
	var output string
	cmd := &cobra.Command{
		Use:   "diff",
		Short: "Let kube-scheduler judge what is counted",
		Long: `Diff makes random pods, gives them to kube-scheduler's own NodeInfo (Kubernetes
` + plane.KubernetesVersion + `) and to the controller's counting, and compares what is requested of each
GPU resource on each node. It needs no cluster.

The pods have init containers, sidecars, overhead, pod-level resources, resizes
under way, every phase, deletions, and quantities from nothing to beyond 64 bits.
A mismatch is shrunk to the smallest pod that still shows it, printed, and the
command fails.

The same seed makes the same pods, however many workers there are.`,
		Example: `  lab diff --pods 1000000
  lab diff --pods 100000 --seed 7 -o json | jq .features

  # one of the pods, and what both sides say of it
  lab diff --seed 7 --only 12345`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			format := diff.Format(output)
			if format != diff.Table && format != diff.JSON {
				return fmt.Errorf("--output %q: want table or json", output)
			}
			if cmd.Flags().Changed("only") {
				if only < 0 {
					return fmt.Errorf("--only %d: pods are numbered from 0", only)
				}
				return diff.Show(cmd.OutOrStdout(), o.Seed, only)
			}
			o.Progress = cmd.ErrOrStderr()
			return runDiff(cmd, o, format)
		},
	}
	flags := cmd.Flags()
	flags.IntVar(&o.Pods, "pods", 100_000, "how many pods to make")
	flags.Uint64Var(&o.Seed, "seed", 1, "decides what the pods are")
	flags.IntVar(&o.Workers, "workers", runtime.GOMAXPROCS(0), "how many clusters of pods to count at once")
	flags.IntVar(&only, "only", 0, "show pod number `N` of the seed instead")
	flags.StringVarP(&output, "output", "o", string(diff.Table), "`FORMAT` of the report, table or json")
	return cmd
}

func runDiff(cmd *cobra.Command, o diff.Options, format diff.Format) error {
	report, err := diff.Run(cmd.Context(), o)
	if report != nil {
		// Also of a run that was given up: what it found until then is true.
		if err := report.Write(cmd.OutOrStdout(), format); err != nil {
			return err
		}
	}
	if err != nil {
		return err
	}
	if report.Mismatches > 0 {
		return fmt.Errorf("%d of %d numbers are not the scheduler's", report.Mismatches, report.Numbers)
	}
	return nil
}
