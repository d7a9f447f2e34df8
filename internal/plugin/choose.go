package plugin

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/gpu-summary/gpu-summary-controller/internal/count"
)

// order is something that rows can be sorted by.
type order[T any] struct {
	name    string
	compare func(a, b T) int
}

// sorting is --sort-by.
type sorting[T any] struct {
	orders []order[T]
	by     string
}

func (s *sorting[T]) addFlags(cmd *cobra.Command) {
	names := s.names()
	cmd.Flags().StringVar(&s.by, "sort-by", "", "sort by this `column`, the other way round behind a -: "+strings.Join(names, ", "))
	_ = cmd.RegisterFlagCompletionFunc("sort-by", cobra.FixedCompletions(names, cobra.ShellCompDirectiveNoFileComp)) // the flag is there
}

func (s *sorting[T]) names() (names []string) {
	for _, o := range s.orders {
		names = append(names, o.name)
	}
	return names
}

// sort returns the rows in the order asked for. Rows that are equal in it keep theirs.
func (s *sorting[T]) sort(rows []T) ([]T, error) {
	if s.by == "" {
		return rows, nil
	}
	name, reverse := strings.CutPrefix(strings.ToLower(s.by), "-")
	i := slices.IndexFunc(s.orders, func(o order[T]) bool { return o.name == name })
	if i < 0 {
		return nil, fmt.Errorf("--sort-by=%s: want one of %s", s.by, strings.Join(s.names(), ", "))
	}
	compare, rows := s.orders[i].compare, slices.Clone(rows)
	slices.SortStableFunc(rows, func(a, b T) int {
		if reverse {
			return compare(b, a)
		}
		return compare(a, b)
	})
	return rows, nil
}

// selection is --selector.
type selection struct{ labels string }

func (s *selection) addFlags(cmd *cobra.Command, what string) {
	cmd.Flags().StringVarP(&s.labels, "selector", "l", "", "only "+what+" with these `labels`, as in kubectl get -l")
}

// selector is nil when nothing is selected.
func (s *selection) selector() (labels.Selector, error) {
	if s.labels == "" {
		return nil, nil //nolint:nilnil // no selector and no error
	}
	selector, err := labels.Parse(s.labels)
	if err != nil {
		return nil, fmt.Errorf("--selector=%s: %w", s.labels, err)
	}
	return selector, nil
}

var errLabels = errors.New("--selector: the published ConfigMaps do not have the labels of nodes and pods; leave out --from-configmap")

// addAllNamespaces takes what everybody types out of habit. All namespaces are read
// anyway, and so it only contradicts -n.
func (c *common) addAllNamespaces(cmd *cobra.Command) {
	cmd.Flags().BoolP("all-namespaces", "A", false, "show all namespaces, as without -n")
	cmd.PreRunE = func(cmd *cobra.Command, _ []string) error {
		if all, _ := cmd.Flags().GetBool("all-namespaces"); all {
			*c.config.Namespace = ""
		}
		return nil
	}
}

// where says in which namespace, in messages.
func (c *common) where() string {
	if c.only() == "" || c.fromConfigMap != "" {
		return ""
	}
	return "in namespace " + c.only() + " "
}

func filter[T any](rows []T, keep func(T) bool) (out []T) {
	for _, row := range rows {
		if keep(row) {
			out = append(out, row)
		}
	}
	return out
}

// known names the choices when something is none of them.
func known(flag, value string, choices []string) error {
	switch {
	case slices.Contains(choices, value):
		return nil
	case len(choices) == 0:
		return fmt.Errorf("--%s=%s: there is none at all", flag, value)
	}
	return fmt.Errorf("--%s=%s: there is no such %s; there are: %s", flag, value, flag, list(choices))
}

// list names some names, not all of them if there are many.
func list(names []string) string {
	const most = 20
	if len(names) > most {
		return strings.Join(names[:most], ", ") + fmt.Sprintf(" and %d more", len(names)-most)
	}
	return strings.Join(names, ", ")
}

// modelsOf lists the models that there are, sorted.
func modelsOf(snapshot *count.Snapshot) (models []string) {
	for i := range snapshot.Summaries {
		for j := range snapshot.Summaries[i].Models {
			models = append(models, snapshot.Summaries[i].Models[j].Name)
		}
	}
	slices.Sort(models)
	return slices.Compact(models)
}

func sorted[T cmp.Ordered](values []T) []T {
	slices.Sort(values)
	return slices.Compact(values)
}

func keys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
