package bench

import (
	"os/exec"
	"strings"
)

// versionOf is what a binary says of itself.
func versionOf(path string) string {
	out, err := exec.Command(path, "--version").Output()
	if err != nil {
		return "unknown"
	}
	return strings.TrimSpace(string(out))
}
