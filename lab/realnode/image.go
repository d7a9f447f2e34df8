package realnode

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
)

// WriteImage writes an image with one static program, which it starts, as an archive of
// the kind that docker saves. The program is at its base name in the root.
func WriteImage(w io.Writer, reference, program string) error {
	layer, err := layerOf(program)
	if err != nil {
		return err
	}
	sum := sha256.Sum256(layer)
	config, err := json.Marshal(map[string]any{
		"architecture": runtime.GOARCH,
		"os":           "linux",
		"config":       map[string]any{"Entrypoint": []string{"/" + filepath.Base(program)}, "WorkingDir": "/"},
		"rootfs":       map[string]any{"type": "layers", "diff_ids": []string{"sha256:" + hex.EncodeToString(sum[:])}},
	})
	if err != nil {
		return fmt.Errorf("encode image: %w", err)
	}
	manifest, err := json.Marshal([]map[string]any{{
		"Config": "config.json", "RepoTags": []string{reference}, "Layers": []string{"layer.tar"},
	}})
	if err != nil {
		return fmt.Errorf("encode image: %w", err)
	}
	archive := tar.NewWriter(w)
	for _, file := range []struct {
		name string
		data []byte
	}{{"manifest.json", manifest}, {"config.json", config}, {"layer.tar", layer}} {
		if err := addFile(archive, file.name, 0o644, file.data); err != nil {
			return err
		}
	}
	return archive.Close()
}

// layerOf is a file system with nothing but the program.
func layerOf(program string) ([]byte, error) {
	data, err := os.ReadFile(program)
	if err != nil {
		return nil, fmt.Errorf("read the image's program: %w", err)
	}
	var layer bytes.Buffer
	files := tar.NewWriter(&layer)
	if err := addFile(files, filepath.Base(program), 0o755, data); err != nil {
		return nil, err
	}
	if err := files.Close(); err != nil {
		return nil, fmt.Errorf("write image: %w", err)
	}
	return layer.Bytes(), nil
}

func addFile(to *tar.Writer, name string, mode int64, data []byte) error {
	header := &tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: mode, Size: int64(len(data))}
	if err := to.WriteHeader(header); err != nil {
		return fmt.Errorf("write image: %w", err)
	}
	if _, err := to.Write(data); err != nil {
		return fmt.Errorf("write image: %w", err)
	}
	return nil
}
