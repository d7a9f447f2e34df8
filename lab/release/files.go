package release

import (
	"archive/tar"
	"encoding/hex"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// Tar packs a folder into one file, as container engines and "kind load" take an
// image layout. Files come in the order of their names and have no time.
func Tar(dir, path string) (err error) {
	file, err := os.Create(path)
	if err != nil {
		return fmt.Errorf("pack %s: %w", dir, err)
	}
	defer func() {
		if e := file.Close(); err == nil && e != nil {
			err = fmt.Errorf("pack %s: %w", dir, e)
		}
	}()
	w := tar.NewWriter(file)
	err = filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		name, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		header := &tar.Header{Name: filepath.ToSlash(name), Mode: 0o644, Size: int64(len(content)), ModTime: time.Unix(0, 0), Format: tar.FormatUSTAR}
		if err := w.WriteHeader(header); err != nil {
			return err
		}
		_, err = w.Write(content)
		return err
	})
	if err == nil {
		err = w.Close()
	}
	if err != nil {
		return fmt.Errorf("pack %s: %w", dir, err)
	}
	return nil
}

// Sums writes SHA256SUMS for the files of a folder, as sha256sum --check reads it.
func Sums(dir string) error {
	entries, err := os.ReadDir(dir) // sorted
	if err != nil {
		return fmt.Errorf("list what was built: %w", err)
	}
	var lines strings.Builder
	for _, entry := range entries {
		if entry.IsDir() || entry.Name() == "SHA256SUMS" {
			continue
		}
		content, err := os.ReadFile(filepath.Join(dir, entry.Name()))
		if err != nil {
			return fmt.Errorf("read what was built: %w", err)
		}
		fmt.Fprintf(&lines, "%s  %s\n", hex.EncodeToString(sha256Of(content)), entry.Name())
	}
	if err := os.WriteFile(filepath.Join(dir, "SHA256SUMS"), []byte(lines.String()), 0o644); err != nil {
		return fmt.Errorf("write checksums: %w", err)
	}
	return nil
}
