// Package plugin is the kubectl plugin: it reads a cluster once, a dump of one, or
// what the controller has published, and shows the numbers of internal/count as
// tables, JSON, YAML and CSV.
//
// A subcommand is a function in a file of its own that takes the common and returns
// a *cobra.Command, which New adds. It reads with common.gather, or common.read where
// the count is wanted, and hands a view to common.show, which knows the formats and
// --watch, or to common.print, which shows it once. It ends with withStatus(n, nil) to
// leave with an exit status and say nothing, and with any other error to leave with 1.
package plugin

import (
	"errors"
	"flag"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/kubernetes"
	"k8s.io/klog/v2"

	"github.com/gpu-summary/gpu-summary-controller/internal/version"
)

// common is what all subcommands share: flags, streams and the way to a cluster.
type common struct {
	genericiooptions.IOStreams
	config *genericclioptions.ConfigFlags

	from          string // a dump, "-" for standard input, "" for none
	fromConfigMap string // the published ConfigMap, "" for none
	gpuResources  []string
	draClasses    []string
	output        format
	wide          bool
	noColor       bool

	// What tests replace.
	now     func() time.Time
	after   func(time.Duration) <-chan time.Time
	screen  func() screen
	connect func() (kubernetes.Interface, error)
}

// New returns the command. Nothing is read before it is executed.
func New(streams genericiooptions.IOStreams) *cobra.Command { return newCommon(streams).command() }

func newCommon(streams genericiooptions.IOStreams) *common {
	c := &common{IOStreams: streams, config: genericclioptions.NewConfigFlags(true), now: time.Now, after: time.After}
	c.config.CacheDir = nil // nothing is cached
	c.screen = c.findScreen
	c.connect = c.client
	return c
}

func (c *common) command() *cobra.Command {
	nodes, root := newNodes(c), newNodes(c)
	root.Use = "kubectl-gpu_summary"
	root.Annotations = map[string]string{cobra.CommandDisplayNameAnnotation: display}
	root.Short = "Show how many GPUs are requested, free and waited for, as kube-scheduler counts them"
	root.Long = rootLong
	root.Example = rootExample
	root.Version = version.String()
	root.Args = nil // cobra then knows subcommands from arguments, and suggests one
	root.SilenceUsage, root.SilenceErrors = true, true
	root.SetIn(c.In)
	root.SetOut(c.Out)
	root.SetErr(c.ErrOut)
	c.addFlags(root)
	root.AddCommand(nodes, newPods(c), newNamespaces(c), newModels(c), newPending(c), newClaims(c), newDescribe(c), newFit(c))
	c.addCompletions(root)
	return root
}

// display is how the command is called: kubectl turns - into _ to find it.
const display = "kubectl gpu-summary"

const rootLong = `Show how many GPUs are requested, free and waited for, counted exactly as
kube-scheduler counts them. Without a subcommand it shows nodes.

It reads pods, nodes and the objects of dynamic resource allocation itself and needs
nothing to be installed. --from reads a dump of them instead of a cluster, and
--from-configmap what the gpu-summary controller has published, for those who may read
no more than that. All namespaces are counted; -n restricts the pods and claims that are
shown, and is where --from-configmap looks.`

const rootExample = `  # nodes, and what is free on them
  kubectl gpu-summary

  # who holds GPUs, who waits for one, and why
  kubectl gpu-summary pods
  kubectl gpu-summary pending

  # a dump, made anywhere
  kubectl get pods,nodes,resourceclaims,resourceslices,deviceclasses -A -o json > dump.json
  kubectl gpu-summary --from dump.json

  # what the controller has published
  kubectl gpu-summary --from-configmap -n gpu-summary

  # another vendor's resource
  kubectl gpu-summary --gpu-resource example.com/gpu`

func (c *common) addFlags(root *cobra.Command) {
	fs := root.PersistentFlags()
	c.config.AddFlags(fs)
	fs.StringVar(&c.from, "from", c.from, "read this `file` instead of a cluster, - for standard input: what kubectl get -o json or -o yaml prints, gzip or not")
	fs.StringVar(&c.fromConfigMap, "from-configmap", c.fromConfigMap, "read what the controller has published instead of counting; `name` of its --capacity-name, behind a =")
	fs.Lookup("from-configmap").NoOptDefVal = "gpu-capacity"
	fs.StringArrayVar(&c.gpuResources, "gpu-resource", c.gpuResources, "count this extended `resource` too, example.com/gpu or a pattern that ends in *, example.com/gpu-*; repeatable")
	fs.StringArrayVar(&c.draClasses, "dra-class", c.draClasses, "count devices of this DeviceClass as this GPU resource, `class=resource`, gpu.example.com=example.com/gpu; repeatable")
	fs.VarP(&c.output, "output", "o", "`format`: wide, json, yaml, csv or name")
	fs.BoolVar(&c.wide, "wide", c.wide, "the same as -o wide")
	fs.BoolVar(&c.noColor, "no-color", c.noColor, "no colours on a terminal either; so does NO_COLOR in the environment")
	root.MarkFlagsMutuallyExclusive("from", "from-configmap")

	logging := flag.NewFlagSet("", flag.ContinueOnError)
	klog.InitFlags(logging)
	fs.AddGoFlag(logging.Lookup("v"))
}

// status is an error that decides the exit status.
type status struct {
	err  error // nil for nothing to say
	code int
}

func (s status) Error() string {
	if s.err == nil {
		return fmt.Sprintf("status %d", s.code)
	}
	return s.err.Error()
}

func (s status) Unwrap() error { return s.err }

// withStatus makes an error end the process with this status. Without an error
// nothing is said, and there is still that status: of an answer that is no.
func withStatus(code int, err error) error { return status{err, code} }

// Status is the exit status after an error, and what there is to say, "" for nothing.
// What comes from a cluster or a file may be in it, so it is made safe for a terminal.
func Status(err error) (code int, message string) {
	if err == nil {
		return 0, ""
	}
	code = 1
	if s := (status{}); errors.As(err, &s) {
		code = s.code
		if s.err == nil {
			return code, ""
		}
	}
	return code, cleanLines(fmt.Sprintf("%v", err))
}
