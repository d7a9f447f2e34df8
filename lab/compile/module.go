package compile

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
)

const modulePath = "github.com/gpu-summary/gpu-summary-controller/lab"

// Module finds the sources of the lab: next to the executable (bin/lab in a
// checkout), or around the working directory (go run, go test).
func Module() (string, error) {
	var starts []string
	if exe, err := os.Executable(); err == nil {
		if real, err := filepath.EvalSymlinks(exe); err == nil {
			starts = append(starts, filepath.Dir(real))
		}
	}
	if wd, err := os.Getwd(); err == nil {
		starts = append(starts, wd)
	}
	for _, start := range starts {
		for dir := start; ; dir = filepath.Dir(dir) {
			for _, candidate := range []string{dir, filepath.Join(dir, "lab")} {
				if isModule(candidate) {
					return candidate, nil
				}
			}
			if dir == filepath.Dir(dir) {
				break
			}
		}
	}
	return "", errors.New("find the sources of the lab: no go.mod of " + modulePath +
		" around the executable or the working directory; run this inside a checkout of the project")
}

func isModule(dir string) bool {
	data, err := os.ReadFile(filepath.Join(dir, "go.mod"))
	if err != nil {
		return false
	}
	for line := range strings.Lines(string(data)) {
		if strings.TrimSpace(line) == "module "+modulePath {
			return true
		}
	}
	return false
}

func isFile(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular()
}
