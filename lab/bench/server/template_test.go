package server

import (
	"encoding/binary"
	"encoding/json"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
)

// decodeFrame reads an event as a client does.
func decodeFrame(t *testing.T, f format, frame []byte) (string, runtime.Object) {
	t.Helper()
	var event metav1.WatchEvent
	if f == asJSON {
		if err := json.Unmarshal(frame, &event); err != nil {
			t.Fatal(err)
		}
	} else {
		if n := binary.BigEndian.Uint32(frame); int(n) != len(frame)-4 {
			t.Fatalf("the frame says it is %d bytes, and is %d", n, len(frame)-4)
		}
		if _, _, err := protobufRaw.Decode(frame[4:], nil, &event); err != nil {
			t.Fatal(err)
		}
	}
	obj, _, err := scheme.Codecs.UniversalDeserializer().Decode(event.Object.Raw, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	return event.Type, obj
}

// TestEveryTemplateIsAnObject: with the digits patched in, what is sent is a pod or a node
// with these values in every place where they stand, in both encodings.
func TestEveryTemplateIsAnObject(t *testing.T) {
	pods, err := newPods()
	if err != nil {
		t.Fatal(err)
	}
	for f := range formats {
		for k := range podKinds {
			for e := range bookmark {
				o := object{version: 2_000_000_123, node: 4_711, kind: k, gpus: 4}
				what, obj := decodeFrame(t, f, pods.frames[f][e][k].append(nil, pods.values(1_234_567, o)))
				pod := obj.(*corev1.Pod)
				if what != eventNames[e] || !strings.HasSuffix(pod.Name, "-01234567") || pod.ResourceVersion != "2000000123" ||
					pod.Spec.NodeName != "ip-10-004711.us-west-2.compute.internal" || pod.Namespace != "team-066" {
					t.Errorf("%s %s/%s at %s on %s", what, pod.Namespace, pod.Name, pod.ResourceVersion, pod.Spec.NodeName)
				}
				gpus := pod.Spec.Containers[0].Resources.Requests[gpuResource]
				if got, want := gpus.Value(), int64(4); k.gpu() && got != want || !k.gpu() && got != 0 {
					t.Errorf("kind %d asks for %d GPUs", k, got)
				}
				if finished := pod.Status.Phase == corev1.PodSucceeded; finished != (k == finishedPod) {
					t.Errorf("kind %d is %s", k, pod.Status.Phase)
				}
				if pod.Status.PodIP != "10.123.145.167" || pod.Status.PodIPs[0].IP != pod.Status.PodIP {
					t.Errorf("addresses are %s and %v", pod.Status.PodIP, pod.Status.PodIPs)
				}
				text, _ := json.Marshal(pod)
				if strings.Contains(string(text), "xx") {
					t.Errorf("something was left open in %s", text)
				}
				if !k.gpu() && strings.Contains(string(text), "nvidia.com") {
					t.Error("a pod without GPUs speaks of them")
				}
			}
		}
	}
}

func TestPodsAreOfTheSizeOfLiveOnes(t *testing.T) {
	pods, err := newPods()
	if err != nil {
		t.Fatal(err)
	}
	nodes, err := newNodes()
	if err != nil {
		t.Fatal(err)
	}
	if n := len(pods.items[asProtobuf][plainPod].bytes); n < 5_000 || n > 5_500 {
		t.Errorf("a pod is %d bytes", n)
	}
	for k := range 2 {
		if n := len(nodes.items[asProtobuf][k].bytes); n < 8_000 || n > 10_000 {
			t.Errorf("a node is %d bytes", n)
		}
	}
}

// TestUIDsDiffer: a million equal UIDs would be one pod to whoever goes by them.
func TestUIDsDiffer(t *testing.T) {
	pods, err := newPods()
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for i := range 1_000 {
		_, obj := decodeFrame(t, asProtobuf, pods.frames[asProtobuf][added][plainPod].append(nil, pods.values(i, object{version: firstVersion})))
		uid := string(obj.(*corev1.Pod).UID)
		if len(uid) != 36 || seen[uid] {
			t.Fatalf("UID %q of pod %d", uid, i)
		}
		seen[uid] = true
	}
}

func TestSpread(t *testing.T) {
	c := newCluster(Size{Nodes: 100, Pods: 1_000, GPUPods: 50, GPUNodes: 20})
	gpuPods, requested, onGPUNodes := 0, int64(0), map[uint32]int64{}
	for i := range 1_000 {
		o := c.firstPod(i)
		if o.kind == gpuPod {
			gpuPods++
			requested += int64(o.gpus)
			onGPUNodes[o.node] += int64(o.gpus)
		} else if o.node < 20 || o.node >= 100 {
			t.Errorf("pod %d without GPUs is on node %d", i, o.node)
		}
	}
	e := c.Expected()
	if gpuPods != 50 || requested != e.Requested || len(onGPUNodes) != e.Used || e.Rows != 20 {
		t.Errorf("%d GPU pods ask for %d on %d nodes; expected is %+v", gpuPods, requested, len(onGPUNodes), e)
	}
	for node, n := range onGPUNodes {
		if n > GPUsPerNode {
			t.Errorf("node %d has %d GPUs requested", node, n)
		}
	}
	// What is expected follows the changes.
	for range 30 {
		c.bind()
	}
	for range 30 {
		if _, _, ok := c.finish(); !ok {
			t.Fatal("nothing to finish")
		}
	}
	if got := c.Expected(); got != e {
		t.Errorf("after binding and finishing as many pods: %+v, want %+v", got, e)
	}
	if _, _, ok := c.finish(); ok {
		t.Error("finished a pod that nobody had bound")
	}
}

func TestSizesThatDoNotAddUp(t *testing.T) {
	for _, s := range []Size{{}, {Nodes: 1, Pods: 1, GPUPods: 2}, {Nodes: 1, GPUNodes: 2}, {Nodes: 10, Pods: 100, GPUPods: 100, GPUNodes: 10}} {
		if s.Check() == nil {
			t.Errorf("%+v passes", s)
		}
	}
}

// TestViewsStay: what was looked at is one state, whatever happens after.
func TestViewsStay(t *testing.T) {
	c := newCluster(small)
	for range 40 {
		c.irrelevant()
	}
	v := c.view(true)
	before := map[int]object{}
	for i := range v.end {
		before[i], _ = v.get(i)
	}
	for range 40 {
		c.irrelevant()
		c.bind()
	}
	for i := range v.end {
		if o, _ := v.get(i); o != before[i] {
			t.Fatalf("pod %d was %+v and is %+v", i, before[i], o)
		}
	}
	if now := c.view(true); now.end <= v.end || now.version <= v.version {
		t.Errorf("nothing has changed: %+v", now)
	}
}

func TestRight(t *testing.T) {
	want := Expected{Requested: 10, Rows: 4, Used: 3}
	for _, tc := range []struct {
		what string
		says Published
		want bool
	}{
		{"ours", Published{Total: 10, Sum: 10, Rows: 4, Used: 3}, true},
		{"a rival's", Published{Total: -1, Sum: 10, Rows: 3, Used: 3}, true},
		{"a wrong total", Published{Total: 11, Sum: 10, Rows: 4, Used: 3}, false},
		{"a wrong sum", Published{Total: 10, Sum: 9, Rows: 4, Used: 3}, false},
		{"a rival's wrong sum", Published{Total: -1, Sum: 9, Rows: 3, Used: 3}, false},
		{"a row is missing", Published{Total: 10, Sum: 10, Rows: 3, Used: 3}, false},
		{"nothing", Published{Total: -1}, false},
	} {
		if got := tc.says.right(want); got != tc.want {
			t.Errorf("%s: %t", tc.what, got)
		}
	}
	shards := published{"gpu-summary": {base: "gpu-summary", Published: Published{Total: 10}}, "gpu-summary-shard-0001": {base: "gpu-summary", Published: Published{Total: -1, Sum: 10, Rows: 4, Used: 3}}, "other": {base: "other", Published: Published{Sum: 5, Rows: 1, Used: 1}}}
	if sum := shards.sum("gpu-summary"); !sum.right(want) {
		t.Errorf("shards together say %+v", sum)
	}
}
