// Package gather reads a cluster once, for commands that ask a question and end:
// from its API server, from a dump of its objects, or from the ConfigMaps that the
// controller has published. The controller itself watches (internal/watch).
//
// Objects are handed to a Visitor as they arrive and are not kept here, so that memory
// follows what the visitor makes of them, not what the cluster or the dump holds.
package gather

import (
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
)

// Visitor is told of each object, in no particular order: a pod may come before the
// node it is on. It may keep an object it was given, and must not change it.
type Visitor interface {
	Pod(*corev1.Pod)
	Node(*corev1.Node)
	DeviceClass(*resourcev1.DeviceClass)
	ResourceSlice(*resourcev1.ResourceSlice)
	ResourceClaim(*resourcev1.ResourceClaim)
}

// All tells several visitors of each object.
type All []Visitor

var _ Visitor = All(nil)

// Pod tells all of a pod.
func (a All) Pod(pod *corev1.Pod) {
	for _, v := range a {
		v.Pod(pod)
	}
}

// Node tells all of a node.
func (a All) Node(node *corev1.Node) {
	for _, v := range a {
		v.Node(node)
	}
}

// DeviceClass tells all of a class.
func (a All) DeviceClass(class *resourcev1.DeviceClass) {
	for _, v := range a {
		v.DeviceClass(class)
	}
}

// ResourceSlice tells all of a slice.
func (a All) ResourceSlice(slice *resourcev1.ResourceSlice) {
	for _, v := range a {
		v.ResourceSlice(slice)
	}
}

// ResourceClaim tells all of a claim.
func (a All) ResourceClaim(claim *resourcev1.ResourceClaim) {
	for _, v := range a {
		v.ResourceClaim(claim)
	}
}
