package install

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

const (
	// namespace is that of the plain manifests, which have no other way to be given
	// one.
	namespace = "gpu-summary"
	// source precedes each document that helm renders, with the template's name.
	source = "# Source: gpu-summary-controller/templates/"
	// made says where not to edit.
	made = "# Made of deploy/chart by \"make manifests\"; edit that.\n\n"
)

// Files returns the plain manifests by file name: the chart with its default
// values, one file for each template.
func (t Tools) Files(ctx context.Context) (map[string]string, error) {
	rendered, err := t.Render(ctx, namespace, "")
	if err != nil {
		return nil, err
	}
	files := map[string]string{}
	for document := range strings.SplitSeq("\n"+rendered, "\n---\n") {
		if strings.TrimSpace(document) == "" {
			continue
		}
		head, body, _ := strings.Cut(document, "\n")
		name, ok := strings.CutPrefix(head, source)
		if !ok {
			return nil, fmt.Errorf("split the rendered chart: a document begins with %q", head)
		}
		if files[name] == "" {
			files[name] = made
		} else {
			files[name] += "---\n"
		}
		files[name] += strings.TrimSpace(body) + "\n"
	}
	return files, nil
}

// Write brings the plain manifests up to date.
func (t Tools) Write(ctx context.Context) error {
	files, err := t.Files(ctx)
	if err != nil {
		return err
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(t.Manifests(), name), []byte(text), 0o644); err != nil {
			return fmt.Errorf("write manifest: %w", err)
		}
	}
	return nil
}
