package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/gpu-summary/gpu-summary-controller/lab/bench/rival"
	"github.com/gpu-summary/gpu-summary-controller/lab/bench/server"
)

// newBenchServerCommand is the server of "lab bench", which starts it itself.
func newBenchServerCommand() *cobra.Command {
	o := server.Options{}
	var address string
	cmd := &cobra.Command{
		Use:    "server",
		Short:  "Serve a large cluster that hardly exists",
		Hidden: true,
		Args:   cobra.NoArgs,
		Long: `Server answers like an API server that has a large cluster, and says on its
output where. It ends with its input. What it can do is in package lab/bench/server.`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			s, err := server.Listen(address, o)
			if err != nil {
				return err
			}
			control, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				return fmt.Errorf("listen for the harness: %w", err)
			}
			started := server.Started{URL: s.URL(), Control: "http://" + control.Addr().String(), CA: string(s.Certificate()), At: time.Now()}
			if err := json.NewEncoder(cmd.OutOrStdout()).Encode(started); err != nil {
				return fmt.Errorf("say where the server is: %w", err)
			}
			ctx, cancel := context.WithCancelCause(cmd.Context())
			go func() { // ends with the process: a read cannot be interrupted
				_, _ = io.Copy(io.Discard, cmd.InOrStdin())
				cancel(nil)
			}()
			var wg sync.WaitGroup
			for _, run := range []func() error{func() error { return s.Run(ctx) }, func() error { return s.Control(ctx, control) }} {
				wg.Go(func() { cancel(run()) })
			}
			wg.Wait()
			if err := context.Cause(ctx); err != nil && !errors.Is(err, context.Canceled) {
				return err
			}
			return nil
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&address, "address", "127.0.0.1:0", "`host:port` to listen on")
	flags.IntVar(&o.Nodes, "nodes", 5000, "nodes")
	flags.IntVar(&o.Pods, "pods", 150000, "pods that have not finished")
	flags.IntVar(&o.GPUPods, "gpu-pods", 7500, "how many of the pods ask for GPUs")
	flags.IntVar(&o.GPUNodes, "gpu-nodes", 2063, "how many of the nodes have 8 GPUs")
	flags.StringVar(&o.Summary, "summary", "gpu-summary", "name of the ConfigMap to look at")
	flags.BoolVar(&o.TLS, "tls", false, "serve HTTPS and HTTP/2")
	flags.BoolVar(&o.Gzip, "gzip", false, "compress for clients that accept it")
	flags.BoolVar(&o.JSONOnly, "json-only", false, "do not speak protobuf")
	flags.BoolVar(&o.NoWatchList, "no-watchlist", false, "refuse to begin a watch with the present state")
	return cmd
}

// newBenchRivalCommand is a program that "lab bench" measures the controller against.
func newBenchRivalCommand() *cobra.Command {
	o := rival.Options{}
	cmd := &cobra.Command{
		Use:       "rival NAME",
		Short:     "What the controller is compared with",
		Hidden:    true,
		Args:      cobra.ExactArgs(1),
		ValidArgs: rival.Names(),
		RunE: func(cmd *cobra.Command, args []string) error {
			return rival.Run(cmd.Context(), args[0], o, cmd.InOrStdin(), cmd.OutOrStdout())
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&o.Kubeconfig, "kubeconfig", "", "kubeconfig `file`")
	flags.StringVar(&o.Namespace, "namespace", "default", "namespace of the ConfigMap")
	flags.StringVar(&o.Name, "name", "gpu-summary", "name of the ConfigMap")
	flags.DurationVar(&o.Every, "every", 5*time.Second, "how long to wait between two rounds")
	flags.IntVar(&o.Rows, "rows", 1, "rows of the ConfigMap of a bare update")
	flags.IntVar(&o.Count, "count", 1, "bare updates to make")
	return cmd
}
