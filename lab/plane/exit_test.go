package plane

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
)

func TestTailIsShort(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	var text strings.Builder
	for i := range 1000 {
		fmt.Fprintf(&text, "line %d\n", i)
	}
	text.WriteString(strings.Repeat("x", 5000) + "\n")
	put(t, path, text.String())

	lines := strings.Split(tail(path), "\n")
	if len(lines) != tailLines {
		t.Fatalf("%d lines, want %d", len(lines), tailLines)
	}
	if want := fmt.Sprintf("line %d", 1000-tailLines+1); lines[0] != want {
		t.Errorf("first line %q, want %q", lines[0], want)
	}
	if last := lines[tailLines-1]; len(last) > tailWidth+10 || !strings.HasSuffix(last, "…") {
		t.Errorf("last line has %d bytes, want about %d and an ellipsis", len(last), tailWidth)
	}
	if got := tail(path + ".missing"); got != "" {
		t.Errorf("tail of a missing file: %q", got)
	}
}
