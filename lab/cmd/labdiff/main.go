// Command labdiff is "lab diff". It is a program of its own because it contains
// the scheduler, which the lab's other commands need not wait for.
package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"

	"github.com/go-logr/logr"
	"github.com/spf13/cobra"
	"k8s.io/klog/v2"

	"github.com/gpu-summary/gpu-summary-controller/internal/count"
	"github.com/gpu-summary/gpu-summary-controller/lab/command"
	"github.com/gpu-summary/gpu-summary-controller/lab/diff"
	"github.com/gpu-summary/gpu-summary-controller/lab/plane"
)

func main() { os.Exit(command.Run("lab", newCommand())) }

func newCommand() *cobra.Command {
	var o diff.Options
	var d draFlags
	var only int
	var output string
	cmd := &cobra.Command{
		Use:         "labdiff",
		Annotations: map[string]string{cobra.CommandDisplayNameAnnotation: "lab diff"},
		Short:       "Let kube-scheduler judge what is counted",
		Long: `Diff makes random pods, gives them to kube-scheduler's own NodeInfo (Kubernetes
` + plane.KubernetesVersion + `) and to the controller's counting, and compares what is requested of each
GPU resource on each node. It needs no cluster.

The pods have init containers, sidecars, overhead, pod-level resources, resizes
under way, every phase, deletions, and quantities from nothing to beyond 64 bits.
A mismatch is shrunk to the smallest pod that still shows it, printed, and the
command fails.

The same seed makes the same pods, however many workers there are.

With --dra the judge is a real kube-scheduler. A lab is started, with nodes that have
device plugins, DRA (ResourceSlices of a driver that does not exist) or both, and
random pods that ask for ` + count.NVIDIA + ` or have claims, their own or shared. When
the scheduler has settled, each row of the controller's counting is compared with what
the API objects say one by one: the devices that it has allocated, and NodeInfo.
The seed decides what there is; where a pod goes is the scheduler's business.`,
		Example: `  lab diff --pods 1000000
  lab diff --pods 100000 --seed 7 -o json | jq .features

  # one of the pods, and what both sides say of it
  lab diff --seed 7 --only 12345

  # devices that a real scheduler allocates, on 20 nodes
  lab diff --dra --pods 200 --nodes 20 --seed 7`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			format := diff.Format(output)
			if format != diff.Table && format != diff.JSON {
				return fmt.Errorf("--output %q: want table or json", output)
			}
			if err := d.check(cmd); err != nil {
				return err
			}
			if d.on {
				return d.run(cmd, o, format)
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
	flags.IntVar(&o.Pods, "pods", 100_000, "how many pods to make; with --dra, 200 unless given")
	flags.Uint64Var(&o.Seed, "seed", 1, "decides what the pods are")
	flags.IntVar(&o.Workers, "workers", runtime.GOMAXPROCS(0), "how many clusters of pods to count at once")
	flags.IntVar(&only, "only", 0, "show pod number `N` of the seed instead")
	flags.BoolVar(&d.on, "dra", false, "let a real scheduler allocate devices of DRA, in a lab of its own")
	flags.IntVar(&d.nodes, "nodes", 20, "with --dra: how many nodes to make")
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

// draPods is how many pods there are with --dra if nobody says. Each goes through a
// real scheduler, and what it has then is full.
const draPods = 200

// draFlags are the flags of "lab diff --dra".
type draFlags struct {
	on    bool
	nodes int
}

// check refuses flags that would do nothing.
func (d draFlags) check(cmd *cobra.Command) error {
	changed := cmd.Flags().Changed
	switch {
	case d.on && changed("only"):
		return errors.New("--only shows a pod of the run without --dra: where a pod goes here is known when all are placed")
	case d.on && changed("workers"):
		return errors.New("--workers does not go with --dra: there is one scheduler")
	case !d.on && changed("nodes"):
		return errors.New("--nodes takes --dra: otherwise pods make the nodes")
	}
	return nil
}

func (d draFlags) run(cmd *cobra.Command, o diff.Options, format diff.Format) error {
	options := diff.DRAOptions{Nodes: d.nodes, Pods: draPods, Seed: o.Seed, Progress: cmd.ErrOrStderr()}
	if cmd.Flags().Changed("pods") {
		options.Pods = o.Pods
	}
	// What goes wrong is returned; the client would print it a second time.
	ctx := klog.NewContext(cmd.Context(), logr.Discard())
	report, err := diff.RunDRA(ctx, options)
	return writeDRA(cmd.OutOrStdout(), report, err, format)
}

// writeDRA reports a run, also one after which the lab did not stop as it should.
func writeDRA(w io.Writer, report *diff.DRAReport, err error, format diff.Format) error {
	if report != nil {
		if err := report.Write(w, format); err != nil {
			return err
		}
	}
	if err == nil && report.Mismatches > 0 {
		err = fmt.Errorf("%d numbers in %d rows are not the scheduler's", report.Mismatches, report.Rows)
	}
	return err
}
