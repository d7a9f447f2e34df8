package load

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// On the server KWOK would soon hide that a node was not born Ready.
func TestNodeObjectIsReady(t *testing.T) {
	for _, c := range nodeObject(&Node{Name: "n"}, metav1.Now()).Status.Conditions {
		if c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue {
			return
		}
	}
	t.Error("no condition Ready")
}
