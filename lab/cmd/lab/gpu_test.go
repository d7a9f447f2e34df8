package main

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/gpu-summary/gpu-summary-controller/lab/plane"
)

// TestGPUsGoToTheNodeThatIsMeant: the only one, or the one that is named, unless the
// user says where the kubelet is.
func TestGPUsGoToTheNodeThatIsMeant(t *testing.T) {
	twice := []plane.RunningNode{
		{Name: "real-node", KubeletDir: "/lab/node-1"}, {Name: "real-node-2", KubeletDir: "/lab/node-2"},
		{Name: "real-node", KubeletDir: "/other/node-1"},
	}
	one, two := twice[:1], twice[:2]
	for _, tc := range []struct {
		args  string
		nodes []plane.RunningNode
		want  string // arguments, or what an error says
	}{
		{"run --resource nvidia.com/gpu=8", one, "--kubelet-dir /lab/node-1 run --resource nvidia.com/gpu=8 --node real-node"},
		{"health gpu-3 unhealthy", one, "--kubelet-dir /lab/node-1 health gpu-3 unhealthy"},
		{"--node real-node-2 vanish", two, "--kubelet-dir /lab/node-2 vanish"},
		{"run --node=real-node-2", two, "--kubelet-dir /lab/node-2 run --node real-node-2"},
		{"vanish", two, "choose one: --node real-node, or --node real-node-2"},
		{"vanish --node node-9", two, "no running lab has a real node node-9: there are real-node, real-node-2"},
		{"vanish --node real-node", twice, "choose one: --kubelet-dir /lab/node-1, or --kubelet-dir /other/node-1"},
		{"vanish", nil, "no lab with a real node is running"},
		{"vanish --node", two, "--node needs the name of a node"},
		// Whatever is running.
		{"--kubelet-dir /var/lib/kubelet run --node worker", two, "--kubelet-dir /var/lib/kubelet run --node worker"},
		{"--control=/run/x vanish", nil, "--control=/run/x vanish"},
		{"run --help", nil, "run --help"},
		{"", nil, ""},
	} {
		got, err := driverArgs(strings.Fields(tc.args), func() ([]plane.RunningNode, error) { return tc.nodes, nil })
		if err != nil {
			if !strings.Contains(err.Error(), tc.want) || tc.want == "" {
				t.Errorf("%q: error %v, want %q", tc.args, err, tc.want)
			}
			continue
		}
		if diff := cmp.Diff(tc.want, strings.Join(got, " ")); diff != "" {
			t.Errorf("%q (-want +got):\n%s", tc.args, diff)
		}
	}
	broken := errors.New("no such record")
	if _, err := driverArgs([]string{"vanish"}, func() ([]plane.RunningNode, error) { return nil, broken }); !errors.Is(err, broken) {
		t.Errorf("error %v, want %v", err, broken)
	}
}
