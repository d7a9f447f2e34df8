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
	realNode   bool
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
namespaces of its own. It needs Linux, root and some packages; what is missing is named.
Images come from archives: the node has no way to a registry. KWOK still plays the nodes
that one creates, if they have a label.

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
  lab kubectl get nodes`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return up(cmd.Context(), cmd.OutOrStdout(), cmd.ErrOrStderr(), o)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&o.dir, "dir", "", "state directory, empty or new (default a temporary one)")
	flags.BoolVar(&o.audit, "audit", false, "write every request to audit.log in the state directory")
	flags.StringSliceVar(&o.without, "without", nil, "component not to start: kwok, kube-scheduler or kube-controller-manager (repeatable)")
	flags.StringArrayVar(&o.flags, "component-flags", nil, "COMPONENT=FLAGS, more flags for a component, separated by spaces (repeatable)")
	flags.BoolVar(&o.realNode, "real-node", false, "add a node with a kubelet, which runs containers (Linux, as root)")
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
	if len(o.images) > 0 && !o.realNode {
		return errors.New("--image goes with --real-node: KWOK's nodes run nothing")
	}
	var programs plane.NodeBinaries
	if o.realNode {
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
		RealNode:   o.realNode,
	})
	if err != nil {
		return err
	}
	var node *realnode.Node
	defer func() {
		fmt.Fprintln(stderr, "stopping")
		if stopErr := stop(p, node); stopErr != nil && err == nil {
			err = fmt.Errorf("stop the lab: %w", stopErr)
		}
	}()
	if o.realNode {
		if node, err = realnode.Start(ctx, realnode.Options{Plane: p, Binaries: programs}); err != nil {
			return err
		}
		for _, archive := range o.images {
			if err := node.LoadImage(ctx, archive); err != nil {
				return err
			}
		}
	}
	if err := p.Announce(); err != nil {
		return err
	}
	if o.kubeconfig != "" {
		if err := copyKubeconfig(p.Kubeconfig(), o.kubeconfig); err != nil {
			return err
		}
	}
	describe(stdout, p, o, node, time.Since(begin))
	select {
	case <-ctx.Done():
		return nil
	case err := <-p.Failed():
		return err
	}
}

func stop(p *plane.Plane, node *realnode.Node) error {
	var err error
	if node != nil {
		err = node.Stop()
	}
	return errors.Join(err, p.Stop())
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

func describe(w io.Writer, p *plane.Plane, o upOptions, node *realnode.Node, took time.Duration) {
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
	if node != nil {
		fmt.Fprintf(w, "\nTo give the real node GPUs that do not exist, in another terminal:\n\n  %s gpu --kubelet-dir %s run --node %s --resource nvidia.com/gpu=8\n",
			os.Args[0], node.KubeletDir(), realnode.DefaultName)
	}
	fmt.Fprint(w, "\nCtrl-C stops everything and removes the directory.\n")
}
