package integration

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"github.com/gpu-summary/gpu-summary-controller/internal/count"
	"github.com/gpu-summary/gpu-summary-controller/internal/fit"
	"github.com/gpu-summary/gpu-summary-controller/internal/gather"
)

// fitCases is how many random cases are compared, fitSeed what they are made of unless
// FIT_SEED says otherwise.
const (
	fitCases = 200
	fitSeed  = 1
)

// TestFitAgreesWithTheScheduler makes random clusters side by side, each with a pod
// that fits or does not, and compares what the real scheduler does with what fit says
// it will do: how many copies are placed, and that they are where fit has no objection.
// A case on which they disagree is printed, with the seed that makes it again.
func TestFitAgreesWithTheScheduler(t *testing.T) {
	seed := uint64(fitSeed)
	if text := os.Getenv("FIT_SEED"); text != "" {
		var err error
		if seed, err = strconv.ParseUint(text, 10, 64); err != nil {
			t.Fatalf("FIT_SEED: %v", err)
		}
	}
	t.Logf("seed %d", seed)
	other, e := newEnv(t), newEnv(t)
	var cases []fitCase
	for n := range fitCases {
		cases = append(cases, makeCase(seed, n, e.namespace, other.namespace))
	}
	e.prepare(cases)

	names, err := count.ParseNames(count.DefaultNames()...)
	e.must(err)
	cluster := &fitWorld{Facts: fit.NewFacts(names), names: names, World: count.World{NodesKnown: true}}
	_, err = gather.Cluster(t.Context(), e.client, gather.Scope{Nodes: true, FinishedPods: true}, cluster)
	e.must(err)
	snapshot := count.Take(cluster.World)
	var expected []expectation
	for i := range cases {
		expected = append(expected, expect(t, &cases[i], cluster.Facts, snapshot))
	}

	e.createAll(len(cases), func(i int) error { return e.createCopies(&cases[i]) })
	// What the scheduler decides first may be from before it had heard of everything;
	// it tries again then.
	e.eventually("the scheduler and fit to agree", func() error {
		placed, err := e.placements()
		if err != nil {
			return err
		}
		var wrong []string
		for i := range expected {
			if problem := expected[i].compare(placed[cases[i].id]); problem != "" {
				wrong = append(wrong, fmt.Sprintf("case %d of seed %d: %s\n%s", i, seed, problem, cases[i].describe()))
			}
		}
		if len(wrong) > 0 {
			return fmt.Errorf("they disagree on %d of %d cases:\n%s", len(wrong), len(cases), strings.Join(wrong[:min(3, len(wrong))], "\n"))
		}
		return nil
	})
	logFit(t, cases, expected)
}

// logFit says what the cases were about, so that nobody takes 200 empty clusters for
// an agreement.
func logFit(t *testing.T, cases []fitCase, expected []expectation) {
	all, none, some, exact := 0, 0, 0, 0
	reasons := map[fit.Reason]int{}
	for i, x := range expected {
		switch {
		case x.answer.Placed == 0:
			none++
		case x.answer.Verdict == fit.Fits:
			all++
		default:
			some++
		}
		if cases[i].exact() {
			exact++
		}
		for _, n := range x.first.Nodes {
			for _, r := range n.Reasons {
				reasons[r]++
			}
		}
	}
	t.Logf("%d cases: all copies fit in %d, some in %d, none in %d; compared by number in %d", len(cases), all, some, none, exact)
	for _, r := range fit.Reasons {
		t.Logf("%-24s %d nodes", r, reasons[r])
	}
	for _, r := range []fit.Reason{
		fit.NotSelected, fit.Full, fit.TooFew, fit.Cordoned, fit.Tainted, fit.CPU, fit.Memory, fit.OtherResource, fit.Pods, fit.HostPort,
		fit.PodAffinity, fit.PodAntiAffinity, fit.OthersAntiAffinity, fit.Spread,
	} {
		if reasons[r] == 0 && len(cases) >= fitCases {
			t.Errorf("no node refuses for the reason %s: the cases say nothing about it", r)
		}
	}
}

// fitWorld collects what fit goes by, and what is counted.
type fitWorld struct {
	*fit.Facts
	count.World
	names count.Names
}

func (w *fitWorld) Pod(p *corev1.Pod) {
	w.Facts.Pod(p)
	record := count.ReadPod(p, w.names)
	w.Pods = append(w.Pods, &record)
}

func (w *fitWorld) Node(n *corev1.Node) {
	w.Facts.Node(n)
	record := count.ReadNode(n, w.names)
	w.Nodes = append(w.Nodes, &record)
}

// expectation is fit's answer: to what is asked, and to whether each node takes one
// copy more than none.
type expectation struct {
	*fitCase
	answer, first fit.Answer
}

// expect asks as kubectl would: with the manifest.
func expect(t *testing.T, c *fitCase, facts *fit.Facts, snapshot *count.Snapshot) expectation {
	t.Helper()
	manifest, err := json.Marshal(c.pod)
	if err != nil {
		t.Fatal(err)
	}
	questions, err := fit.ReadQuestions(c.id, bytes.NewReader(manifest), "default")
	if err != nil {
		t.Fatal(err)
	}
	ask := func(copies int64) fit.Answer {
		questions[0].Copies = copies
		answers, err := fit.Ask(facts, snapshot, questions[0])
		if err != nil {
			t.Fatalf("%s: %v", c.id, err)
		}
		return answers[0]
	}
	return expectation{c, ask(c.copies), ask(0)}
}

// decision is what the scheduler has made of a case's pods.
type decision struct {
	nodes   []string
	refused int
	message string
}

func (x *expectation) compare(d decision) string {
	placed := int64(len(d.nodes))
	summary := fmt.Sprintf("the scheduler places %d of %d (%v; %s), fit %d:", placed, x.copies, d.nodes, d.message, x.answer.Placed)
	for _, n := range x.first.Nodes {
		if strings.HasPrefix(n.Node, x.id+"-") {
			summary += fmt.Sprintf("\n  %s: %v %s", n.Node, n.Reasons, n.Message)
		}
	}
	switch {
	case placed+int64(d.refused) != x.copies:
		return fmt.Sprintf("%d pods are decided on, want %d", placed+int64(d.refused), x.copies)
	case x.exact() && placed != x.answer.Placed, placed > x.answer.Placed, (placed > 0) != (x.answer.Placed > 0):
		return summary
	}
	accepted := 0
	for _, n := range x.first.Nodes {
		if len(n.Reasons) == 0 && slices.Contains(d.nodes, n.Node) {
			accepted++
		}
	}
	slices.Sort(d.nodes)
	different := len(slices.Compact(slices.Clone(d.nodes)))
	if placed > 0 && (accepted == 0 || x.alone() && accepted < different) {
		return "a pod is on a node that fit refuses; " + summary
	}
	return ""
}

// describe is the case as YAML, without what is the same in all of them.
func (c *fitCase) describe() string {
	var b strings.Builder
	for _, n := range c.nodes {
		part, _ := yaml.Marshal(map[string]any{"node": n.Name, "labels": n.Labels, "spec": n.Spec, "allocatable": n.Status.Allocatable})
		fmt.Fprintf(&b, "%s---\n", part)
	}
	for _, p := range append(slices.Clone(c.existing), c.pod) {
		part, _ := yaml.Marshal(map[string]any{"pod": p.Namespace + "/" + p.Name, "labels": p.Labels, "spec": p.Spec})
		fmt.Fprintf(&b, "%s---\n", part)
	}
	return b.String()
}
