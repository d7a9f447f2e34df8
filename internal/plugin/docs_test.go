package plugin

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/gpu-summary/gpu-summary-controller/internal/count"
)

// TestFieldsAndColumnsAreDocumented: every field of JSON and CSV, every column and every
// subcommand is in docs/kubectl.md.
func TestFieldsAndColumnsAreDocumented(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "..", "docs", "kubectl.md"))
	if err != nil {
		t.Fatal(err)
	}
	document := string(text)
	c, _, _ := stand{}.common()
	for _, cmd := range c.command().Commands() {
		if name := cmd.Name(); name != "help" && name != "completion" && !strings.Contains(document, "| `"+name) {
			t.Errorf("docs/kubectl.md has no line for %s", name)
		}
	}
	for _, v := range []any{
		nodesDocument{}, total{}, count.Row{}, podRow{}, holder{}, namespaceRow{}, modelRow{}, pendingRow{}, pendingTotal{}, claimRow{}, description{},
	} {
		for _, field := range fieldsOf(reflect.TypeOf(v)) {
			if !strings.Contains(document, "`"+field+"`") {
				t.Errorf("docs/kubectl.md does not say what %s of %T is", field, v)
			}
		}
	}
	r := &reading{snapshot: &count.Snapshot{}}
	tables := []table{nodesTable(r, nil, nil), c.podsTable(r, nil), c.pendingTable(r, nil), c.claimsTable(r, nil), modelsTable(r, nil)}
	for i := range tables {
		for _, column := range tables[i].columns {
			if column.title != "" && column.shown != terminalOnly && !strings.Contains(document, column.title) {
				t.Errorf("docs/kubectl.md does not name the column %s", column.title)
			}
		}
	}
	for _, f := range formats {
		if !strings.Contains(document, "`"+f+"`") {
			t.Errorf("docs/kubectl.md does not name the format %s", f)
		}
	}
}

// fieldsOf are the names in JSON, those of embedded structs included.
func fieldsOf(of reflect.Type) (names []string) {
	for field := range of.Fields() {
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		switch {
		case field.Anonymous:
			names = append(names, fieldsOf(field.Type)...)
		case name != "" && name != "-":
			names = append(names, name)
		}
	}
	return names
}
