// Package server is an API server for measuring its clients: it serves clusters
// of up to a million pods at almost no cost to itself, so that on a small machine
// the client is what is measured.
//
// Objects are not stored. Each is a template, encoded once, with digits patched in
// that follow from its number (template.go, objects.go). The cluster keeps only
// what has changed since it began (cluster.go). Pods and nodes are listed and
// watched like that (list.go, watch.go); ConfigMaps, leases and events are few and
// are stored (store.go). What a client sees is meant to be what a Kubernetes
// API server of the version in Version would answer, in protobuf and in JSON.
//
// The paths below /bench/ are for the harness: they order changes and read
// counters (control.go).
package server

// Version is what the server claims to be.
const Version = "v1.37.2"
