package load

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestApplyRefuses(t *testing.T) {
	s := newServer(t)
	c := smallCluster()
	s.apply(t, s.cfg, c)
	before := s.versions(t)
	for name, tc := range map[string]struct {
		edit      func(*Cluster)
		namespace string
		want      string
	}{
		"another node":      {func(c *Cluster) { c.Nodes[1].GPUs = 8 }, "", "node load-node-01 is in the way: its nvidia.com/gpu is 4, not 8; nothing was created"},
		"another pod":       {func(c *Cluster) { c.Pods[0].CPUMilli++ }, "", "pod NS/p0 is in the way: its cpu is 1, not 1001m; nothing was created"},
		"fewer nodes":       {func(c *Cluster) { c.Nodes = c.Nodes[:19] }, "", "node load-node-19 is in the way: it is left from another load; nothing was created"},
		"fewer pods":        {func(c *Cluster) { c.Pods = c.Pods[:59] }, "", "pod NS/p59 is in the way: it is left from another load; nothing was created"},
		"another namespace": {func(*Cluster) {}, "second", "the trace is loaded in namespace NS, and its nodes cannot hold it twice; nothing was created (to remove an earlier load: kubectl delete namespace NS; kubectl delete nodes -l lab.gpu-summary/source=openb)"},
		"no room":           {func(c *Cluster) { c.Pods[0].GPUs = 99 }, "", "place pods: 1 fit on no node: p0"},
	} {
		t.Run(name, func(t *testing.T) {
			other := smallCluster()
			tc.edit(other)
			// A node that the load would have to create, too.
			other.Nodes = append([]Node{{Name: "load-node-new", CPUMilli: 1}}, other.Nodes...)
			if tc.namespace == "" {
				tc.namespace = s.namespace
			}
			var said bytes.Buffer
			r, err := Apply(t.Context(), s.cfg, other, Options{Namespace: tc.namespace, Progress: &said})
			if err == nil || !strings.Contains(err.Error(), strings.ReplaceAll(tc.want, "NS", s.namespace)) {
				t.Errorf("got  %v\nwant %q in it", err, tc.want)
			}
			if said.Len() > 0 {
				t.Errorf("it said %q", said.String())
			}
			if r.Objects != 0 {
				t.Errorf("%d objects are done", r.Objects)
			}
		})
	}
	if n := len(s.nodes(t)); n != len(c.Nodes) {
		t.Errorf("%d nodes after the refusals", n)
	}
	if diff := cmp.Diff(before, s.versions(t)); diff != "" {
		t.Error(diff)
	}
	_, err := s.CoreV1().Namespaces().Get(t.Context(), "second", metav1.GetOptions{})
	if !apierrors.IsNotFound(err) {
		t.Errorf("namespace second: %v", err)
	}
}

func TestApplyRefusesForeignNames(t *testing.T) {
	s := newServer(t)
	ctx, nodes := t.Context(), s.CoreV1().Nodes()
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "load-node-05"}}
	if _, err := nodes.Create(ctx, node, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := nodes.Delete(context.Background(), node.Name, metav1.DeleteOptions{}); err != nil {
			t.Error(err)
		}
	})
	_, err := Apply(ctx, s.cfg, smallCluster(), Options{Namespace: s.namespace})
	var conflict *ConflictError
	want := "node load-node-05 is in the way: it was not created by a load; nothing was created"
	if !errors.As(err, &conflict) || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
	if n := len(s.nodes(t)); n != 1 {
		t.Errorf("%d nodes, want the foreign one alone", n)
	}
}
