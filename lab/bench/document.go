package bench

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// Between these lines of a document stands what was measured.
const (
	beginMark = "<!-- lab bench: begin -->"
	endMark   = "<!-- lab bench: end -->"
)

// FillDocument replaces what stands between the marks of a document by the report.
func (r *Report) FillDocument(path string, plots []Plot) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return fmt.Errorf("read document: %w", err)
	}
	before, rest, begun := strings.Cut(string(text), beginMark)
	_, after, ended := strings.Cut(rest, endMark)
	if !begun || !ended {
		return fmt.Errorf("%s has no place for the tables: want a line %q and after it a line %q", path, beginMark, endMark)
	}
	relative := make([]Plot, len(plots))
	for i, p := range plots {
		relative[i] = p
		if file, err := filepath.Rel(filepath.Dir(path), p.File); err == nil {
			relative[i].File = filepath.ToSlash(file)
		}
	}
	var b strings.Builder
	b.WriteString(before + beginMark + "\n\n")
	if err := r.WriteMarkdown(&b, relative); err != nil {
		return err
	}
	b.WriteString("\n" + endMark + after)
	if err := os.WriteFile(path, []byte(b.String()), 0o644); err != nil {
		return fmt.Errorf("write document: %w", err)
	}
	return nil
}

// ReadReport reads what was written as JSON.
func ReadReport(path string) (*Report, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read report: %w", err)
	}
	r := &Report{}
	if err := json.Unmarshal(text, r); err != nil {
		return nil, fmt.Errorf("read report %s: %w", path, err)
	}
	if len(r.Results) == 0 {
		return nil, errors.New("the report has no results")
	}
	r.Targets = r.targets()
	return r, nil
}
