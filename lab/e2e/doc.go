// Package e2e tests the product as its users install it: the image that "make image"
// makes, loaded into a node with a real kubelet and containerd; the Helm chart, installed by
// helm; two replicas as pods, in a namespace that admits nothing that is not
// restricted. GPUs are package gpudriver's: real to kubelet and scheduler.
//
// At the end of every test three parties must agree on what is requested of the node:
// the published ConfigMaps, the scheduler's NodeInfo, and the devices that the kubelet
// has given to containers (settled_linux_test.go). Tests that need a second node have it
// join, and it is gone after them (join_linux_test.go).
//
// A real node needs Linux and root. Elsewhere all tests skip, and say what is missing.
package e2e
