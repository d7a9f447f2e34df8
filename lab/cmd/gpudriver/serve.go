package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/gpu-summary/gpu-summary-controller/lab/gpudriver"
)

type runOptions struct {
	kubeconfig string
	node       string
	resources  []string
	dra        bool
	cdiDir     string
	product    string
}

func newRunCommand(p *place) *cobra.Command {
	var o runOptions
	cmd := &cobra.Command{
		Use:   "run --node NAME",
		Short: "Offer devices to the kubelet until Ctrl-C",
		Example: `  # eight GPUs, two more that are cut into MIG slices, and four that four pods share
  gpudriver run --node worker --resource nvidia.com/gpu=8 \
    --resource nvidia.com/mig-1g.5gb=14 --resource nvidia.com/gpu.shared=4x4

  # in another terminal: one fails, and recovers
  gpudriver health gpu-3 unhealthy
  gpudriver health gpu-3 healthy`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return serve(cmd.Context(), p, o) },
	}
	flags := cmd.Flags()
	flags.StringVar(&o.node, "node", "", "name of the node")
	flags.StringArrayVar(&o.resources, "resource", []string{"nvidia.com/gpu=8"}, "NAME=COUNT or, for shared devices, NAME=COUNTxSLOTS (repeatable)")
	flags.BoolVar(&o.dra, "dra", false, "be a DRA driver instead of device plugins")
	flags.StringVar(&o.kubeconfig, "kubeconfig", "", "for DRA, now or by command: how to reach the cluster")
	flags.StringVar(&o.cdiDir, "cdi-dir", "", "for DRA: where the container runtime reads CDI specifications (default cdi in the kubelet's directory)")
	flags.StringVar(&o.product, "product", "", "for DRA: the model the devices say they are")
	if err := cmd.MarkFlagRequired("node"); err != nil {
		panic(err) // there is such a flag
	}
	return cmd
}

func serve(ctx context.Context, p *place, o runOptions) error {
	options := gpudriver.Options{Node: o.node, KubeletDir: p.kubeletDir, CDIDir: o.cdiDir, Product: o.product}
	for _, text := range o.resources {
		r, err := gpudriver.ParseResource(text)
		if err != nil {
			return fmt.Errorf("read --resource: %w", err)
		}
		options.Resources = append(options.Resources, r)
	}
	if o.dra {
		options.Mode = gpudriver.DRA
	}
	if o.kubeconfig != "" {
		config, err := clientcmd.BuildConfigFromFlags("", o.kubeconfig)
		if err != nil {
			return fmt.Errorf("read kubeconfig: %w", err)
		}
		if options.Client, err = kubernetes.NewForConfig(config); err != nil {
			return fmt.Errorf("make client: %w", err)
		}
		if err := makeClasses(ctx, options.Client); err != nil {
			return err
		}
	}
	d, err := gpudriver.New(options)
	if err != nil {
		return err
	}
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return d.Run(ctx) })
	group.Go(func() error { return d.ServeControl(ctx, p.socket()) })
	return group.Wait()
}

// makeClasses makes the DeviceClasses that the cluster lacks. Some that are there
// are somebody's and stay as they are.
func makeClasses(ctx context.Context, client kubernetes.Interface) error {
	var errs []error
	for _, class := range gpudriver.Classes() {
		_, err := client.ResourceV1().DeviceClasses().Create(ctx, class, metav1.CreateOptions{})
		if err != nil && !apierrors.IsAlreadyExists(err) {
			errs = append(errs, fmt.Errorf("create DeviceClass %s: %w", class.Name, err))
		}
	}
	return errors.Join(errs...)
}
