package plane

import (
	"bytes"
	"embed"
	"fmt"
	"io/fs"
)

// stageFiles say what KWOK does in place of the kubelets; each file explains
// its part.
//
//go:embed stages/*.yaml
var stageFiles embed.FS

// stages returns all stage files as one YAML stream for KWOK's --config.
func stages() ([]byte, error) {
	var all bytes.Buffer
	err := fs.WalkDir(stageFiles, ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := stageFiles.ReadFile(path)
		if err != nil {
			return err
		}
		all.WriteString("---\n")
		all.Write(data)
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("read embedded stages: %w", err)
	}
	return all.Bytes(), nil
}
