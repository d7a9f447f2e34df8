package load

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
)

const (
	nodeHeader = "sn,cpu_milli,memory_mib,gpu,model\n"
	podHeader  = "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,deletion_time,scheduled_time\n"
	goodNodes  = nodeHeader + "n0,32000,262144,0,\nn1,96000,393216,8,G2\n"
	goodPods   = podHeader + "p0,12000,16384,1,1000,,LS,Running,0,99,0\np1,6000,12288,0,0,,BE,Pending,7,8,\n"
)

// traceDir is where the openb trace lies beside the repository, when it does.
func traceDir(t *testing.T) string {
	t.Helper()
	dir := filepath.Join("..", "..", "..", "shared", "data", "openb")
	for _, name := range []string{NodesFile, PodsFile} {
		if _, err := os.Stat(filepath.Join(dir, name)); errors.Is(err, fs.ErrNotExist) {
			t.Skipf("%s: the openb trace is not on this machine", t.Name())
		}
	}
	return dir
}

func writeTrace(t *testing.T, nodes, pods string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{NodesFile: nodes, PodsFile: pods} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestReadOpenB(t *testing.T) {
	want := &Cluster{
		Nodes: []Node{
			{Name: "n0", CPUMilli: 32000, MemoryMiB: 262144},
			{Name: "n1", CPUMilli: 96000, MemoryMiB: 393216, GPUs: 8, Model: "G2"},
		},
		Pods: []Pod{
			{Name: "p0", CPUMilli: 12000, MemoryMiB: 16384, GPUs: 1, Phase: corev1.PodRunning},
			{Name: "p1", CPUMilli: 6000, MemoryMiB: 12288, Phase: corev1.PodPending, Created: 7},
		},
	}
	for name, files := range map[string][2]string{
		"plain":               {goodNodes, goodPods},
		"byte order mark":     {"\ufeff" + goodNodes, "\ufeff" + goodPods},
		"CRLF":                {strings.ReplaceAll(goodNodes, "\n", "\r\n"), strings.ReplaceAll(goodPods, "\n", "\r\n")},
		"no newline at end":   {strings.TrimSuffix(goodNodes, "\n"), goodPods},
		"columns rearranged":  {"model,gpu,memory_mib,cpu_milli,sn\n,0,262144,32000,n0\nG2,8,393216,96000,n1\n", goodPods},
		"a column we ignore":  {nodeHeader[:len(nodeHeader)-1] + ",rack\nn0,32000,262144,0,,a\nn1,96000,393216,8,G2,b\n", goodPods},
		"quoted":              {strings.ReplaceAll(goodNodes, "n0", `"n0"`), goodPods},
		"blank lines between": {strings.ReplaceAll(goodNodes, "\n", "\n\n"), goodPods},
	} {
		t.Run(name, func(t *testing.T) {
			dir := writeTrace(t, files[0], files[1])
			got, err := ReadOpenB(dir)
			if err != nil {
				t.Fatal(err)
			}
			want.Source = "openb trace in " + dir
			if diff := cmp.Diff(want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestReadOpenBProblems(t *testing.T) {
	pod := func(row string) [2]string { return [2]string{goodNodes, goodPods + row + "\n"} }
	node := func(row string) [2]string { return [2]string{goodNodes + row + "\n", goodPods} }
	const nf, pf = NodesFile, PodsFile
	for name, tc := range map[string]struct {
		files [2]string
		want  []string // lines, without the directory
	}{
		"too few columns":     {pod("p2,1,1,0"), []string{pf + ":4: row: 4 columns, the header has 11"}},
		"too many columns":    {node("n2,1,1,0,,x"), []string{nf + ":4: row: 6 columns, the header has 5"}},
		"negative":            {node("n2,-1,1,0,"), []string{nf + ":4: cpu_milli: -1 is negative"}},
		"negative GPUs":       {pod("p2,1,1,-2,0,,LS,Running,9,9,9"), []string{pf + ":4: num_gpu: -2 is negative"}},
		"no number":           {pod("p2,1,1,one,0,,LS,Running,9,9,9"), []string{pf + `:4: num_gpu: "one" is not a whole number`}},
		"fraction":            {node("n2,1,1,0.5,"), []string{nf + `:4: gpu: "0.5" is not a whole number`}},
		"empty number":        {node("n2,1,1,,"), []string{nf + ":4: gpu: empty, want a whole number"}},
		"beyond int64":        {node("n2,1,99999999999999999999,0,"), []string{nf + ":4: memory_mib: 99999999999999999999 is out of range"}},
		"beyond int64, bytes": {node("n2,1,8796093022208,0,"), []string{nf + ":4: memory_mib: 8796093022208 is out of range"}},
		"unused number":       {pod("p2,1,1,0,x,,LS,Running,9,y,z"), []string{pf + `:4: gpu_milli: "x" is not a whole number`, pf + `:4: deletion_time: "y" is not a whole number`, pf + `:4: scheduled_time: "z" is not a whole number`}},
		"unknown phase":       {pod("p2,1,1,0,0,,LS,Evicted,9,9,9"), []string{pf + `:4: pod_phase: "Evicted" is not one of Pending, Running, Succeeded, Failed`}},
		"no phase":            {pod("p2,1,1,0,0,,LS,,9,9,9"), []string{pf + `:4: pod_phase: "" is not one of Pending, Running, Succeeded, Failed`}},
		"asks for a model":    {pod("p2,1,1,1,0,V100M16,LS,Running,9,9,9"), []string{pf + `:4: gpu_spec: "V100M16": pods that ask for a GPU model are not supported`}},
		"duplicate pod":       {pod("p0,1,1,0,0,,LS,Running,9,9,9"), []string{pf + `:4: name: "p0" is already on line 2`}},
		"duplicate node":      {node("n1,1,1,0,"), []string{nf + `:4: sn: "n1" is already on line 3`}},
		"no header":           {[2]string{"n0,32000,262144,0,\n", goodPods}, []string{nf + ":1: header: no column sn, cpu_milli, memory_mib, gpu, model"}},
		"column missing":      {[2]string{goodNodes, "name,cpu_milli\np0,1\n"}, []string{pf + ":1: header: no column memory_mib, num_gpu, gpu_milli, gpu_spec, qos, pod_phase, creation_time, deletion_time, scheduled_time"}},
		"column twice":        {[2]string{"sn,sn,cpu_milli,memory_mib,gpu,model\n", goodPods}, []string{nf + ":1: header: column sn is there twice"}},
		"empty file":          {[2]string{"", goodPods}, []string{nf + ":1: header: no column sn, cpu_milli, memory_mib, gpu, model"}},
		"header only":         {[2]string{goodNodes, podHeader}, []string{pf + ":2: row: no rows"}},
		"stray quote":         {node(`n2,1,1,0,"G"2`), []string{nf + `:4: row: extraneous or missing " in quoted-field`}},
		"both files":          {[2]string{goodNodes + "n2,x,1,0,\n", goodPods + "p2,1,y,0,0,,LS,Running,9,9,9\n"}, []string{nf + `:4: cpu_milli: "x" is not a whole number`, pf + `:4: memory_mib: "y" is not a whole number`}},
		"line after CRLF":     {[2]string{strings.ReplaceAll(goodNodes, "\n", "\r\n") + "n2,x,1,0,\r\n", goodPods}, []string{nf + `:4: cpu_milli: "x" is not a whole number`}},
	} {
		t.Run(name, func(t *testing.T) {
			dir := writeTrace(t, tc.files[0], tc.files[1])
			c, err := ReadOpenB(dir)
			if err == nil || c != nil {
				t.Fatalf("got cluster %v and error %v, want no cluster and an error", c, err)
			}
			want := "read the openb trace:"
			for _, line := range tc.want {
				want += "\n" + filepath.Join(dir, line)
			}
			if diff := cmp.Diff(want, err.Error()); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// The API server's own words about names may change; that it is said may not.
func TestReadOpenBNames(t *testing.T) {
	for _, tc := range []struct{ nodes, pods, want string }{
		{goodNodes + "Node 2,1,1,0,\n", goodPods, NodesFile + `:4: sn: "Node 2": `},
		{goodNodes + strings.Repeat("n", 64) + ",1,1,0,\n", goodPods, NodesFile + `:4: sn: "nnn`},
		{goodNodes + "n2,1,1,1,big one\n", goodPods, NodesFile + `:4: model: "big one": `},
		{goodNodes, goodPods + "p_2,1,1,0,0,,LS,Running,9,9,9\n", PodsFile + `:4: name: "p_2": `},
		{goodNodes, goodPods + ",1,1,0,0,,LS,Running,9,9,9\n", PodsFile + `:4: name: "": `},
	} {
		if _, err := ReadOpenB(writeTrace(t, tc.nodes, tc.pods)); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("got error %v, want %q in it", err, tc.want)
		}
	}
}

func TestReadOpenBBoundsProblems(t *testing.T) {
	nodes := nodeHeader
	for i := range 50 {
		nodes += fmt.Sprintf("n%d,x,1,0,\n", i)
	}
	_, err := ReadOpenB(writeTrace(t, nodes, goodPods))
	lines := strings.Split(fmt.Sprint(err), "\n")
	if len(lines) != 1+maxProblems+1 || lines[len(lines)-1] != "and 30 more" {
		t.Errorf("got %d lines, the last %q", len(lines), lines[len(lines)-1])
	}
}

func TestReadOpenBMissing(t *testing.T) {
	half := writeTrace(t, goodNodes, goodPods)
	if err := os.Remove(filepath.Join(half, PodsFile)); err != nil {
		t.Fatal(err)
	}
	for dir, missing := range map[string]string{
		filepath.Join(t.TempDir(), "nowhere"): NodesFile,
		half:                                  PodsFile,
	} {
		_, err := ReadOpenB(dir)
		if !errors.Is(err, fs.ErrNotExist) {
			t.Fatalf("got %v", err)
		}
		want := fmt.Sprintf("%q must hold %s and %s: open %s", dir, NodesFile, PodsFile, filepath.Join(dir, missing))
		if !strings.Contains(err.Error(), want) {
			t.Errorf("got  %v\nwant %q in it", err, want)
		}
	}
}
