package release

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

var source = Source{Version: "v1.2.3", Time: time.Unix(1_700_000_000, 0)}

// standIns are files in place of binaries, for what an image is made of matters not
// to how it is made.
func standIns(t *testing.T) (list []Binary) {
	t.Helper()
	for _, p := range []Platform{{"linux", "amd64"}, {"linux", "arm64"}} {
		path := filepath.Join(t.TempDir(), "binary")
		if err := os.WriteFile(path, []byte("program for "+p.Arch), 0o700); err != nil {
			t.Fatal(err)
		}
		list = append(list, Binary{Controller, p, path, []byte(`{"for":"` + p.Arch + `"}`)})
	}
	return list
}

func image(t *testing.T, binaries []Binary) (dir, digest string) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), "image")
	digest, err := source.Image(binaries, dir)
	if err != nil {
		t.Fatal(err)
	}
	return dir, digest
}

// reader follows descriptors, as whoever pulls an image does.
type reader struct {
	*testing.T
	dir  string
	seen map[string]bool
}

func (r reader) blob(d descriptor) []byte {
	r.Helper()
	sum, ok := strings.CutPrefix(d.Digest, "sha256:")
	if !ok {
		r.Fatalf("digest %q", d.Digest)
	}
	content, err := os.ReadFile(filepath.Join(r.dir, "blobs", "sha256", sum))
	if err != nil {
		r.Fatal(err)
	}
	if int64(len(content)) != d.Size || hex.EncodeToString(sha256Of(content)) != sum {
		r.Errorf("blob %s is not what its descriptor says", sum)
	}
	r.seen[sum] = true
	return content
}

func (r reader) object(d descriptor, mediaType string, into any) {
	r.Helper()
	if d.MediaType != mediaType {
		r.Errorf("it is %s, want %s", d.MediaType, mediaType)
	}
	r.decode(r.blob(d), into)
}

// decode reads JSON that holds nothing unknown.
func (r reader) decode(text []byte, into any) {
	r.Helper()
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(into); err != nil {
		r.Fatal(err)
	}
}

// TestTheImageHoldsTheBinaryAndNothingElse, for each platform, to be run by a user
// who is not root, and everything in the layout hangs together.
func TestTheImageHoldsTheBinaryAndNothingElse(t *testing.T) {
	binaries := standIns(t)
	dir, digest := image(t, binaries)
	r := reader{t, dir, map[string]bool{}}
	var top, all index
	text, err := os.ReadFile(filepath.Join(dir, "index.json"))
	if err != nil {
		t.Fatal(err)
	}
	r.decode(text, &top)
	if top.Manifests[0].Digest != digest {
		t.Errorf("the first image is %s, want %s", top.Manifests[0].Digest, digest)
	}
	names := map[string]string{
		"org.opencontainers.image.ref.name": "v1.2.3",
		// As in the chart's values, with what a short name stands for.
		"io.containerd.image.name": "docker.io/gpu-summary/gpu-summary-controller:v1.2.3",
	}
	if diff := cmp.Diff(names, top.Manifests[0].Annotations); diff != "" {
		t.Errorf("names (-want +got):\n%s", diff)
	}
	r.object(top.Manifests[0], typeIndex, &all)
	if len(all.Manifests) != len(binaries) || len(top.Manifests) != 1+len(binaries) {
		t.Fatalf("%d images and %d artifacts, want %d of each", len(all.Manifests), len(top.Manifests)-1, len(binaries))
	}
	for i, b := range binaries {
		r.image(all.Manifests[i], b)
		r.sbom(top.Manifests[i+1], all.Manifests[i], b)
	}
	blobs, err := os.ReadDir(filepath.Join(dir, "blobs", "sha256"))
	if err != nil {
		t.Fatal(err)
	}
	if len(blobs) != len(r.seen) {
		t.Errorf("%d blobs, of which %d are referred to", len(blobs), len(r.seen))
	}
}

func (r reader) image(d descriptor, b Binary) {
	r.Helper()
	if diff := cmp.Diff(&platform{b.Arch, b.OS}, d.Platform); diff != "" {
		r.Errorf("platform (-want +got):\n%s", diff)
	}
	var m manifest
	r.object(d, typeManifest, &m)
	var config imageConfig
	r.object(m.Config, typeConfig, &config)
	if config.Architecture != b.Arch || config.OS != b.OS || config.Config.User != "65532:65532" ||
		!cmp.Equal(config.Config.Entrypoint, []string{"/gpu-summary-controller"}) {
		r.Errorf("the image is to be run as %+v", config)
	}
	if len(m.Layers) != 1 || m.Layers[0].MediaType != typeLayer {
		r.Fatalf("layers %+v, want one", m.Layers)
	}
	unzipped, err := gzip.NewReader(bytes.NewReader(r.blob(m.Layers[0])))
	if err != nil {
		r.Fatal(err)
	}
	plain, err := io.ReadAll(unzipped)
	if err != nil {
		r.Fatal(err)
	}
	if want := []string{"sha256:" + hex.EncodeToString(sha256Of(plain))}; !cmp.Equal(want, config.RootFS.DiffIDs) {
		r.Errorf("the layer is said to hold %v, and holds %v", config.RootFS.DiffIDs, want)
	}
	files := tar.NewReader(bytes.NewReader(plain))
	header, err := files.Next()
	if err != nil {
		r.Fatal(err)
	}
	if header.Name != string(Controller) || header.Mode != 0o555 || header.Uid != 0 || header.Gid != 0 || header.Uname != "" || header.ModTime.Unix() != 0 {
		r.Errorf("the file is %+v", header)
	}
	want, err := os.ReadFile(b.Path)
	if err != nil {
		r.Fatal(err)
	}
	if got, err := io.ReadAll(files); err != nil || !bytes.Equal(got, want) {
		r.Errorf("the file holds %q, %v, want %q", got, err, want)
	}
	if _, err := files.Next(); err != io.EOF {
		r.Errorf("there is another file: %v", err)
	}
}

// sbom: the artifact refers to the image, and holds what the binary is made of.
func (r reader) sbom(d, image descriptor, b Binary) {
	r.Helper()
	if d.ArtifactType != "application/vnd.cyclonedx+json" {
		r.Errorf("the artifact is listed as %q", d.ArtifactType)
	}
	var m manifest
	r.object(d, typeManifest, &m)
	r.blob(m.Config)
	if m.Subject == nil || m.Subject.Digest != image.Digest || m.ArtifactType != "application/vnd.cyclonedx+json" {
		r.Errorf("an artifact of type %q refers to %+v, want %s", m.ArtifactType, m.Subject, image.Digest)
	}
	if got := r.blob(m.Layers[0]); !bytes.Equal(got, b.SBOM) {
		r.Errorf("it holds %s, want %s", got, b.SBOM)
	}
}

// TestTheImageSaysNothingOfItsMaking: who made it, when and where.
func TestTheImageSaysNothingOfItsMaking(t *testing.T) {
	first, digest := image(t, standIns(t))
	binaries := standIns(t)
	for _, b := range binaries {
		long := time.Unix(1, 0)
		if err := errors.Join(os.Chmod(b.Path, 0o755), os.Chtimes(b.Path, long, long)); err != nil {
			t.Fatal(err)
		}
	}
	second, again := image(t, binaries)
	if digest != again {
		t.Errorf("digests %s and %s", digest, again)
	}
	var sums []string
	for _, dir := range []string{first, second} {
		path := filepath.Join(t.TempDir(), "image.tar")
		if err := Tar(dir, path); err != nil {
			t.Fatal(err)
		}
		content, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		sums = append(sums, hex.EncodeToString(sha256Of(content)))
	}
	if sums[0] != sums[1] {
		t.Error("the files differ")
	}
}

func TestSumsAreWhatSha256sumReads(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{"b": "", "a": "abc", "SHA256SUMS": "old"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(os.Mkdir(filepath.Join(dir, "image"), 0o700), Sums(dir)); err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(filepath.Join(dir, "SHA256SUMS"))
	if err != nil {
		t.Fatal(err)
	}
	// The examples of FIPS 180-2 and of the empty message.
	want := "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad  a\n" +
		"e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855  b\n"
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Errorf("checksums (-want +got):\n%s", diff)
	}
}
