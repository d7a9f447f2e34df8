package plugin

import (
	"context"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// completionPatience is how long a shell may be kept waiting.
const completionPatience = 3 * time.Second

// Args are the arguments for a process that was called by this name. kubectl completes
// arguments of a plugin by calling kubectl_complete-<plugin> with what has been typed; a
// link of that name to this program is all it takes.
func Args(name string, args []string) []string {
	if base := strings.TrimSuffix(filepath.Base(name), ".exe"); strings.HasPrefix(base, "kubectl_complete-") {
		return append([]string{cobra.ShellCompRequestCmd}, args...)
	}
	return args
}

// completes registers the completion of a flag's value.
func (c *common) completes(cmd *cobra.Command, flag string, complete cobra.CompletionFunc) {
	_ = cmd.RegisterFlagCompletionFunc(flag, complete) // the flag is there
}

func (c *common) addCompletions(root *cobra.Command) {
	c.completes(root, "output", cobra.FixedCompletions(formats, cobra.ShellCompDirectiveNoFileComp))
	c.completes(root, "context", c.fromKubeconfig(func(k clientcmdapi.Config) []string { return keys(k.Contexts) }))
	c.completes(root, "cluster", c.fromKubeconfig(func(k clientcmdapi.Config) []string { return keys(k.Clusters) }))
	c.completes(root, "user", c.fromKubeconfig(func(k clientcmdapi.Config) []string { return keys(k.AuthInfos) }))
	c.completes(root, "namespace", c.completeNamespaces)
}

func (c *common) fromKubeconfig(list func(clientcmdapi.Config) []string) cobra.CompletionFunc {
	return func(*cobra.Command, []string, string) ([]cobra.Completion, cobra.ShellCompDirective) {
		config, err := c.config.ToRawKubeConfigLoader().RawConfig()
		if err != nil {
			return nil, cobra.ShellCompDirectiveError
		}
		return list(config), cobra.ShellCompDirectiveNoFileComp
	}
}

func (c *common) completeModels(cmd *cobra.Command, _ []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
	return c.completeCounted(cmd, func(r *reading) []string { return modelsOf(r.snapshot) })
}

// completeNodes offers the nodes with GPUs that are not named yet.
func (c *common) completeNodes(cmd *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
	return c.completeCounted(cmd, func(r *reading) (nodes []string) {
		for i := range r.snapshot.Rows {
			if node := r.snapshot.Rows[i].Node; !slices.Contains(args, node) {
				nodes = append(nodes, node)
			}
		}
		return once(nodes)
	})
}

// completeCounted reads as the command itself would, so that what is offered exists
// there. Standard input is left for the command.
func (c *common) completeCounted(cmd *cobra.Command, list func(*reading) []string) ([]cobra.Completion, cobra.ShellCompDirective) {
	if c.from == "-" {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	ctx, cancel := context.WithTimeout(cmd.Context(), completionPatience)
	defer cancel()
	r, err := c.count(ctx, wants{nodes: useful})
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	return list(r), cobra.ShellCompDirectiveNoFileComp
}

func (c *common) completeNamespaces(cmd *cobra.Command, _ []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
	ctx, cancel := context.WithTimeout(cmd.Context(), completionPatience)
	defer cancel()
	client, err := c.connect()
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	list, err := client.CoreV1().Namespaces().List(ctx, metav1.ListOptions{Limit: 500})
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	var names []string
	for i := range list.Items {
		names = append(names, list.Items[i].Name)
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}
