// Package manifests carries the manifests of this folder that a controller outside
// of the cluster needs too, so that what Go programs install is what users are told
// to apply.
package manifests

import "embed"

// FS holds the namespace and the permissions. Applied in the order of their names,
// as kubectl apply does with a folder, each finds the namespace it needs.
//
//go:embed namespace.yaml rbac.yaml
var FS embed.FS
