package server

import (
	"context"
	"fmt"
	"maps"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"
)

// ways are all ways to serve; informers have to end up with the same with each.
var ways = map[string]Options{
	"plain":                     {},
	"gzip":                      {Gzip: true},
	"TLS":                       {TLS: true},
	"TLS, gzip":                 {TLS: true, Gzip: true},
	"JSON":                      {JSONOnly: true},
	"no watch list":             {NoWatchList: true},
	"JSON, gzip, no watch list": {JSONOnly: true, Gzip: true, NoWatchList: true},
}

// TestInformersFollow: stock informers have the whole cluster, and after changes of every kind they
// have what the server has.
func TestInformersFollow(t *testing.T) {
	for name, o := range ways {
		t.Run(name, func(t *testing.T) {
			// Few: the race detector and JSON together take milliseconds for a pod.
			o.Size = Size{Nodes: 30, Pods: 240, GPUPods: 40, GPUNodes: 15}
			s, client := start(t, o)
			factory := informers.NewSharedInformerFactoryWithOptions(client, 0, informers.WithTweakListOptions(func(*metav1.ListOptions) {}))
			active := informers.NewSharedInformerFactoryWithOptions(client, 0, informers.WithTweakListOptions(func(o *metav1.ListOptions) {
				o.FieldSelector = "status.phase!=Succeeded,status.phase!=Failed"
			}))
			pods, nodes, running := factory.Core().V1().Pods(), factory.Core().V1().Nodes(), active.Core().V1().Pods()
			all := []cache.SharedIndexInformer{pods.Informer(), nodes.Informer(), running.Informer()}
			ctx, cancel := context.WithCancel(t.Context())
			defer active.Shutdown()
			defer factory.Shutdown()
			defer cancel()
			factory.StartWithContext(ctx)
			active.StartWithContext(ctx)
			bounded, stop := context.WithTimeout(ctx, patience)
			defer stop()
			for _, informer := range all {
				if !cache.WaitForCacheSync(bounded.Done(), informer.HasSynced) {
					t.Fatal("not synced")
				}
			}
			if n := len(pods.Informer().GetStore().ListKeys()); n != o.Pods {
				t.Fatalf("%d pods, want %d", n, o.Pods)
			}
			if _, err := s.cluster.churn(ctx, Churn{Count: 200}); err != nil {
				t.Fatal(err)
			}
			if _, err := s.cluster.churn(ctx, Churn{Count: 60, GPUEvery: 2, Finish: true}); err != nil {
				t.Fatal(err)
			}
			s.cluster.bind()
			for i, informer := range all {
				want := s.versions(i == 1, i == 2)
				eventually(t, fmt.Sprintf("store %d is the server's", i), func() bool { return maps.Equal(versions(informer), want) })
			}
			var requested int64
			for _, obj := range running.Informer().GetStore().List() {
				q := obj.(*corev1.Pod).Spec.Containers[0].Resources.Requests[gpuResource]
				requested += q.Value()
			}
			if want := s.cluster.Expected().Requested; requested != want {
				t.Errorf("%d GPUs requested, want %d", requested, want)
			}
		})
	}
}

// versions are the versions of all objects of an informer, by what tells them apart.
func versions(informer cache.SharedIndexInformer) map[string]bool {
	out := map[string]bool{}
	for _, obj := range informer.GetStore().List() {
		out[obj.(metav1.Object).GetResourceVersion()] = true
	}
	return out
}

func (s *Server) versions(nodes, active bool) map[string]bool {
	v, out := s.cluster.view(!nodes), map[string]bool{}
	for i := range v.end {
		if o, ok := v.get(i); ok && (!active || o.kind != finishedPod) {
			out[fmt.Sprint(o.version)] = true
		}
	}
	return out
}
