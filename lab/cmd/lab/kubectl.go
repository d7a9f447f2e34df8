package main

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/gpu-summary/gpu-summary-controller/lab/compile"
	"github.com/gpu-summary/gpu-summary-controller/lab/plane"
)

// kubectl is built in the module of the tools.
var kubectl = compile.Job{
	Name:  "kubectl",
	Of:    "kubectl " + plane.KubernetesVersion,
	Long:  "which takes some minutes",
	Mains: []string{"./kubectl"},
	Flags: []string{"-buildvcs=false", "-ldflags=-s -w"},
}

func newKubectlCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "kubectl [arguments]",
		Short: "Run kubectl in the running lab",
		Long: `Kubectl runs kubectl ` + plane.KubernetesVersion + `, which is built the first time, in the lab that is running.
Where several are, --kubeconfig says which one. All arguments are kubectl's own.`,
		Example: `  lab kubectl get nodes
  lab kubectl --kubeconfig /tmp/lab/kubeconfig get pods --all-namespaces`,
		// All flags are the program's.
		DisableFlagParsing: true,
		RunE: func(cmd *cobra.Command, args []string) error {
			env, err := kubectlEnvironment(args, os.Environ())
			if err != nil {
				return err
			}
			path, err := beside(cmd.Context(), kubectl, "tools", "kubectl", cmd.ErrOrStderr())
			if err != nil {
				return err
			}
			return become(path, "kubectl", args, env)
		},
	}
}

// kubectlEnvironment has kubectl read the running lab's kubeconfig, unless the user
// names one. A kubeconfig of the environment is that of another cluster.
func kubectlEnvironment(args, env []string) ([]string, error) {
	for _, arg := range args {
		if arg == "--" { // what follows is a command's in a pod
			break
		}
		if arg == "--kubeconfig" || strings.HasPrefix(arg, "--kubeconfig=") {
			return env, nil
		}
	}
	labs, err := runningLabs()
	if err != nil {
		return nil, fmt.Errorf("look for a running lab: %w", err)
	}
	switch len(labs) {
	case 0:
		return nil, errors.New("no lab is running: start one with \"lab up\"")
	case 1:
		return append(env, "KUBECONFIG="+labs[0]), nil
	default:
		return nil, fmt.Errorf("%d labs are running, choose one: --kubeconfig %s", len(labs), strings.Join(labs, ", or --kubeconfig "))
	}
}
