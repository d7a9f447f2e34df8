// Package gpudriver plays the GPU driver of a node. It speaks to a real kubelet
// as NVIDIA's drivers do, either as device plugins or as a DRA driver, and offers
// devices that exist in its memory only: a pod that is given one finds the UUID
// in its environment and nothing else.
//
// Devices turn unhealthy and back, and the driver restarts, vanishes and returns,
// by calls of [Driver] or, from another process, of [Control].
package gpudriver
