package project_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	ruleDefined = regexp.MustCompile(`(?m)^\s*- \*\*([A-Z][0-9]+)\*\* `)
	ruleCited   = regexp.MustCompile(`\b[A-Z][0-9]{1,2}\b`)
)

// TestEveryRuleIsCited: each rule of docs/counting.md has a number, and each
// number is named by a test somewhere in the tree.
func TestEveryRuleIsCited(t *testing.T) {
	document, err := os.ReadFile(filepath.Join("docs", "counting.md"))
	if err != nil {
		t.Fatal(err)
	}
	cited := map[string]bool{}
	err = filepath.WalkDir(".", func(path string, _ fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		text, err := os.ReadFile(path)
		for _, rule := range ruleCited.FindAllString(string(text), -1) {
			cited[rule] = true
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	rules := ruleDefined.FindAllStringSubmatch(string(document), -1)
	if len(rules) < 20 {
		t.Fatalf("only %d rules found in docs/counting.md", len(rules))
	}
	for _, rule := range rules {
		if !cited[rule[1]] {
			t.Errorf("rule %s of docs/counting.md is cited by no test", rule[1])
		}
	}
}
