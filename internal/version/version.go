// Package version is what a build calls itself.
package version

import "runtime/debug"

// version is set by make. It is not component-base's version, which stands for
// that of Kubernetes: metrics are hidden or shown by it.
var version string

// String is what the build says it is: set by make, else what the go command
// knows of the module, as with go install of a tagged version.
func String() string {
	if version != "" {
		return version
	}
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		return info.Main.Version
	}
	return "(devel)"
}
