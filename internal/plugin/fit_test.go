package plugin

import (
	"path/filepath"
	"strings"
	"testing"
)

const (
	room     = "testdata/fit-cluster.yaml"
	manifest = "testdata/fit-deployment.yaml"
)

// TestFitGolden is both questions in every format.
func TestFitGolden(t *testing.T) {
	var all strings.Builder
	for _, question := range [][]string{
		{"--gpus", "8"}, {"--gpus", "8", "--model", "h100", "--pods", "3"}, {"--gpus", "2", "--pods", "4"}, {"-f", manifest}, {"-f", manifest, "--pods", "1"},
	} {
		for _, f := range append([]string{""}, formats...) {
			args := append([]string{"fit"}, question...)
			if f != "" {
				args = append(args, "-o", f)
			}
			got := stand{}.run(t, append(args, "--from", room)...)
			all.WriteString("$ " + display + " " + strings.Join(args, " ") + "\n" + got.out)
			if got.err != "" {
				all.WriteString("standard error:\n" + got.err)
			}
			all.WriteString("status " + string(rune('0'+got.status)) + "\n\n")
		}
	}
	golden(t, filepath.Join("testdata", "fit.golden"), all.String())
}

// TestFitStatus: 0 it fits, 1 it does not, 2 nobody can say.
func TestFitStatus(t *testing.T) {
	podOf := func(spec string) string {
		return `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"p"},"spec":{"containers":[{"name":"c","image":"x"}]` + spec + `}}`
	}
	for name, tc := range map[string]struct {
		args   []string
		in     string
		status int
		said   string
	}{
		"it fits":              {[]string{"--gpus", "8"}, "", 0, "1 of 1 copy fits: node-big ×1"},
		"it does not":          {[]string{"--gpus", "9"}, "", 1, "0 of 1 copies fit"},
		"a pod fits":           {[]string{"-f", "-"}, podOf(""), 0, "1 of 1 copy fits"},
		"a claim":              {[]string{"-f", "-"}, podOf(`,"resourceClaims":[{"name":"gpu","resourceClaimName":"g"}]`), 2, "it depends on claims"},
		"a claim, and no room": {[]string{"-f", "-", "--pods", "5000"}, podOf(`,"resourceClaims":[{"name":"gpu","resourceClaimName":"g"}]`), 1, "of 5000"},
		"one fits, one does not": {[]string{"-f", "-"}, podOf("") + "\n" + podOf(`,"nodeName":"gone"`), 1,
			"pod/p: 0 of 1 copies fit\nNone, because of:"},
		"nothing asked":         {nil, "", 2, "say --gpus N, or -f FILE"},
		"both asked":            {[]string{"--gpus", "1", "-f", "-"}, podOf(""), 2, "leave out --gpus"},
		"an argument":           {[]string{"node-a"}, "", 2, "unknown command"},
		"not a number":          {[]string{"--gpus", "many"}, "", 2, "invalid argument"},
		"fewer than none":       {[]string{"--gpus", "-1"}, "", 2, "--gpus=-1: want at least 1"},
		"no copies":             {[]string{"--gpus", "1", "--pods", "0"}, "", 2, "--pods=0: want 1 to 10000"},
		"no such model":         {[]string{"--gpus", "1", "--model", "V100"}, "", 2, "there are NVIDIA-A100-SXM4-40GB, NVIDIA-H100-80GB-HBM3"},
		"no such resource":      {[]string{"--gpus", "1", "--resource", "amd.com/gpu"}, "", 2, "there are: nvidia.com/gpu"},
		"a model for a CPU pod": {[]string{"-f", "-", "--model", "H100"}, podOf(""), 2, "the pods of pod/p ask for no GPU that there is"},
		"no such file":          {[]string{"-f", "testdata/none"}, "", 2, "-f: open testdata/none"},
		"a misspelt field":      {[]string{"-f", "-"}, podOf(`,"nodeSelctor":{}`), 2, `standard input, document 1: unknown field "spec.nodeSelctor"`},
		"a dump without nodes":  {[]string{"--gpus", "1", "--from", "-"}, podOf(""), 2, "there are no nodes in -"},
		"published numbers":     {[]string{"--gpus", "1", "--from-configmap"}, "", 2, "leave out --from-configmap"},
	} {
		t.Run(name, func(t *testing.T) {
			args := append([]string{"fit"}, tc.args...)
			if !strings.Contains(strings.Join(args, " "), "--from") {
				args = append(args, "--from", room)
			}
			got := stand{in: tc.in}.run(t, args...)
			if got.status != tc.status || !strings.Contains(got.out+got.err, tc.said) {
				t.Errorf("status %d, want %d; want %q in:\n%s%s", got.status, tc.status, tc.said, got.out, got.err)
			}
		})
	}
}
