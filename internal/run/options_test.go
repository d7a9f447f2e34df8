package run

import (
	"strings"
	"testing"

	"github.com/spf13/pflag"
)

// TestFlagsNameTheirMistakes: each bad value is refused with its flag, and all of
// them at once.
func TestFlagsNameTheirMistakes(t *testing.T) {
	for flag, value := range map[string]string{
		"name":               "A_b",
		"namespace":          "a/b",
		"watch-namespace":    "a b",
		"pod-selector":       "a in (",
		"gpu-resource":       "nvidia.com/*",
		"dra-class":          "gpu.example.com=example.com/gpu",
		"settle":             "-1s",
		"resync":             "-1s",
		"cache-sync-timeout": "0s",
		"kube-api-qps":       "0",
		"kube-api-burst":     "0",
		"http-address":       "8080",
	} {
		o := DefaultOptions()
		fs := pflag.NewFlagSet("", pflag.ContinueOnError)
		o.AddFlags(fs)
		if err := fs.Parse([]string{"--" + flag + "=" + value}); err != nil {
			t.Fatal(err)
		}
		if err := o.Validate(); err == nil || !strings.Contains(err.Error(), "--"+flag+"=") {
			t.Errorf("--%s=%s: %v", flag, value, err)
		}
	}
	if err := DefaultOptions().Validate(); err != nil {
		t.Errorf("the defaults: %v", err)
	}
	if err := (&Options{QPS: 1}).Validate(); strings.Count(err.Error(), "\n") < 3 {
		t.Errorf("only the first mistake is reported: %v", err)
	}
}
