package integration

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/gpu-summary/gpu-summary-controller/internal/count"
	"github.com/gpu-summary/gpu-summary-controller/internal/publish"
	"github.com/gpu-summary/gpu-summary-controller/lab/install"
)

var shellBlock = regexp.MustCompile("(?s)```sh\n(.*?)```")

// TestTheRecipeInShell runs what docs/configmaps.md has for kubectl and jq, where jq is
// installed: on single objects and on shards.
func TestTheRecipeInShell(t *testing.T) {
	if _, err := exec.LookPath("jq"); err != nil {
		t.Skip(err)
	}
	dir := t.TempDir()
	if _, err := install.Build(t.Context(), dir); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile("../../docs/configmaps.md")
	if err != nil {
		t.Fatal(err)
	}
	recipe := shellBlock.FindSubmatch(text)
	if recipe == nil {
		t.Fatal("docs/configmaps.md has no recipe")
	}
	e := newEnv(t)
	kubeconfig := e.kubeconfig(e.plane.Config())
	rows := func(name string, into any) {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), "sh", "-c", string(recipe[1])+"\ngpu_rows "+name)
		cmd.Env = append(os.Environ(), "KUBECONFIG="+kubeconfig, "PATH="+dir+string(filepath.ListSeparator)+os.Getenv("PATH"))
		var stderr strings.Builder
		cmd.Stderr = &stderr
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("%v: %s", err, stderr.String())
		}
		e.must(json.Unmarshal(out, into))
	}
	for nodes, limit := range map[int]int{1: 0, 60: 1 << 10} {
		snap := &count.Snapshot{Observed: count.Observed{Pods: "1"}}
		want := map[string]string{}
		for i := range nodes {
			node := fmt.Sprintf("gpu-%02d", i)
			want[node] = fmt.Sprint(i % 9)
			snap.Rows = append(snap.Rows, count.Row{Node: node, Resource: count.NVIDIA, Numbers: count.Numbers{Requested: int64(i % 9)}})
		}
		if _, err := e.publisher(func(o *publish.Options) { o.MaxObjectBytes = limit }).Publish(t.Context(), snap); err != nil {
			t.Fatal(err)
		}
		var summary map[string]string
		rows("gpu-summary", &summary)
		e.must(sameRows(want, summary))
		var capacity []count.Row
		rows("gpu-capacity", &capacity)
		if len(capacity) != nodes || capacity[nodes-1].Node != snap.Rows[nodes-1].Node {
			t.Errorf("gpu-capacity has %d rows, want %d: %+v", len(capacity), nodes, capacity)
		}
	}
}
