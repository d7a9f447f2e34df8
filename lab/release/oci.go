package release

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// The media types of the OCI image specification, 1.1.
const (
	typeIndex    = "application/vnd.oci.image.index.v1+json"
	typeManifest = "application/vnd.oci.image.manifest.v1+json"
	typeConfig   = "application/vnd.oci.image.config.v1+json"
	typeLayer    = "application/vnd.oci.image.layer.v1.tar+gzip"
	typeEmpty    = "application/vnd.oci.empty.v1+json"
	typeSBOM     = "application/vnd.cyclonedx+json"
)

type (
	descriptor struct {
		MediaType    string            `json:"mediaType"`
		ArtifactType string            `json:"artifactType,omitempty"`
		Digest       string            `json:"digest"`
		Size         int64             `json:"size"`
		Platform     *platform         `json:"platform,omitempty"`
		Annotations  map[string]string `json:"annotations,omitempty"`
	}
	platform struct {
		Architecture string `json:"architecture"`
		OS           string `json:"os"`
	}
	index struct {
		SchemaVersion int               `json:"schemaVersion"`
		MediaType     string            `json:"mediaType"`
		Manifests     []descriptor      `json:"manifests"`
		Annotations   map[string]string `json:"annotations,omitempty"`
	}
	manifest struct {
		SchemaVersion int               `json:"schemaVersion"`
		MediaType     string            `json:"mediaType"`
		ArtifactType  string            `json:"artifactType,omitempty"`
		Config        descriptor        `json:"config"`
		Layers        []descriptor      `json:"layers"`
		Subject       *descriptor       `json:"subject,omitempty"`
		Annotations   map[string]string `json:"annotations,omitempty"`
	}
	imageConfig struct {
		Created      time.Time       `json:"created"`
		Architecture string          `json:"architecture"`
		OS           string          `json:"os"`
		Config       containerConfig `json:"config"`
		RootFS       rootFS          `json:"rootfs"`
		History      []history       `json:"history"`
	}
	containerConfig struct {
		User         string
		ExposedPorts map[string]struct{}
		Entrypoint   []string
		WorkingDir   string
		Labels       map[string]string
	}
	rootFS struct {
		Type    string   `json:"type"`
		DiffIDs []string `json:"diff_ids"`
	}
	history struct {
		Created   time.Time `json:"created"`
		CreatedBy string    `json:"created_by"`
	}
)

// layout is a folder that holds images, as the specification's image layout.
type layout struct{ dir string }

// newLayout makes an empty one where none may be.
func newLayout(dir string) (layout, error) {
	l := layout{dir}
	if err := os.RemoveAll(dir); err != nil {
		return l, fmt.Errorf("remove the last image: %w", err)
	}
	if err := os.MkdirAll(filepath.Join(dir, "blobs", "sha256"), 0o755); err != nil {
		return l, fmt.Errorf("make image layout: %w", err)
	}
	return l, l.write("oci-layout", []byte(`{"imageLayoutVersion":"1.0.0"}`))
}

func (l layout) write(name string, content []byte) error {
	if err := os.WriteFile(filepath.Join(l.dir, filepath.FromSlash(name)), content, 0o644); err != nil {
		return fmt.Errorf("write image: %w", err)
	}
	return nil
}

// blob stores content under its digest.
func (l layout) blob(mediaType string, content []byte) (descriptor, error) {
	sum := hex.EncodeToString(sha256Of(content))
	return descriptor{MediaType: mediaType, Digest: "sha256:" + sum, Size: int64(len(content))}, l.write("blobs/sha256/"+sum, content)
}

// object stores a value as JSON.
func (l layout) object(mediaType string, value any) (descriptor, error) {
	content, err := json.Marshal(value)
	if err != nil {
		return descriptor{}, fmt.Errorf("write image: %w", err)
	}
	return l.blob(mediaType, content)
}

func sha256Of(content []byte) []byte {
	sum := sha256.Sum256(content)
	return sum[:]
}

// layer packs one executable file, and nothing of who did so and when. It returns
// the compressed layer, and the digest of what is in it.
func layer(name string, content []byte) (packed []byte, diffID string, err error) {
	var plain, zipped bytes.Buffer
	w := tar.NewWriter(&plain)
	header := &tar.Header{Name: name, Mode: 0o555, Size: int64(len(content)), ModTime: time.Unix(0, 0), Format: tar.FormatUSTAR}
	if err := w.WriteHeader(header); err != nil {
		return nil, "", fmt.Errorf("pack layer: %w", err)
	}
	if _, err := w.Write(content); err != nil {
		return nil, "", fmt.Errorf("pack layer: %w", err)
	}
	if err := w.Close(); err != nil {
		return nil, "", fmt.Errorf("pack layer: %w", err)
	}
	z := gzip.NewWriter(&zipped) // without a name and a time
	if _, err := z.Write(plain.Bytes()); err != nil {
		return nil, "", fmt.Errorf("compress layer: %w", err)
	}
	if err := z.Close(); err != nil {
		return nil, "", fmt.Errorf("compress layer: %w", err)
	}
	return zipped.Bytes(), "sha256:" + hex.EncodeToString(sha256Of(plain.Bytes())), nil
}
