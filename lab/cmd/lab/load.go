package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/go-logr/logr"
	"github.com/spf13/cobra"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"

	"github.com/gpu-summary/gpu-summary-controller/lab/load"
	"github.com/gpu-summary/gpu-summary-controller/lab/plane"
)

// runningLabs names the kubeconfigs of the labs running on this machine. It is
// a variable so that a test can say which there are.
var runningLabs = func() ([]string, error) {
	labs, err := plane.FindRunning()
	var files []string
	for _, lab := range labs {
		files = append(files, lab.Kubeconfig)
	}
	return files, err
}

// loadFlags are the flags of "lab load".
type loadFlags struct {
	openb, like         string
	seed                uint64
	kubeconfig, context string
	namespace           string
	workers             int
}

func newLoadCommand() *cobra.Command {
	var f loadFlags
	cmd := &cobra.Command{
		Use:   "load (--openb DIR | --like openb)",
		Short: "Fill the running lab with a recorded GPU cluster",
		Long: `Load creates the nodes and pods of a recorded GPU cluster: the openb trace, with
1,523 nodes, 6,212 GPUs and 8,152 pods.

  --openb DIR    reads the trace itself: ` + load.NodesFile + `
                 and ` + load.PodsFile + `. A malformed row is reported
                 with file and line, and nothing is created.
  --like openb   builds the same cluster, to the GPU, from a table of figures.

The trace does not say where pods ran: each gets the first node where it fits, in
order of arrival. Pending pods get none, and a scheduler name of their own
(` + load.PendingScheduler + `), so that they stay pending.

The cluster is the one running lab, or the one that --kubeconfig or --context
names. Load never picks a cluster from your kubeconfig by itself.

Loading the same again creates what is missing and keeps the rest. If an object
has another shape, is left from another load or was not created by a load, it
is named and nothing is created. To remove a load:

  kubectl delete namespace openb
  kubectl delete nodes -l ` + load.SourceLabel + `=` + load.Source,
		Example: `  lab load --like openb
  lab load --openb ~/data/openb
  lab load --like openb --seed 7 --context kind-kind`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return runLoad(cmd, f) },
	}
	flags := cmd.Flags()
	flags.StringVar(&f.openb, "openb", "", "read the trace from the files in `DIR`")
	flags.StringVar(&f.like, "like", "", "build a cluster like the trace `NAME`, from figures (openb)")
	flags.Uint64Var(&f.seed, "seed", 1, "with --like: decides the order of nodes and pods")
	flags.StringVar(&f.kubeconfig, "kubeconfig", "", "`FILE` that names the cluster (default: the running lab's)")
	flags.StringVar(&f.context, "context", "", "`NAME` of the kubeconfig context")
	flags.StringVar(&f.namespace, "namespace", "openb", "namespace of the pods, created when missing")
	flags.IntVar(&f.workers, "workers", 16, "requests under way at once")
	return cmd
}

func runLoad(cmd *cobra.Command, f loadFlags) error {
	// The data first: a broken row should not need a cluster to show.
	c, err := f.cluster(cmd.Flags().Changed("seed"))
	if err != nil {
		return err
	}
	placement, err := load.Place(c)
	if err != nil {
		return err
	}
	cfg, err := f.config()
	if err != nil {
		return err
	}
	out := cmd.OutOrStdout()
	fmt.Fprintf(out, "Loading %d nodes and %d pods (%s) into namespace %s of %s\n",
		len(c.Nodes), len(c.Pods), c.Source, f.namespace, cfg.Host)
	// What goes wrong is returned; the client would print it a second time.
	ctx := klog.NewContext(cmd.Context(), logr.Discard())
	result, err := load.Apply(ctx, cfg, c, load.Options{
		Namespace: f.namespace,
		Workers:   f.workers,
		Progress:  cmd.ErrOrStderr(),
	})
	if err != nil {
		return err
	}
	printLoad(out, result, load.Expect(c, placement))
	return nil
}

// cluster reads or builds what is to be loaded.
func (f loadFlags) cluster(seeded bool) (*load.Cluster, error) {
	switch {
	case (f.openb == "") == (f.like == ""):
		return nil, errors.New("give exactly one of --openb DIR and --like openb")
	case f.workers < 1:
		return nil, fmt.Errorf("--workers is %d, want at least 1", f.workers)
	case f.openb != "" && seeded:
		return nil, errors.New("--seed goes with --like: the trace is what it is")
	case f.openb != "":
		return load.ReadOpenB(f.openb)
	case f.like != "openb":
		return nil, fmt.Errorf("--like %s: there are figures of openb only", f.like)
	}
	return load.LikeOpenB(f.seed), nil
}

// config finds the cluster. Ten thousand objects in the wrong one are a bad
// surprise, so the user's current context counts only when it was asked for.
func (f loadFlags) config() (*rest.Config, error) {
	file := f.kubeconfig
	if f.kubeconfig == "" && f.context == "" {
		labs, err := runningLabs()
		if err != nil {
			return nil, fmt.Errorf("look for a running lab: %w", err)
		}
		switch len(labs) {
		case 0:
			return nil, errors.New("no lab is running: start one with \"lab up\", or name the cluster with --kubeconfig or --context")
		case 1:
			file = labs[0]
		default:
			return nil, fmt.Errorf("%d labs are running, choose one: --kubeconfig %s", len(labs), strings.Join(labs, ", or --kubeconfig "))
		}
	}
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = file
	overrides := &clientcmd.ConfigOverrides{CurrentContext: f.context}
	cfg, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, overrides).ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("read kubeconfig %s: %w", cmp.Or(file, "(default)"), err)
	}
	return cfg, nil
}

func printLoad(w io.Writer, r load.Result, t load.Totals) {
	created := r.Objects - r.Reused
	fmt.Fprintf(w, "Created %d objects in %s (%.0f objects/s)", created, r.Elapsed.Round(100*time.Millisecond), float64(created)/r.Elapsed.Seconds())
	if r.Reused > 0 {
		fmt.Fprintf(w, "; %d were there already", r.Reused)
	}
	fmt.Fprintf(w, "\nGPUs: %d requested, %d allocatable, %d free, %d pending (%d is the naive sum over all pods)\n",
		t.Requested, t.Allocatable, t.Free, t.Pending, t.Naive)
}
