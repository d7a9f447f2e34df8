package release

import (
	"bytes"
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"time"
)

// The parts of CycloneDX 1.6 that say what a Go program is made of.
type (
	bom struct {
		Format     string       `json:"bomFormat"`
		Spec       string       `json:"specVersion"`
		Version    int          `json:"version"`
		Metadata   metadata     `json:"metadata"`
		Components []component  `json:"components"`
		Depends    []dependency `json:"dependencies"`
	}
	metadata struct {
		Timestamp string    `json:"timestamp"`
		Component component `json:"component"`
	}
	component struct {
		Type       string     `json:"type"`
		Ref        string     `json:"bom-ref"`
		Name       string     `json:"name"`
		Version    string     `json:"version"`
		PURL       string     `json:"purl"`
		Hashes     []hash     `json:"hashes,omitempty"`
		Properties []property `json:"properties,omitempty"`
	}
	hash struct {
		Alg     string `json:"alg"`
		Content string `json:"content"`
	}
	property struct {
		Name  string `json:"name"`
		Value string `json:"value"`
	}
	dependency struct {
		Ref       string   `json:"ref"`
		DependsOn []string `json:"dependsOn"`
	}
)

// sbom lists what a binary is made of. It asks the binary: the linker wrote down
// the modules that are really in it, which are fewer than go.mod requires.
func (s Source) sbom(path string) ([]byte, error) {
	info, err := buildinfo.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read what %s is made of: %w", path, err)
	}
	content, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read binary: %w", err)
	}
	digest := sha256.Sum256(content)
	program := library(info.Main.Path, s.Version)
	program.Type = "application"
	program.Hashes = []hash{{"SHA-256", hex.EncodeToString(digest[:])}}
	for _, setting := range info.Settings {
		program.Properties = append(program.Properties, property{"go:build:" + setting.Key, setting.Value})
	}
	document := bom{
		Format: "CycloneDX", Spec: "1.6", Version: 1,
		Metadata:   metadata{s.Time.UTC().Format(time.RFC3339), program},
		Components: []component{library("std", strings.TrimPrefix(info.GoVersion, "go"))},
	}
	for _, module := range info.Deps {
		if module.Replace != nil {
			module = module.Replace
		}
		c := library(module.Path, module.Version)
		if module.Sum != "" {
			// Not a digest of any file, so it is none of the hashes; go.sum has it too.
			c.Properties = []property{{"go:sum", module.Sum}}
		}
		document.Components = append(document.Components, c)
	}
	var all []string
	for _, c := range document.Components {
		all = append(all, c.Ref)
	}
	// Which of them needs which is not in the binary.
	document.Depends = []dependency{{program.Ref, all}}
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(document); err != nil {
		return nil, fmt.Errorf("write SBOM: %w", err)
	}
	return text.Bytes(), nil
}

func library(path, version string) component {
	// A package URL has a namespace and a name, divided by the last slash. The only
	// character of a version that means something in it is the plus of +incompatible.
	purl := "pkg:golang/" + path + "@" + strings.ReplaceAll(version, "+", "%2B")
	return component{Type: "library", Ref: purl, Name: path, Version: version, PURL: purl}
}
