package plugin

import (
	"strings"
	"testing"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/gpu-summary/gpu-summary-controller/internal/count"
)

func quantity(n int64) resource.Quantity { return *resource.NewQuantity(n, resource.DecimalSI) }

// TestTerminal: there are bars and colours, and lines fit; elsewhere there is neither.
func TestTerminal(t *testing.T) {
	roomy := stand{screen: screen{terminal: true, colour: true, width: 200, unicode: true}}.run(t, "--from", world).out
	for _, want := range []string{"██████░░", string(red), string(green), string(yellow), "SchedulingDisabled,Tainted"} {
		if !strings.Contains(roomy, want) {
			t.Errorf("on a terminal there is no %q in\n%s", want, roomy)
		}
	}
	const width = 130
	tight := stand{screen: screen{terminal: true, colour: true, width: width, unicode: true}}.run(t, "--from", world).out
	grid, _, _ := strings.Cut(ours.ReplaceAllString(tight, ""), "nvidia.com/gpu: ")
	for line := range strings.Lines(grid) {
		if n := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); n > width {
			t.Errorf("%d wide: %s", n, line)
		}
	}
	if strings.Contains(tight, "█") || !strings.Contains(tight, "…") {
		t.Errorf("bars are the first to go where there is no room, and then text is cut:\n%s", tight)
	}
	if plainly := (stand{}).run(t, "--from", world).out; strings.ContainsAny(plainly, "█░…\x1b") {
		t.Errorf("in a pipe there are signs for a terminal:\n%s", plainly)
	}
	if got := (stand{screen: screen{terminal: true, width: 300}}).run(t, "--from", world).out; strings.Contains(got, "\x1b") || !strings.Contains(got, "########..") {
		t.Errorf("without colours, in ASCII:\n%s", got)
	}
}

// TestWidths: what may be cut gives way, the widest first, and never to nothing.
func TestWidths(t *testing.T) {
	table := table{
		columns: []column{{title: "A", cut: true}, {title: "B", cut: true}, {title: "N", right: true}},
		rows:    [][]cell{{text(strings.Repeat("a", 30)), text(strings.Repeat("ä", 20)), number(12345678)}},
	}
	for width, want := range map[int]string{
		0:  strings.Repeat("a", 30) + "  " + strings.Repeat("ä", 20) + "  12345678",
		80: strings.Repeat("a", 30) + "  " + strings.Repeat("ä", 20) + "  12345678",
		52: strings.Repeat("a", 19) + "…  " + strings.Repeat("ä", 20) + "  12345678",
		40: strings.Repeat("a", 13) + "…  " + strings.Repeat("ä", 13) + "…  12345678",
		10: strings.Repeat("a", 11) + "…  " + strings.Repeat("ä", 11) + "…  12345678",
	} {
		if got := table.lines(screen{terminal: true, width: width}, false)[1]; got != want {
			t.Errorf("%d wide: %s\nwant %s", width, got, want)
		}
	}
}

// TestBar: whatever is in use, and whatever is not, shows.
func TestBar(t *testing.T) {
	for want, n := range map[string]count.Numbers{
		"..........": {Allocatable: 8},
		"#.........": {Allocatable: 1000, Requested: 1},
		"#####.....": {Allocatable: 8, Requested: 4},
		"#########.": {Allocatable: 1000, Requested: 999},
		"##########": {Allocatable: 4, Requested: 6},
	} {
		if got := bar(&n).draw(screen{}); got != want {
			t.Errorf("%+v: %s, want %s", n, got, want)
		}
	}
	if got := bar(&count.Numbers{Requested: 3, Overcommitted: 3}).draw(screen{unicode: true}); got != "██████████" {
		t.Errorf("nothing allocatable any more: %s", got)
	}
}

// TestSorting: names go up and numbers down, a - turns it, and equal rows stay.
func TestSorting(t *testing.T) {
	for by, want := range map[string]string{
		"free":        "node-m node-c node-d node-a node-b node-x",
		"-free":       "node-b node-x node-a node-c node-d node-m",
		"-node":       "node-x node-m node-d node-c node-b node-a",
		"model":       "node-x node-c node-d node-m node-a node-b",
		"Allocatable": "node-a node-m node-x node-b node-c node-d",
	} {
		got := stand{}.run(t, "nodes", "--from", world, "-o", "name", "--sort-by="+by)
		if names := strings.ReplaceAll(strings.Join(strings.Fields(got.out), " "), "node/", ""); names != want {
			t.Errorf("by %s: %s, want %s", by, names, want)
		}
	}
}

// TestSelectedNodes: rows are chosen, their numbers stay, and the totals are theirs.
func TestSelectedNodes(t *testing.T) {
	got := stand{}.run(t, "nodes", "--from", world, "-l", "pool=test", "--model", "NVIDIA-A100-SXM4-40GB").out
	want := `NODE            RESOURCE               MODEL                  STATE                       ALLOCATABLE  REQUESTED  FREE  USABLE
node-d          nvidia.com/gpu         NVIDIA-A100-SXM4-40GB  SchedulingDisabled,Tainted            4          0     4       0
node-m          nvidia.com/mig-1g.5gb  NVIDIA-A100-SXM4-40GB  Ready                                 7          2     5       5
TOTAL (1 node)  nvidia.com/gpu                                                                      4          0     4       0
TOTAL (1 node)  nvidia.com/mig-1g.5gb                                                               7          2     5       5
nvidia.com/gpu: 4 of 4 free cannot be had: they are on nodes that take no pods
`
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// TestFilters: each of them by itself.
func TestFilters(t *testing.T) {
	for args, want := range map[string]string{
		"nodes --model NVIDIA-H100-80GB-HBM3": "node/node-a node/node-b",
		"nodes -l pool=dra":                   "node/node-x",
		"pods --model NVIDIA-A100-SXM4-40GB":  "pod/mig-0",
		"pods --node node-b":                  "pod/big-0",
		"pods -n web":                         "pod/api-7d4b9c6f5-x2x9p pod/api-7d4b9c6f5-z8k4q",
		"pending -n research":                 "pod/hopes",
		"namespaces -n web":                   "namespace/web",
		"claims -n web":                       "",
		"describe -l pool=test":               "node/node-d node/node-m",
		"describe node node-a":                "node/node-a",
		"nodes --dra-class x=nvidia.com/gpu -l pool=dra --wide": "node/node-x",
	} {
		got := stand{}.run(t, append(strings.Fields(args), "--from", world, "-o", "name")...)
		if names := strings.Join(strings.Fields(got.out), " "); names != want || got.status != 0 {
			t.Errorf("%s: %q, want %q; %s", args, names, want, got.err)
		}
	}
	if got, want := (stand{}).run(t, "--from", world, "--wide"), (stand{}).run(t, "--from", world, "-o", "wide"); got != want {
		t.Errorf("--wide is not -o wide:\n%s", got.out)
	}
}

// TestNothingToShow says what to do.
func TestNothingToShow(t *testing.T) {
	got := stand{}.run(t, "nodes", "--from", world, "--gpu-resource", "example.com/npu")
	if !strings.Contains(got.out, "node-npu") {
		t.Errorf("--gpu-resource does not count it:\n%s", got.out)
	}
	const dump = `{"kind":"Node","apiVersion":"v1","metadata":{"name":"n"},"status":{"capacity":{"example.com/npu":"4","cpu":"3","hugepages-2Mi":"0"}}}`
	got = stand{in: dump}.run(t, "nodes", "--from", "-")
	if want := "note: no GPUs found; --gpu-resource counts further resources as GPUs, as in --gpu-resource example.com/gpu; nodes have example.com/npu\n"; got.err != want || got.out != "" {
		t.Errorf("%q, and on standard error %q, want %q", got.out, got.err, want)
	}
	if got := (stand{in: dump}).run(t, "nodes", "--from", "-", "-o", "json").out; !strings.Contains(got, `"rows": []`) || !strings.Contains(got, `"totals": []`) {
		t.Errorf("lists that are empty:\n%s", got)
	}
	for subcommand, want := range map[string]string{
		"pods": "no pod in namespace void holds GPUs", "pending": "no pod in namespace void waits for GPUs", "claims": "no ResourceClaim in namespace void", "namespaces": "no pod in namespace void holds GPUs or",
	} {
		if got := (stand{}).run(t, subcommand, "--from", world, "-n", "void"); !strings.Contains(got.err, want) || got.status != 0 {
			t.Errorf("%s: status %d, %s", subcommand, got.status, got.err)
		}
	}
}

// TestWithoutNodes what is not known is not shown as if it were nothing.
func TestWithoutNodes(t *testing.T) {
	const dump = `{"kind":"Pod","apiVersion":"v1","metadata":{"name":"p","namespace":"n"},"spec":{"nodeName":"node-a","containers":[{"resources":{"requests":{"nvidia.com/gpu":"2"}}}]}}`
	for args, want := range map[string]string{
		"nodes": `NODE            MODEL    STATE  ALLOCATABLE  REQUESTED  FREE  USABLE
node-a          unknown  ?                ?          2     ?       ?
TOTAL (1 node)                            ?          2     ?       ?
`,
		"nodes -o csv": "node,resource,source,model,states,replicas,capacity,allocatable,requested,free,usableFree,overcommitted,claimed,blocked\nnode-a,nvidia.com/gpu,device-plugin,unknown,,,,,2,,,,,\n",
		"models": `MODEL    NODES  ALLOCATABLE  REQUESTED  FREE  USABLE  PENDING  LARGEST
unknown      1            ?          2     ?       ?        ?        ?
`,
		"pods": `NAMESPACE  POD  OWNER   NODE    GPUS  STATUS        AGE  PRIORITY
n          p    <none>  node-a     2          <unknown>         0
1 pod holds 2 nvidia.com/gpu
`,
	} {
		got := stand{in: dump}.run(t, append(strings.Fields(args), "--from", "-")...)
		if got.out != want || !strings.Contains(got.err, "there are no nodes in standard input") {
			t.Errorf("%s: got\n%s%s\nwant\n%s", args, got.out, got.err, want)
		}
	}
	got := stand{in: dump}.run(t, "describe", "node-a", "--from", "-")
	if !strings.Contains(got.out, "Nothing is known of the node itself") || strings.Contains(got.out, ready) {
		t.Errorf("described:\n%s", got.out)
	}
}
