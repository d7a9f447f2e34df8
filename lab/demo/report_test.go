package demo

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/gpu-summary/gpu-summary-controller/internal/count"
)

var update = flag.Bool("update", false, "write the golden files anew")

func names(rows []Row) string {
	var all []string
	for _, r := range rows {
		all = append(all, r.Node)
	}
	return strings.Join(all, " ")
}

func TestOrders(t *testing.T) {
	rows := []Row{
		{Node: "empty-2", Allocatable: 2},
		{Node: "third-of-3", Allocatable: 3, Requested: 1},
		{Node: "half-of-8", Allocatable: 8, Requested: 4},
		{Node: "third-of-6", Allocatable: 6, Requested: 2},
		{Node: "broken-and-empty"},
		{Node: "full-8b", Allocatable: 8, Requested: 8},
		{Node: "over", Allocatable: 4, Requested: 5},
		{Node: "full-8a", Allocatable: 8, Requested: 8},
		{Node: "full-1", Allocatable: 1, Requested: 1},
		{Node: "broken", Requested: 3},
		{Node: "empty-4", Allocatable: 4},
	}
	for what, tc := range map[string]struct {
		got  []Row
		want string
	}{
		"fullest":       {first(99, rows, fuller, hasPods), "broken over full-8a full-8b full-1 half-of-8 third-of-6 third-of-3"},
		"emptiest":      {first(99, rows, emptier, hasRoom), "empty-4 third-of-6 half-of-8 empty-2 third-of-3"},
		"overcommitted": {first(99, rows, overflow, overcommitted), "broken over"},
		"only so many":  {first(2, rows, emptier, hasRoom), "empty-4 third-of-6"},
		"of none":       {first(2, nil, emptier, hasRoom), ""},
	} {
		if got := names(tc.got); got != tc.want {
			t.Errorf("%s:\ngot  %s\nwant %s", what, got, tc.want)
		}
	}
	// The order must not hang on the order of the input.
	slices.Reverse(rows)
	if got := names(first(3, rows, fuller, hasPods)); got != "broken over full-8a" {
		t.Errorf("from the other end: %s", got)
	}
}

func TestNewReport(t *testing.T) {
	r := newReport(Published{Requested: 3, Rows: map[string]int64{"b": 1, "a": 2, "gone": 0}},
		map[string]node{"a": {model: "A10", allocatable: 2}, "b": {allocatable: 1}, "cpu-only": {}}, Naive{Sum: 9})
	want := []Row{{Node: "a", Model: "A10", Allocatable: 2, Requested: 2}, {Node: "b", Allocatable: 1, Requested: 1}, {Node: "gone"}}
	if !slices.Equal(r.Rows, want) || r.Requested != 3 || r.Naive.Sum != 9 {
		t.Errorf("got %+v", r)
	}
}

// TestNaive: every pod counts, and only its containers, as the metric has it.
func TestNaive(t *testing.T) {
	asks := func(n int64) []corev1.Container {
		list := corev1.ResourceList{count.NVIDIA: *resource.NewQuantity(n, resource.DecimalSI)}
		return []corev1.Container{{Resources: corev1.ResourceRequirements{Requests: list}}, {}}
	}
	var n Naive
	for phase, gpus := range map[corev1.PodPhase]int64{corev1.PodRunning: 1, corev1.PodPending: 2, corev1.PodSucceeded: 4, corev1.PodFailed: 8} {
		n.add(&corev1.Pod{
			Spec:   corev1.PodSpec{Containers: asks(gpus), InitContainers: asks(16)},
			Status: corev1.PodStatus{Phase: phase},
		})
	}
	if n.Sum != 15 || n.Finished != 12 {
		t.Errorf("got %+v", n)
	}
}

// busy is a report with something in each part of the table.
func busy() Report {
	r := Report{Requested: 79, Allocatable: 92, Free: 26, Pending: 5, Overcommitted: 13, Naive: Naive{Sum: 112, Finished: 28}}
	for i := range 13 {
		r.Rows = append(r.Rows, Row{Node: "over-" + string(rune('a'+i)), Model: "V100M32", Allocatable: 4, Requested: 5})
	}
	return Report{
		Requested: r.Requested, Allocatable: r.Allocatable, Free: r.Free, Pending: r.Pending, Overcommitted: r.Overcommitted, Naive: r.Naive,
		Rows: append(r.Rows,
			Row{Node: "a-node-with-a-long-name.example.com", Model: "G2", Allocatable: 16, Requested: 8},
			Row{Node: "idle", Allocatable: 16},
			Row{Node: "six", Model: "A10", Allocatable: 8, Requested: 6}),
	}
}

func TestTable(t *testing.T) {
	for file, r := range map[string]Report{"busy.txt": busy(), "empty.txt": {Naive: Naive{Sum: 3, Finished: 3}}} {
		var b bytes.Buffer
		if err := WriteTable(&b, r, style{}); err != nil {
			t.Fatal(err)
		}
		golden(t, file, b.String())
	}
	var plain, bold bytes.Buffer
	_ = WriteTable(&plain, busy(), style{})
	_ = WriteTable(&bold, busy(), style{on: "<", off: ">"})
	if got := strings.NewReplacer("<", "", ">", "").Replace(bold.String()); got != plain.String() || bold.Len() == plain.Len() {
		t.Errorf("the style changes more than titles:\n%s", bold.String())
	}
}

func TestJSON(t *testing.T) {
	r := newReport(Published{Requested: 2, Allocatable: 3, Free: 1, Pending: 4, Rows: map[string]int64{"b": 0, "a": 2}}, nil, Naive{Sum: 9})
	var b bytes.Buffer
	if err := WriteJSON(&b, r); err != nil {
		t.Fatal(err)
	}
	var compact bytes.Buffer
	if err := json.Compact(&compact, b.Bytes()); err != nil {
		t.Fatal(err)
	}
	const want = `{"requested":2,"allocatable":3,"free":1,"pending":4,"naive":9,"nodes":{"a":2,"b":0}}`
	if got := strings.TrimSpace(compact.String()); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func golden(t *testing.T, file, got string) {
	t.Helper()
	path := filepath.Join("testdata", file)
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s (-update writes it):\ngot\n%s\nwant\n%s", path, got, want)
	}
}
