package plugin

import (
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// TestCompletion: what is offered, as a shell is told.
func TestCompletion(t *testing.T) {
	for name, tc := range map[string]struct {
		args []string
		want []string // among the words
	}{
		"subcommands": {[]string{""}, []string{"claims", "completion", "describe", "models", "namespaces", "nodes", "pending", "pods"}},
		"format":      {[]string{"pods", "-o", ""}, formats},
		"sort":        {[]string{"pods", "--sort-by", ""}, []string{"gpus", "age", "priority"}},
		"at the root": {[]string{"--sort-by", ""}, []string{"usable"}},
		"model":       {[]string{"--from", world, "nodes", "--model", ""}, []string{"NVIDIA-A100-SXM4-40GB", "NVIDIA-H100-80GB-HBM3"}},
		"node":        {[]string{"--from", world, "describe", "node-a", ""}, []string{"node-b", "node-x"}},
		"of pods":     {[]string{"--from", world, "pods", "--node", "node-"}, []string{"node-a"}},
	} {
		t.Run(name, func(t *testing.T) {
			for _, args := range [][]string{
				append([]string{cobra.ShellCompRequestCmd}, tc.args...),
				Args("/somewhere/kubectl_complete-gpu_summary", tc.args),
			} {
				var words []string
				for line := range strings.Lines((stand{}).run(t, args...).out) {
					word, _, _ := strings.Cut(strings.TrimSpace(line), "\t")
					words = append(words, word)
				}
				for _, want := range tc.want {
					if !slices.Contains(words, want) {
						t.Errorf("%q: no %s among %q", args, want, words)
					}
				}
				if name == "node" && slices.Contains(words, "node-a") {
					t.Error("a node that is named is offered again")
				}
			}
		})
	}
	if got := Args("kubectl-gpu_summary", []string{"pods"}); !slices.Equal(got, []string{"pods"}) {
		t.Errorf("called by its own name the arguments are %q", got)
	}
}

// TestHelp: every subcommand says what it does and has examples, and each of them can be
// parsed.
func TestHelp(t *testing.T) {
	c, _, _ := stand{}.common()
	root := c.command()
	for _, cmd := range append(root.Commands(), root) {
		if cmd.Name() == "help" || cmd.Name() == "completion" {
			continue
		}
		if cmd.Short == "" || cmd.Example == "" {
			t.Errorf("%s has no examples", cmd.Name())
		}
		for example := range strings.Lines(cmd.Example) {
			example = strings.TrimSpace(example)
			if strings.HasPrefix(example, "#") || !strings.Contains(example, display) {
				continue
			}
			_, args, _ := strings.Cut(example, display)
			args, _, _ = strings.Cut(args, "|")
			args, _, _ = strings.Cut(args, ">")
			c, _, _ := stand{}.common()
			found, rest, err := c.command().Find(strings.Fields(args))
			if err == nil {
				err = found.ParseFlags(rest)
			}
			if err != nil {
				t.Errorf("%s: %s: %v", cmd.Name(), example, err)
			}
		}
		cmd.LocalFlags().VisitAll(func(f *pflag.Flag) {
			if f.Usage == "" {
				t.Errorf("%s: --%s says nothing of itself", cmd.Name(), f.Name)
			}
		})
	}
	for _, want := range []string{"--context", "--kubeconfig", "--namespace", "--as", "--request-timeout", "--from", "--from-configmap", "--no-color"} {
		if !strings.Contains((stand{}).run(t, "pods", "--help").out, want) {
			t.Errorf("the help of pods has no %s", want)
		}
	}
}
