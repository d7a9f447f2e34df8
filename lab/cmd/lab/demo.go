package main

import (
	"github.com/spf13/cobra"

	"github.com/gpu-summary/gpu-summary-controller/lab/demo"
	"github.com/gpu-summary/gpu-summary-controller/lab/load"
	"github.com/gpu-summary/gpu-summary-controller/lab/plane"
)

func newDemoCommand() *cobra.Command {
	var o demo.Options
	var openb, output string
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "Show the controller at work on a recorded GPU cluster",
		Long: `Demo starts a control plane (Kubernetes ` + plane.KubernetesVersion + `), loads a cluster of 1,523 nodes,
6,212 GPUs and 8,152 pods, runs the controller against it with the rights that
its manifests grant, and prints what it publishes once that equals an
independent recount: totals, the fullest, the emptiest and the overcommitted
nodes, and beside them what a sum over all pods would claim.

Then jobs come and go, scheduled by the real kube-scheduler, and a status line
follows the published numbers until Ctrl-C, which stops and removes everything.
Other commands, "lab load" for one, find the lab while it runs.

The cluster is built from figures of the openb trace, or with --openb from the
trace itself: ` + load.NodesFile + ` and
` + load.PodsFile + `.

The controller runs inside this command, so its /metrics count the requests of
the demo as well.`,
		Example: `  lab demo
  lab demo --openb ~/data/openb --http-address 127.0.0.1:8080

  # the numbers for a script, the progress on the terminal
  lab demo --once -o json | jq .requested`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			o.Format = demo.Format(output)
			o.Stdout, o.Stderr = cmd.OutOrStdout(), cmd.ErrOrStderr()
			if err := o.Check(); err != nil {
				return err
			}
			// A broken row should not need a cluster to show.
			if openb == "" {
				o.Cluster = load.LikeOpenB(o.Seed)
			} else if o.Cluster, err = load.ReadOpenB(openb); err != nil {
				return err
			}
			return demo.Run(cmd.Context(), o)
		},
	}
	flags := cmd.Flags()
	flags.BoolVar(&o.Once, "once", false, "stop after the report")
	flags.StringVarP(&output, "output", "o", string(demo.Table), "`FORMAT` of the report, table or json; json needs --once")
	flags.StringVar(&openb, "openb", "", "load the trace from the files in `DIR` instead of its figures")
	flags.Uint64Var(&o.Seed, "seed", 1, "decides the order of the figures' nodes and pods, and the jobs")
	flags.StringVar(&o.HTTPAddress, "http-address", "127.0.0.1:0", "`host:port` of the controller's /metrics and /readyz; port 0 for any that is free")
	return cmd
}
