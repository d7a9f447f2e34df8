package main

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/gpu-summary/gpu-summary-controller/lab/compile"
	"github.com/gpu-summary/gpu-summary-controller/lab/plane"
)

// driver is the program that "lab gpu" runs.
var driver = compile.Job{
	Name:  "gpudriver",
	Of:    "the stand-in GPU driver",
	Long:  "which takes a minute",
	Mains: []string{"./cmd/gpudriver"},
	Flags: []string{"-buildvcs=false", "-ldflags=-s -w"},
}

func newGPUCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "gpu [arguments]",
		Short: "Give a real node GPUs that do not exist, and command them",
		Long: `Gpu runs the stand-in GPU driver, which is built the first time: a device plugin, or a
DRA driver, for the kubelet of a real node. Pods that get a device find its id in their
environment. While "lab gpu run" runs, other calls make devices unhealthy and healthy,
and have the driver restart, vanish and return. The node is one of a lab that is running:
the one that there is, or the one that --node names. For any other kubelet say
--kubelet-dir; "lab gpu --help" says everything about the driver.`,
		Example: `  lab gpu run --resource nvidia.com/gpu=8
  lab gpu health gpu-3 unhealthy

  # of two real nodes
  lab gpu --node real-node-2 run --resource nvidia.com/gpu=4
  lab gpu --node real-node-2 vanish`,
		// All flags are the program's.
		DisableFlagParsing: true,
		RunE: func(cmd *cobra.Command, args []string) error {
			args, err := driverArgs(args, runningNodes)
			if err != nil {
				return err
			}
			path, err := beside(cmd.Context(), driver, "", "gpudriver", cmd.ErrOrStderr())
			if err != nil {
				return err
			}
			return become(path, path, args, os.Environ())
		},
	}
}

// driverArgs tells the program which kubelet is meant, unless that is said already or
// there is nothing to do for one.
func driverArgs(args []string, running func() ([]plane.RunningNode, error)) ([]string, error) {
	about := func(arg string) bool {
		name, _, _ := strings.Cut(arg, "=")
		return slices.Contains([]string{"--kubelet-dir", "--control", "--help", "-h", "help", "completion"}, name)
	}
	if len(args) == 0 || slices.ContainsFunc(args, about) {
		return args, nil
	}
	rest, name, err := takeNode(args)
	if err != nil {
		return nil, err
	}
	nodes, err := running()
	if err != nil {
		return nil, err
	}
	node, err := choose(nodes, name)
	if err != nil {
		return nil, err
	}
	if slices.Contains(rest, "run") {
		rest = append(rest, "--node", node.Name)
	}
	return append([]string{"--kubelet-dir", node.KubeletDir}, rest...), nil
}

// takeNode takes --node out of the arguments.
func takeNode(args []string) (rest []string, name string, err error) {
	for i := 0; i < len(args); i++ {
		flag, value, whole := strings.Cut(args[i], "=")
		switch {
		case flag != "--node":
			rest = append(rest, args[i])
			continue
		case !whole && i+1 == len(args):
			return nil, "", errors.New("--node needs the name of a node")
		case !whole:
			i++
			value = args[i]
		}
		name = value
	}
	return rest, name, nil
}

// choose returns the node of that name, or the only one if none is named.
func choose(nodes []plane.RunningNode, name string) (plane.RunningNode, error) {
	var found []plane.RunningNode
	var names []string
	for _, n := range nodes {
		names = append(names, n.Name)
		if name == "" || n.Name == name {
			found = append(found, n)
		}
	}
	slices.Sort(names)
	switch {
	case len(found) == 1:
		return found[0], nil
	case len(nodes) == 0:
		return plane.RunningNode{}, errors.New("no lab with a real node is running: start one with \"lab up --real-node\", or say --kubelet-dir")
	case len(found) == 0:
		return plane.RunningNode{}, fmt.Errorf("no running lab has a real node %s: there are %s", name, strings.Join(names, ", "))
	case name == "":
		return plane.RunningNode{}, fmt.Errorf("there are several real nodes, choose one: --node %s", strings.Join(slices.Compact(names), ", or --node "))
	default:
		var dirs []string
		for _, n := range found {
			dirs = append(dirs, n.KubeletDir)
		}
		return plane.RunningNode{}, fmt.Errorf("several labs have a node %s, choose one: --kubelet-dir %s", name, strings.Join(dirs, ", or --kubelet-dir "))
	}
}

// runningNodes are the real nodes of all labs that are running.
func runningNodes() ([]plane.RunningNode, error) {
	labs, err := plane.FindRunning()
	if err != nil {
		return nil, fmt.Errorf("look for a running lab: %w", err)
	}
	var nodes []plane.RunningNode
	for _, lab := range labs {
		nodes = append(nodes, lab.Nodes...)
	}
	return nodes, nil
}
