// Package manifests carries the plain manifests in this folder, so that what Go
// programs install is what users are told to apply.
package manifests

import "embed"

// FS holds the manifests. Applied in the order of their names, as kubectl apply
// does with a folder, each finds the namespace it needs.
//
//go:embed *.yaml
var FS embed.FS
