package preflight

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
)

// report answers the needs of the manifests' controller: what lacks says is missing.
func report(o Options, lacks func(Answer) bool) Report {
	r := Report{Server: "https://lab", User: "system:serviceaccount:gpu-summary:default"}
	for _, n := range o.Needs() {
		for _, verb := range n.Verbs {
			a := Answer{Need: n, Verb: verb}
			a.Allowed = !lacks(a)
			r.Answers = append(r.Answers, a)
		}
	}
	return r
}

func all(Answer) bool  { return true }
func none(Answer) bool { return false }

func written(t *testing.T, r Report, f Format) string {
	t.Helper()
	var b bytes.Buffer
	if err := r.Write(&b, f); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

const someMissing = `system:serviceaccount:gpu-summary:default on https://lab has 18 of 21 permissions; 3 missing, 2 of them required.

STATUS              VERBS           RESOURCE                                                 WHERE           WHAT FOR
missing             watch           pods                                                     cluster-wide    to count what they request
missing             delete          configmaps                                               in gpu-summary  to remove what is published no more
missing (optional)  list            resourceclaims.resource.k8s.io                           cluster-wide    to count devices of DRA drivers; without it GPUs of DRA drivers are not counted
allowed             list            pods                                                     cluster-wide    to count what they request
allowed             list, watch     nodes                                                    cluster-wide    to know what they have
allowed             list, watch     deviceclasses.resource.k8s.io                            cluster-wide    to count devices of DRA drivers
allowed             watch           resourceclaims.resource.k8s.io                           cluster-wide    to count devices of DRA drivers
allowed             list, watch     resourceslices.resource.k8s.io                           cluster-wide    to count devices of DRA drivers
allowed             list, watch     configmaps                                               in gpu-summary  to see what is published
allowed             get             configmaps                                               in gpu-summary  to find one that has lost its labels
allowed             create, update  configmaps                                               in gpu-summary  to publish
allowed             get, update     leases.coordination.k8s.io named gpu-summary-controller  in gpu-summary  to agree on which replica writes
allowed             create          leases.coordination.k8s.io                               in gpu-summary  to agree on which replica writes
allowed             create          events.events.k8s.io                                     in gpu-summary  to report how publishing goes
allowed             create          events.events.k8s.io                                     in default      to report nodes that are overcommitted

The API server adds:
  role "x" not found

Rules to add, which "-o yaml" prints with roles and bindings for kubectl apply:

# to a ClusterRole
# to count what they request
- apiGroups: [""]
  resources: ["pods"]
  verbs: ["watch"]
# to count devices of DRA drivers; without it GPUs of DRA drivers are not counted
- apiGroups: ["resource.k8s.io"]
  resources: ["resourceclaims"]
  verbs: ["list"]

# to a Role in namespace gpu-summary
# to remove what is published no more
- apiGroups: [""]
  resources: ["configmaps"]
  verbs: ["delete"]
`

func lacksSome(a Answer) bool {
	return slices.Contains([]string{"pods/watch", "configmaps/delete", "resourceclaims/list"}, a.Resource+"/"+a.Verb)
}

// TestTheTableShowsWhatIsMissingFirst, and then what to do about it.
func TestTheTableShowsWhatIsMissingFirst(t *testing.T) {
	r := report(shipped, lacksSome)
	for i := range r.Answers {
		// Said of each question, it is the same news.
		r.Answers[i].EvaluationError = "role \"x\"\n not found"
	}
	if diff := cmp.Diff(someMissing, written(t, r, Table)); diff != "" {
		t.Errorf("table (-want +got):\n%s", diff)
	}
}

// TestColoursChangeNothingElse: columns are as wide with them.
func TestColoursChangeNothingElse(t *testing.T) {
	r := report(shipped, lacksSome)
	plain, coloured := string(r.table(false)), string(r.table(true))
	if strings.Contains(plain, "\x1b") || !strings.Contains(coloured, "\x1b[31mmissing\x1b[0m  ") || !strings.Contains(coloured, "\x1b[33mmissing (optional)\x1b[0m  ") {
		t.Errorf("colours are not where they should be:\n%s", coloured)
	}
	for _, escape := range []string{"\x1b[31m", "\x1b[32m", "\x1b[33m", "\x1b[0m"} {
		coloured = strings.ReplaceAll(coloured, escape, "")
	}
	if coloured != plain {
		t.Errorf("colours change the text:\n%s", coloured)
	}
}

// TestNothingMissing says so, and has no rule to add.
func TestNothingMissing(t *testing.T) {
	r := report(shipped, none)
	if text := written(t, r, Table); !strings.HasPrefix(text, r.User+" on https://lab has all 21 permissions.\n") || strings.Contains(text, "Rules") {
		t.Errorf("table:\n%s", text)
	}
	if text := written(t, r, YAML); text != "# No permission is missing.\n" {
		t.Errorf("YAML: %q", text)
	}
	if text := r.advice(); text != "no permission is missing" {
		t.Errorf("advice: %q", text)
	}
}

// TestTheRulesGrantExactlyWhatIsMissing, whatever that is: read back, they are the
// same permissions.
func TestTheRulesGrantExactlyWhatIsMissing(t *testing.T) {
	pods := everything
	pods.WatchNamespace = "true" // a name, and in YAML not one
	for _, o := range []Options{everything, pods} {
		total := len(report(o, all).Answers)
		missing := [][]int{nil} // everything, then each alone and with each other
		for i := range total {
			missing[0] = append(missing[0], i)
			for j := range i + 1 {
				missing = append(missing, []int{j, i})
			}
		}
		for _, numbers := range missing {
			n := -1
			r := report(o, func(Answer) bool { n++; return slices.Contains(numbers, n) })
			var want []string
			for _, a := range r.Answers {
				if !a.Allowed {
					want = append(want, key(a.Namespace, a.Group, a.Resource, a.Name, a.Verb))
				}
			}
			slices.Sort(want)
			if diff := cmp.Diff(want, granted(t, r.yaml())); diff != "" {
				t.Errorf("rules (-missing +granted):\n%s", diff)
			}
		}
	}
}

// TestSubresourcesAreNamed as RBAC and people name them.
func TestSubresourcesAreNamed(t *testing.T) {
	need := Need{Group: "apps", Resource: "deployments", Subresource: "scale", Verbs: []string{"get"}}
	r := Report{Answers: []Answer{{Need: need, Verb: "get"}}}
	if got, want := granted(t, r.yaml()), key("", "apps", "deployments/scale", "", "get"); !slices.Equal(got, []string{want}) {
		t.Errorf("granted is %q, want %q", got, want)
	}
	if got := need.object(); got != "deployments/scale.apps" {
		t.Errorf("called %q", got)
	}
}

// TestTheRulesAreFew: all that the manifests' controller needs are no more rules
// than somebody would write.
func TestTheRulesAreFew(t *testing.T) {
	var got []string
	for _, object := range decode(t, report(shipped, all).yaml()) {
		var rules []rbacv1.PolicyRule
		switch role := object.(type) {
		case *rbacv1.ClusterRole:
			rules = role.Rules
		case *rbacv1.Role:
			rules = role.Rules
		}
		for _, r := range rules {
			got = append(got, fmt.Sprint(r.Resources, r.ResourceNames, r.Verbs))
		}
	}
	want := []string{
		"[pods nodes] [] [list watch]",
		"[deviceclasses resourceclaims resourceslices] [] [list watch]",
		"[events] [] [create]",
		"[configmaps] [] [list watch get create update delete]",
		"[leases] [gpu-summary-controller] [get update]",
		"[leases] [] [create]",
		"[events] [] [create]",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("rules (-want +got):\n%s", diff)
	}
}

// TestRolesAreBoundToWhoAsked: to a service account as one, to others by name.
func TestRolesAreBoundToWhoAsked(t *testing.T) {
	for user, want := range map[string][]rbacv1.Subject{
		"system:serviceaccount:a:b": {{Kind: "ServiceAccount", Namespace: "a", Name: "b"}},
		"yes":                       {{Kind: "User", APIGroup: rbacv1.GroupName, Name: "yes"}},
		"a: [\"b\"]":                {{Kind: "User", APIGroup: rbacv1.GroupName, Name: "a: [\"b\"]"}},
		"":                          {},
	} {
		r := report(shipped, all)
		r.User = user
		roles := map[string]bool{}
		var bindings int
		for _, object := range decode(t, r.yaml()) {
			switch o := object.(type) {
			case *rbacv1.ClusterRole:
				roles["ClusterRole "+o.Name] = true
			case *rbacv1.Role:
				roles["Role "+o.Name] = true
			case *rbacv1.ClusterRoleBinding:
				bindings++
				if diff := cmp.Diff(want, o.Subjects); diff != "" || !roles[o.RoleRef.Kind+" "+o.RoleRef.Name] {
					t.Errorf("%q, bound to %v (-want +got):\n%s", user, o.RoleRef, diff)
				}
			case *rbacv1.RoleBinding:
				bindings++
				if diff := cmp.Diff(want, o.Subjects); diff != "" || !roles[o.RoleRef.Kind+" "+o.RoleRef.Name] || o.Namespace != "gpu-summary" && o.Namespace != "default" {
					t.Errorf("%q, bound to %v (-want +got):\n%s", user, o.RoleRef, diff)
				}
			}
		}
		if bindings != 3 {
			t.Errorf("%q: %d bindings, want 3", user, bindings)
		}
	}
}

// TestOtherRulesHaveAnotherName: applied one after the other, neither takes away
// what the other gave.
func TestOtherRulesHaveAnotherName(t *testing.T) {
	name := func(lacks func(Answer) bool) string {
		return byNamespace(report(shipped, lacks).rules())[0].name()
	}
	some := name(lacksSome)
	if some != name(lacksSome) || some == name(all) {
		t.Errorf("names are %s, %s and %s", some, name(lacksSome), name(all))
	}
}

// TestJSONIsForPrograms: every answer, the missing ones first.
func TestJSONIsForPrograms(t *testing.T) {
	var got struct {
		Server, User                     string
		MissingRequired, MissingOptional int
		Permissions                      []struct {
			Verb, Group, Resource, Namespace, Name, For, Without, Instead string
			Allowed, Required                                             bool
		}
	}
	if err := json.Unmarshal([]byte(written(t, report(shipped, lacksSome), JSON)), &got); err != nil {
		t.Fatal(err)
	}
	if got.Server != "https://lab" || got.MissingRequired != 2 || got.MissingOptional != 1 || len(got.Permissions) != 21 {
		t.Errorf("got %+v", got)
	}
	for i, want := range []string{"watch pods true", "delete configmaps true", "list resourceclaims false"} {
		p := got.Permissions[i]
		if said := fmt.Sprintf("%s %s %t", p.Verb, p.Resource, p.Required); said != want || p.Allowed {
			t.Errorf("permission %d is %s, allowed %t; want %s", i, said, p.Allowed, want)
		}
	}
}

// TestTheAdviceNamesEachVerb, and the flag that does without where there is one.
func TestTheAdviceNamesEachVerb(t *testing.T) {
	advice := report(shipped, func(a Answer) bool { return lacksSome(a) || a.Resource == "nodes" && a.Verb == "list" }).advice()
	for _, want := range []string{
		`grant the verb "watch" on pods cluster-wide: to count what they request`,
		`grant the verb "list" on nodes cluster-wide: to know what they have; --watch-nodes=false does without`,
		`grant the verb "delete" on configmaps in gpu-summary: `,
		`grant the verb "list" on resourceclaims.resource.k8s.io cluster-wide: to count devices of DRA drivers; without it GPUs`,
		"gpu-summary-controller preflight",
	} {
		if !strings.Contains(advice, want) {
			t.Errorf("the advice does not say %q:\n%s", want, advice)
		}
	}
	if lines := strings.Count(advice, "\n"); lines != 4 {
		t.Errorf("%d lines, want 4:\n%s", lines, advice)
	}
}

func TestFormatsAreChecked(t *testing.T) {
	for _, f := range []Format{Table, JSON, YAML} {
		if err := f.Check(); err != nil {
			t.Error(err)
		}
	}
	if err := Format("xml").Check(); err == nil || !strings.Contains(err.Error(), "--output=xml") {
		t.Errorf("error %v", err)
	}
}
