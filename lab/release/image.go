package release

import (
	"encoding/json"
	"fmt"
	"os"
	"time"
)

// repository is where the chart looks for the image. Container engines that import
// the image layout call it so.
const repository = "gpu-summary/gpu-summary-controller"

// shortNames is what kubelets put before a name without a registry. containerd imports
// an image under the name that the layout has, as it is, and a kubelet would not find it
// by a short one.
const shortNames = "docker.io/"

// user is a number, so that a kubelet can tell that it is not root.
const user = "65532:65532"

// Image writes an image layout with one image for all the binaries' platforms, and
// returns its digest. An image holds the binary and nothing else. The SBOM of each is
// attached to it as an artifact that refers to the image.
func (s Source) Image(binaries []Binary, dir string) (digest string, err error) {
	l, err := newLayout(dir)
	if err != nil {
		return "", err
	}
	var images, sboms []descriptor
	for _, b := range binaries {
		image, err := s.image(l, b)
		if err != nil {
			return "", err
		}
		sbom, err := s.attach(l, image, b.SBOM)
		if err != nil {
			return "", err
		}
		image.Platform = &platform{b.Arch, b.OS}
		images, sboms = append(images, image), append(sboms, sbom)
	}
	all, err := l.object(typeIndex, index{SchemaVersion: 2, MediaType: typeIndex, Manifests: images, Annotations: s.labels()})
	if err != nil {
		return "", err
	}
	named := all
	named.Annotations = map[string]string{
		"org.opencontainers.image.ref.name": s.Version,
		"io.containerd.image.name":          shortNames + repository + ":" + s.Version,
	}
	top, err := json.Marshal(index{SchemaVersion: 2, MediaType: typeIndex, Manifests: append([]descriptor{named}, sboms...)})
	if err != nil {
		return "", fmt.Errorf("write image: %w", err)
	}
	return all.Digest, l.write("index.json", top)
}

// image stores one platform's image and returns its manifest.
func (s Source) image(l layout, b Binary) (descriptor, error) {
	content, err := os.ReadFile(b.Path)
	if err != nil {
		return descriptor{}, fmt.Errorf("read binary: %w", err)
	}
	packed, diffID, err := layer(string(Controller), content)
	if err != nil {
		return descriptor{}, err
	}
	files, err := l.blob(typeLayer, packed)
	if err != nil {
		return descriptor{}, err
	}
	config, err := l.object(typeConfig, imageConfig{
		Created: s.Time.UTC(), Architecture: b.Arch, OS: b.OS,
		Config: containerConfig{
			User: user, Entrypoint: []string{"/" + string(Controller)}, WorkingDir: "/",
			ExposedPorts: map[string]struct{}{"8443/tcp": {}}, Labels: s.labels(),
		},
		RootFS:  rootFS{"layers", []string{diffID}},
		History: []history{{s.Time.UTC(), "make image"}},
	})
	if err != nil {
		return descriptor{}, err
	}
	return l.object(typeManifest, manifest{
		SchemaVersion: 2, MediaType: typeManifest, Config: config, Layers: []descriptor{files}, Annotations: s.labels(),
	})
}

// attach stores an SBOM as an artifact whose subject is an image.
func (s Source) attach(l layout, image descriptor, sbom []byte) (descriptor, error) {
	empty, err := l.blob(typeEmpty, []byte("{}"))
	if err != nil {
		return descriptor{}, err
	}
	text, err := l.blob(typeSBOM, sbom)
	if err != nil {
		return descriptor{}, err
	}
	artifact, err := l.object(typeManifest, manifest{
		SchemaVersion: 2, MediaType: typeManifest, ArtifactType: typeSBOM, Config: empty, Layers: []descriptor{text}, Subject: &image,
		Annotations: map[string]string{"org.opencontainers.image.created": s.Time.UTC().Format(time.RFC3339)},
	})
	artifact.ArtifactType = typeSBOM
	return artifact, err
}

func (s Source) labels() map[string]string {
	return map[string]string{
		"org.opencontainers.image.title":       string(Controller),
		"org.opencontainers.image.description": "One true answer to how many GPUs are requested, free and waited for, on which node",
		"org.opencontainers.image.version":     s.Version,
		"org.opencontainers.image.created":     s.Time.UTC().Format(time.RFC3339),
		"org.opencontainers.image.source":      "https://" + module,
		"org.opencontainers.image.licenses":    "Apache-2.0",
	}
}
