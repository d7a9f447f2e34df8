package server

import (
	"fmt"
	"maps"
	"net"
	"net/http"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestControl: the harness is told what it needs to know, and is not counted.
func TestControl(t *testing.T) {
	s, client := start(t, Options{})
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	wg.Go(func() {
		if err := s.Control(t.Context(), listener); err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(wg.Wait)

	rows := map[string]string{}
	v := s.cluster.view(true)
	sum := map[uint32]int{}
	for i := range v.end {
		if o, _ := v.get(i); o.kind == gpuPod {
			sum[o.node] += int(o.gpus)
		}
	}
	for node, n := range sum {
		rows[fmt.Sprintf("ip-10-%06d", node)] = fmt.Sprint(n)
	}
	cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "gpu-summary"}, Data: maps.Clone(rows)}
	for name := range cm.Data {
		cm.Data[name] = "0"
	}
	if cm, err = client.CoreV1().ConfigMaps("x").Create(t.Context(), cm, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if state := s.counts.state(0); !state.Right.IsZero() || state.RightNow {
		t.Errorf("zeros are right: %+v", state)
	}
	cm.Data = rows
	if _, err = client.CoreV1().ConfigMaps("x").Update(t.Context(), cm, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	state := s.counts.state(1)
	if state.Right.IsZero() || !state.RightNow || len(state.Writes) != 1 || state.Writes[0].Bytes == 0 {
		t.Errorf("the right rows are not right: %+v", state)
	}
	for _, path := range []string{PathRight, PathState + "?from=1", "/api/v1/nodes?limit=1"} {
		response, err := http.Get("http://" + listener.Addr().String() + path)
		if err != nil || response.StatusCode != http.StatusOK {
			t.Fatalf("%s: %v, %v", path, response, err)
		}
		response.Body.Close()
	}
	if n := s.counts.state(0).Counts["nodes list"].Requests; n != 0 {
		t.Errorf("the harness was counted %d times", n)
	}
	s.cluster.bind()
	if s.counts.state(0).RightNow {
		t.Error("still right after a change")
	}
}
