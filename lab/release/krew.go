package release

import (
	"archive/tar"
	"compress/gzip"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"

	"sigs.k8s.io/yaml"
)

// downloads is where releases are kept: what krew fetches is named by it.
const downloads = "https://" + module + "/releases/download/"

// KrewName is what users install by "kubectl krew install", and KrewManifest the file
// that tells krew how.
const (
	KrewName     = "gpu-summary"
	KrewManifest = KrewName + ".krew.yaml"
)

// The parts of a manifest of krew.googlecontainertools.github.com/v1alpha2.
type (
	krewPlugin struct {
		APIVersion string   `json:"apiVersion"`
		Kind       string   `json:"kind"`
		Metadata   krewMeta `json:"metadata"`
		Spec       krewSpec `json:"spec"`
	}
	krewMeta struct {
		Name string `json:"name"`
	}
	krewSpec struct {
		Version     string         `json:"version"`
		Homepage    string         `json:"homepage"`
		Short       string         `json:"shortDescription"`
		Description string         `json:"description"`
		Platforms   []krewPlatform `json:"platforms"`
	}
	krewPlatform struct {
		Selector krewSelector `json:"selector"`
		URI      string       `json:"uri"`
		SHA256   string       `json:"sha256"`
		Bin      string       `json:"bin"`
	}
	krewSelector struct {
		Labels map[string]string `json:"matchLabels"`
	}
)

// Krew packs each binary of the plugin together with the licence, as krew wants it,
// and writes the manifest that names the archives and their sums.
func (s Source) Krew(plugins []Binary, dir string) error {
	manifest := krewPlugin{
		APIVersion: "krew.googlecontainertools.github.com/v1alpha2", Kind: "Plugin", Metadata: krewMeta{KrewName},
		Spec: krewSpec{
			Version: s.Version, Homepage: "https://" + module,
			Short: "Show requested, free and waited-for GPUs",
			Description: "Shows how many GPUs are requested, free and waited for on each node, counted as\n" +
				"kube-scheduler counts, who holds them, and whether a pod would fit. It works with\n" +
				"no controller installed, and on a dump of a cluster's objects.\n",
		},
	}
	for _, b := range plugins {
		name := b.file(s.Version, b.Platform) + ".tar.gz"
		sum, err := s.archive(b, filepath.Join(dir, name))
		if err != nil {
			return fmt.Errorf("pack %s: %w", name, err)
		}
		manifest.Spec.Platforms = append(manifest.Spec.Platforms, krewPlatform{
			Selector: krewSelector{map[string]string{"os": b.OS, "arch": b.Arch}},
			URI:      downloads + s.Version + "/" + name, SHA256: sum, Bin: string(b.Program),
		})
	}
	text, err := yaml.Marshal(manifest)
	if err != nil {
		return fmt.Errorf("write krew manifest: %w", err)
	}
	if err := os.WriteFile(filepath.Join(dir, KrewManifest), text, 0o644); err != nil {
		return fmt.Errorf("write krew manifest: %w", err)
	}
	return nil
}

// archive packs a binary and the licence, and returns the sum of what it wrote.
func (s Source) archive(b Binary, path string) (sum string, err error) {
	file, err := os.Create(path)
	if err != nil {
		return "", err
	}
	zipped := gzip.NewWriter(file)
	w := tar.NewWriter(zipped)
	for _, entry := range []struct {
		name, path string
		mode       int64
	}{{string(b.Program), b.Path, 0o755}, {"LICENSE", filepath.Join(s.Root, "LICENSE"), 0o644}} {
		if err == nil {
			err = pack(w, entry.name, entry.path, entry.mode, s)
		}
	}
	for _, end := range []func() error{w.Close, zipped.Close, file.Close} {
		if e := end(); err == nil {
			err = e
		}
	}
	if err != nil {
		return "", err
	}
	content, err := os.ReadFile(path)
	return hex.EncodeToString(sha256Of(content)), err
}

func pack(w *tar.Writer, name, path string, mode int64, s Source) error {
	content, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	header := &tar.Header{Name: name, Mode: mode, Size: int64(len(content)), ModTime: s.Time.UTC(), Format: tar.FormatUSTAR}
	if err := w.WriteHeader(header); err != nil {
		return err
	}
	_, err = w.Write(content)
	return err
}
