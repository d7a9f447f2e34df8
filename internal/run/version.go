package run

import (
	"runtime/debug"
	"strings"

	"k8s.io/component-base/version"
)

// Version is what the build says it is: set by make, else what the go command
// knows of the module, as with go install of a tagged version.
func Version() string {
	if v := version.Get().GitVersion; !strings.HasPrefix(v, "v0.0.0-master") {
		return v
	}
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		return info.Main.Version
	}
	return "(devel)"
}
