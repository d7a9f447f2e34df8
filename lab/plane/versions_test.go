package plane_test

import (
	"os/exec"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/gpu-summary/gpu-summary-controller/lab/plane"
)

func TestVersionsAgreeWithGoMod(t *testing.T) {
	got, err := exec.Command("go", "list", "-m", "k8s.io/kubernetes", "sigs.k8s.io/kwok").Output()
	if err != nil {
		t.Fatal(err)
	}
	want := "k8s.io/kubernetes " + plane.KubernetesVersion + "\nsigs.k8s.io/kwok " + plane.KWOKVersion + "\n"
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Errorf("go.mod (-constants +go.mod):\n%s", diff)
	}
}
