package plugin

import (
	"encoding/csv"
	"encoding/json"
	"regexp"
	"strings"
	"testing"
	"unicode"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"
)

// evil clears the screen, names the window, colours with an escape of one character,
// turns the direction of writing, and begins as a formula.
const evil = "=cmd|' /C calc'!A0\x1b[2J\x1b]0;pwned\x07\u009b31m\u202egpj\u200b\U000e0041\r\n\x00\x7f"

// hostileDump has evil in everything that is shown and that a dump can have it in.
func hostileDump(t *testing.T) string {
	t.Helper()
	meta := metav1.ObjectMeta{Name: evil, Namespace: evil, Labels: map[string]string{"nvidia.com/gpu.product": evil, "pod-template-hash": evil}}
	meta.OwnerReferences = []metav1.OwnerReference{{Kind: evil, Name: evil, Controller: new(true)}}
	devices := corev1.ResourceList{gpu: quantity(2), "example.com/" + evil: quantity(1)}
	pod := corev1.Pod{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"}, ObjectMeta: meta}
	pod.Spec.Containers = []corev1.Container{{Name: evil, Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{gpu: quantity(1)}}}}
	held := *pod.DeepCopy()
	held.Name, held.Spec.NodeName, held.Status.Phase = "held"+evil, evil, evil
	pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable, Message: evil}}
	node := corev1.Node{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Node"}, ObjectMeta: meta, Status: corev1.NodeStatus{Capacity: devices, Allocatable: devices}}
	node.Namespace = ""
	node.Spec.Taints = []corev1.Taint{{Key: evil, Value: evil, Effect: corev1.TaintEffectNoSchedule}}
	other := map[string]any{"apiVersion": "v1", "kind": evil, "metadata": map[string]any{"name": evil}}
	broken := map[string]any{"apiVersion": "v1", "kind": "Pod", "metadata": map[string]any{"name": evil, "labels": evil}}
	text, err := json.Marshal(map[string]any{"apiVersion": "v1", "kind": "List", "items": []any{pod, held, node, other, broken}})
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// ours are the sequences that this package writes itself.
var ours = regexp.MustCompile(`\x1b\[([0-9]*m|H|K|J)`)

// TestNothingHostileReachesTheTerminal, whatever is shown, also in errors.
func TestNothingHostileReachesTheTerminal(t *testing.T) {
	dump := hostileDump(t)
	var shown int
	for _, subcommand := range append(subcommands, "model", "nobody") {
		for _, f := range append([]string{""}, formats...) {
			for _, s := range []screen{{}, {terminal: true, colour: true, width: 60, unicode: true}} {
				args := []string{subcommand, "--from", "-"}
				switch subcommand {
				case "describe":
					args = append(args, evil)
				case "model":
					args = append(args[1:], "nodes", "--model", "none")
				case "nobody":
					args = append(args[1:], "describe", evil+"!")
				}
				if f != "" {
					args = append(args, "-o", f)
				}
				got := stand{in: dump, screen: s}.run(t, args...)
				text := got.out + got.err
				for _, sequence := range ours.FindAllString(text, -1) {
					if !s.colour {
						t.Errorf("%q: %q in what goes to no terminal", args, sequence)
					}
				}
				text = ours.ReplaceAllString(text, "")
				if i := strings.IndexFunc(text, func(r rune) bool { return r != '\n' && (unicode.IsControl(r) || unicode.Is(unicode.Cf, r)) }); i >= 0 {
					t.Errorf("%q prints %q", args, text[max(0, i-20):min(len(text), i+20)])
				}
				if strings.Contains(text, "calc") {
					shown++
				}
			}
		}
	}
	if want := 2 * 6 * len(subcommands); shown < want {
		t.Errorf("the hostile text was in %d outputs of at least %d; is it still what is shown?", shown, want)
	}
}

// TestHostileTextIsDataAllTheSame: in JSON and YAML it is escaped, not lost.
func TestHostileTextIsDataAllTheSame(t *testing.T) {
	for _, f := range []string{"json", "yaml"} {
		got := stand{in: hostileDump(t)}.run(t, "pending", "--from", "-", "-o", f)
		var document pendingDocument
		parse := json.Unmarshal
		if f == "yaml" {
			parse = func(b []byte, to any) error { return yaml.Unmarshal(b, to) }
		}
		if err := parse([]byte(got.out), &document); err != nil {
			t.Fatalf("%s: %v in\n%s", f, err, got.out)
		}
		if len(document.Rows) != 1 || document.Rows[0].Message != evil || document.Rows[0].Pod != evil {
			t.Errorf("%s: %#v from\n%s", f, document.Rows, got.out)
		}
	}
}

// TestNoCellIsAFormula: a spreadsheet would evaluate one. Numbers are left as they are.
func TestNoCellIsAFormula(t *testing.T) {
	for _, in := range []string{"=1+1", "+1", "-1", "@SUM(A1)", "\x00=1"} {
		if got := text(in).asCSV(); got != "'"+clean(in) {
			t.Errorf("%q is %q in CSV", in, got)
		}
	}
	for _, c := range []cell{number(-5), text("a=1"), text("")} {
		if got := c.asCSV(); got != c.text {
			t.Errorf("%q is %q in CSV", c.text, got)
		}
	}
	for _, subcommand := range subcommands {
		args := []string{subcommand, "--from", "-", "-o", "csv"}
		if subcommand == "describe" {
			args = append(args, evil)
		}
		got := stand{in: hostileDump(t)}.run(t, args...)
		records, err := csv.NewReader(strings.NewReader(got.out)).ReadAll()
		if err != nil {
			t.Fatalf("%s: %v in\n%s", subcommand, err, got.out)
		}
		for _, record := range records {
			for _, field := range record {
				if field != "" && strings.ContainsAny(field[:1], "=+-@") {
					t.Errorf("%s has the field %q", subcommand, field)
				}
			}
		}
	}
}
