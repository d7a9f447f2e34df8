package server

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

// Sample makes the objects of a cluster of this package for a real API server: the same
// pods on the same nodes, without what only a server may set. Their status stays behind as well, since
// setting it takes a second request for each; a pod is then 4 KB instead of 5.
type Sample struct {
	cluster *Cluster
	pods    *encoder
	nodes   *encoder
}

// NewSample prepares the objects of a cluster.
func NewSample(s Size) (*Sample, error) {
	if err := s.Check(); err != nil {
		return nil, err
	}
	pods, err := newPods()
	if err != nil {
		return nil, err
	}
	nodes, err := newNodes()
	return &Sample{cluster: newCluster(s), pods: pods, nodes: nodes}, err
}

// Expected is what a right summary says.
func (s *Sample) Expected() Expected { return s.cluster.Expected() }

// Namespaces are all in which there are pods.
func (s *Sample) Namespaces() (names []string) {
	for i := range namespaces {
		names = append(names, fmt.Sprintf("team-%03d", i))
	}
	return names
}

// Node is node number i.
func (s *Sample) Node(i int) (*corev1.Node, error) {
	n, o := &corev1.Node{}, s.cluster.firstNode(i)
	if err := unmarshalItem(n, s.nodes.items[asProtobuf][s.nodes.kindOf(o)].append(nil, s.nodes.values(i, o))); err != nil {
		return nil, err
	}
	clean(n)
	n.Spec.PodCIDR, n.Spec.PodCIDRs = "", nil
	return n, nil
}

// Pod is pod number i.
func (s *Sample) Pod(i int) (*corev1.Pod, error) {
	p, o := &corev1.Pod{}, s.cluster.firstPod(i)
	if err := unmarshalItem(p, s.pods.items[asProtobuf][o.kind].append(nil, s.pods.values(i, o))); err != nil {
		return nil, err
	}
	clean(p)
	p.GenerateName, p.OwnerReferences = "", nil
	p.Spec.ServiceAccountName, p.Spec.DeprecatedServiceAccount, p.Spec.AutomountServiceAccountToken = "", "", ptr.To(false)
	p.Spec.Priority, p.Spec.PreemptionPolicy = nil, nil
	p.Status = corev1.PodStatus{}
	return p, nil
}

func clean(o metav1.Object) {
	o.SetUID("")
	o.SetResourceVersion("")
	o.SetManagedFields(nil)
	o.SetCreationTimestamp(metav1.Time{})
}

// unmarshalItem decodes an item of a protobuf list, which is a field with the object in it.
func unmarshalItem(into interface{ Unmarshal([]byte) error }, item []byte) error {
	item = item[1:] // the tag
	for item[0]&0x80 != 0 {
		item = item[1:]
	}
	return into.Unmarshal(item[1:])
}

// Judge tells whether published ConfigMaps are what they have to be.
type Judge struct {
	Summary  string
	Expected Expected

	published published
}

// See takes a ConfigMap, and tells whether the summary is right now.
func (j *Judge) See(cm *corev1.ConfigMap) bool {
	if j.published == nil {
		j.published = published{}
	}
	if is, numbers := read(cm); numbers {
		j.published[cm.Name] = is
	}
	return j.published.sum(j.Summary).right(j.Expected)
}
