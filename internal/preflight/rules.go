package preflight

import (
	"cmp"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"slices"
	"strings"
)

// rule is an RBAC rule. Namespace says which role it belongs in.
type rule struct {
	namespace, group, name string
	resources, verbs, why  []string
}

// rules returns what would grant the missing permissions, in as few rules as say
// exactly that: verbs of the same object are put together, then objects of the same
// verbs.
func (r Report) rules() []rule {
	var objects []rule
	for _, a := range r.Answers {
		if a.Allowed {
			continue
		}
		resource := a.Resource
		if a.Subresource != "" {
			resource += "/" + a.Subresource
		}
		next := rule{a.Namespace, a.Group, a.Name, []string{resource}, []string{a.Verb}, []string{a.why()}}
		objects = merge(objects, next, func(o rule) bool { return o.resources[0] == resource })
	}
	var rules []rule
	for _, next := range objects {
		rules = merge(rules, next, func(o rule) bool { return slices.Equal(o.verbs, next.verbs) })
	}
	return rules
}

// merge adds a rule to the first of the same group, name and namespace that is like
// it, or else behind all.
func merge(rules []rule, next rule, like func(rule) bool) []rule {
	i := slices.IndexFunc(rules, func(o rule) bool {
		return o.namespace == next.namespace && o.group == next.group && o.name == next.name && like(o)
	})
	if i < 0 {
		return append(rules, next)
	}
	rules[i].resources = union(rules[i].resources, next.resources)
	rules[i].verbs = union(rules[i].verbs, next.verbs)
	rules[i].why = union(rules[i].why, next.why)
	return rules
}

func union(a, b []string) []string {
	for _, s := range b {
		if !slices.Contains(a, s) {
			a = append(a, s)
		}
	}
	return a
}

func (r rule) text() string {
	var b strings.Builder
	for _, why := range r.why {
		fmt.Fprintf(&b, "# %s\n", why)
	}
	fmt.Fprintf(&b, "- apiGroups: %s\n  resources: %s\n", quote(r.group), quote(r.resources...))
	if r.name != "" {
		fmt.Fprintf(&b, "  resourceNames: %s\n", quote(r.name))
	}
	fmt.Fprintf(&b, "  verbs: %s\n", quote(r.verbs...))
	return b.String()
}

// quote writes a list as JSON, which YAML reads as it is, also where a name would
// be a number or a truth value.
func quote(list ...string) string {
	text, err := json.Marshal(list)
	if err != nil {
		panic(err) // strings can always be encoded
	}
	return strings.ReplaceAll(string(text), `","`, `", "`)
}

func quoteOne(s string) string {
	return strings.Trim(quote(s), "[]")
}

// role holds the rules of one namespace, "" being the cluster.
type role struct {
	namespace string
	rules     []rule
}

func byNamespace(rules []rule) (roles []role) {
	for _, next := range rules {
		i := slices.IndexFunc(roles, func(o role) bool { return o.namespace == next.namespace })
		if i < 0 {
			i = len(roles)
			roles = append(roles, role{namespace: next.namespace})
		}
		roles[i].rules = append(roles[i].rules, next)
	}
	slices.SortStableFunc(roles, func(a, b role) int { return cmp.Compare(a.namespace, b.namespace) })
	return roles
}

func (r role) kind() string {
	if r.namespace == "" {
		return "ClusterRole"
	}
	return "Role"
}

func (r role) title() string {
	if r.namespace == "" {
		return "ClusterRole"
	}
	return "Role in namespace " + r.namespace
}

func (r role) text() string {
	var b strings.Builder
	for _, rule := range r.rules {
		b.WriteString(rule.text())
	}
	return b.String()
}

// name is another for other rules. Under one name, what is applied today would take
// away what was applied yesterday.
func (r role) name() string {
	sum := fnv.New32a()
	for _, rule := range r.rules {
		fmt.Fprint(sum, quote(rule.group), quote(rule.resources...), quote(rule.name), quote(rule.verbs...))
	}
	return fmt.Sprintf("gpu-summary-controller-preflight-%08x", sum.Sum32())
}

// yaml returns roles and bindings that grant what is missing.
func (r Report) yaml() []byte {
	roles := byNamespace(r.rules())
	if len(roles) == 0 {
		return []byte("# No permission is missing.\n")
	}
	var documents []string
	for _, role := range roles {
		meta := "metadata:\n  name: " + role.name() + "\n"
		if role.namespace != "" {
			meta += "  namespace: " + quoteOne(role.namespace) + "\n"
		}
		head := "apiVersion: rbac.authorization.k8s.io/v1\nkind: " + role.kind()
		documents = append(documents,
			head+"\n"+meta+"rules:\n"+role.text(),
			head+"Binding\n"+meta+"roleRef:\n  apiGroup: rbac.authorization.k8s.io\n  kind: "+role.kind()+"\n  name: "+role.name()+"\n"+subjects(r.User))
	}
	return []byte(strings.Join(documents, "---\n"))
}

// subjects is who gets a role.
func subjects(user string) string {
	if user == "" {
		return "# The API server did not say who this is about.\nsubjects: []\n"
	}
	if account, ok := strings.CutPrefix(user, "system:serviceaccount:"); ok {
		if namespace, name, ok := strings.Cut(account, ":"); ok {
			return "subjects:\n- kind: ServiceAccount\n  name: " + quoteOne(name) + "\n  namespace: " + quoteOne(namespace) + "\n"
		}
	}
	return "subjects:\n- apiGroup: rbac.authorization.k8s.io\n  kind: User\n  name: " + quoteOne(user) + "\n"
}
