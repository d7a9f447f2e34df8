package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/gpu-summary/gpu-summary-controller/lab/plane"
	"github.com/gpu-summary/gpu-summary-controller/lab/realnode"
)

type upOptions struct {
	dir        string
	audit      bool
	without    []string
	flags      []string
	kubeconfig string
	realNodes  int
	images     []string
}

func newUpCommand() *cobra.Command {
	var o upOptions
	cmd := &cobra.Command{
		Use:   "up",
		Short: "Start a control plane and keep it running until Ctrl-C",
		Long: `Start etcd, kube-apiserver, kube-scheduler and kube-controller-manager ` + plane.KubernetesVersion + `
and KWOK ` + plane.KWOKVersion + `, which plays the kubelets, and keep them running until Ctrl-C or SIGTERM.
Everything listens on 127.0.0.1, lives in one directory, and is removed at the end.

With --real-node there is a node with a kubelet, containerd and kube-proxy as well, in
namespaces of its own, and with --real-node=3 there are three, whose pods reach each
other. It needs Linux, root and some packages; what is missing is named. Images come from
archives: nodes have no way to a registry. KWOK still plays the nodes that one creates, if
they have a label.

The first time the programs are built from source, which takes a while.`,
		Example: `  # a cluster for kubectl, in another terminal
  lab up
  lab kubectl get nodes

  # who asks the server for what
  lab up --audit --dir /tmp/lab
  tail -f /tmp/lab/audit.log

  # nothing runs and nothing becomes Ready; the server tells more
  lab up --without kwok --component-flags kube-apiserver=--v=4

  # a node that runs containers, beside those that KWOK plays (Linux, as root)
  lab up --real-node
  lab kubectl get nodes

  # two of them, for what goes from one to the other: drain one
  lab up --real-node=2 --image controller.tar
  lab kubectl drain real-node-2 --ignore-daemonsets`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 && cmd.Flags().Changed("real-node") {
				return fmt.Errorf("%q stands by itself: how many real nodes is written with an equals sign, --real-node=2", args[0])
			}
			return cobra.NoArgs(cmd, args)
		},
		RunE: func(cmd *cobra.Command, _ []string) error {
			return up(cmd.Context(), cmd.OutOrStdout(), cmd.ErrOrStderr(), o)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&o.dir, "dir", "", "state directory, empty or new (default a temporary one)")
	flags.BoolVar(&o.audit, "audit", false, "write every request to audit.log in the state directory")
	flags.StringSliceVar(&o.without, "without", nil, "component not to start: kwok, kube-scheduler or kube-controller-manager (repeatable)")
	flags.StringArrayVar(&o.flags, "component-flags", nil, "COMPONENT=FLAGS, more flags for a component, separated by spaces (repeatable)")
	flags.IntVar(&o.realNodes, "real-node", 0, "add so many nodes with a kubelet, which run containers; without a number it is one (Linux, as root)")
	flags.Lookup("real-node").NoOptDefVal = "1"
	flags.StringSliceVar(&o.images, "image", nil, "with --real-node: load the images of an archive, as \"docker save\" writes them (repeatable)")
	flags.StringVar(&o.kubeconfig, "kubeconfig-out", "", "write the kubeconfig to this file as well; it stays when the lab ends")
	return cmd
}

func up(ctx context.Context, stdout, stderr io.Writer, o upOptions) (err error) {
	begin := time.Now()
	extra, err := componentFlags(o.flags)
	if err != nil {
		return err
	}
	if o.realNodes < 0 {
		return fmt.Errorf("--real-node=%d: there cannot be fewer than none", o.realNodes)
	}
	if len(o.images) > 0 && o.realNodes == 0 {
		return errors.New("--image goes with --real-node: KWOK's nodes run nothing")
	}
	var programs plane.NodeBinaries
	if o.realNodes > 0 {
		// Before anything is built or started.
		if err := realnode.Check(); err != nil {
			return err
		}
		if programs, err = plane.BuildNode(ctx, stderr); err != nil {
			return err
		}
		// Another lab that builds others would remove them before the plane is there.
		if held := programs.Hold(); held != nil {
			defer held.Close()
		}
	}
	p, err := plane.Start(ctx, plane.Options{
		Dir:        o.dir,
		Progress:   stderr,
		Without:    o.without,
		ExtraFlags: extra,
		Audit:      o.audit,
		RealNode:   o.realNodes > 0,
	})
	if err != nil {
		return err
	}
	var nodes []*realnode.Node
	defer func() {
		fmt.Fprintln(stderr, "stopping")
		if stopErr := stop(p, nodes); stopErr != nil && err == nil {
			err = fmt.Errorf("stop the lab: %w", stopErr)
		}
	}()
	var announced []plane.RunningNode
	for range o.realNodes {
		node, err := realnode.Start(ctx, realnode.Options{Plane: p, Binaries: programs})
		if err != nil {
			return err
		}
		nodes = append(nodes, node)
		announced = append(announced, plane.RunningNode{Name: node.Name(), KubeletDir: node.KubeletDir()})
		for _, archive := range o.images {
			if err := node.LoadImage(ctx, archive); err != nil {
				return err
			}
		}
	}
	if err := p.Announce(announced...); err != nil {
		return err
	}
	if o.kubeconfig != "" {
		if err := copyKubeconfig(p.Kubeconfig(), o.kubeconfig); err != nil {
			return err
		}
	}
	describe(stdout, p, o, nodes, time.Since(begin))
	select {
	case <-ctx.Done():
		return nil
	case err := <-p.Failed():
		return err
	}
}

func stop(p *plane.Plane, nodes []*realnode.Node) error {
	var errs []error
	for _, node := range nodes {
		errs = append(errs, node.Stop())
	}
	return errors.Join(append(errs, p.Stop())...)
}

// componentFlags splits COMPONENT=FLAGS; plane.Start knows the components.
func componentFlags(args []string) (map[string][]string, error) {
	flags := map[string][]string{}
	for _, arg := range args {
		name, value, ok := strings.Cut(arg, "=")
		if !ok || !strings.HasPrefix(strings.TrimSpace(value), "-") {
			return nil, fmt.Errorf("read --component-flags %q: want COMPONENT=--flag=value, for example kube-apiserver=--v=4", arg)
		}
		flags[name] = append(flags[name], strings.Fields(value)...)
	}
	return flags, nil
}

func copyKubeconfig(from, to string) error {
	data, err := os.ReadFile(from)
	if err != nil {
		return fmt.Errorf("read kubeconfig: %w", err)
	}
	if err := os.WriteFile(to, data, 0o600); err != nil {
		return fmt.Errorf("write kubeconfig: %w", err)
	}
	return nil
}

func describe(w io.Writer, p *plane.Plane, o upOptions, nodes []*realnode.Node, took time.Duration) {
	fmt.Fprintf(w, "\nKubernetes %s is up after %s. State directory: %s\n\n",
		plane.KubernetesVersion, took.Round(100*time.Millisecond), p.Dir())
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "  COMPONENT\tPID\tURL\tLOG")
	for _, c := range p.Components() {
		fmt.Fprintf(table, "  %s\t%d\t%s\t%s\n", c.Name(), c.Pid(), c.URL(), c.LogPath())
	}
	_ = table.Flush()
	if o.audit {
		fmt.Fprintf(w, "\nAudit log: %s\n", p.AuditLog())
	}
	fmt.Fprintf(w, "\nTo look inside:\n\n  %s kubectl get nodes\n\nor with another client:\n\n  export KUBECONFIG=%s\n", os.Args[0], p.Kubeconfig())
	if len(nodes) > 0 {
		fmt.Fprint(w, "\nTo give a real node GPUs that do not exist, in another terminal:\n\n")
	}
	for _, node := range nodes {
		fmt.Fprintf(w, "  %s gpu --node %s run --resource nvidia.com/gpu=8\n", os.Args[0], node.Name())
	}
	fmt.Fprint(w, "\nCtrl-C stops everything and removes the directory.\n")
}
