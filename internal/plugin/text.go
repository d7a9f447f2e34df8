package plugin

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// clean makes text from a cluster safe for a terminal: a label, a scheduler's message
// or anything in a dump could hold sequences that move the cursor, rename the window
// or turn the direction of writing. They are left out, and what breaks a line becomes
// a space.
func clean(s string) string { return strings.Map(harmless, s) }

// cleanLines leaves line breaks alone.
func cleanLines(s string) string {
	return strings.Map(func(r rune) rune {
		if r == '\n' {
			return r
		}
		return harmless(r)
	}, s)
}

func harmless(r rune) rune {
	switch {
	case r == '\n' || r == '\r' || r == '\t' || r == '\u2028' || r == '\u2029':
		return ' '
	case unicode.IsControl(r) || unicode.Is(unicode.Cf, r):
		return -1
	}
	return r
}

// escapeJSON spells what could drive a terminal as escapes. encoding/json does so for
// the characters below a space alone; some terminals take those from 0x80 to 0x9f for
// escape sequences too. To whoever parses it the document is the same.
func escapeJSON(b []byte) []byte {
	return escape(b, func(out []byte, r rune) []byte {
		for _, unit := range utf16.Encode([]rune{r}) {
			out = fmt.Appendf(out, `\u%04x`, unit)
		}
		return out
	})
}

// escapeYAML is for JSON that is to be read as YAML, which has no pairs of escapes.
func escapeYAML(b []byte) []byte {
	return escape(b, func(out []byte, r rune) []byte { return fmt.Appendf(out, `\U%08x`, r) })
}

func escape(b []byte, spell func([]byte, rune) []byte) []byte {
	out := make([]byte, 0, len(b))
	for len(b) > 0 {
		r, size := utf8.DecodeRune(b)
		switch {
		case r < ' ' || harmless(r) == r: // a line break is between values, never in one
			out = append(out, b[:size]...)
		default:
			out = spell(out, r)
		}
		b = b[size:]
	}
	return out
}

// cut shortens text to a width, and shows that it did.
func cut(s string, width int) string {
	if utf8.RuneCountInString(s) <= width || width < 1 {
		return s
	}
	return string([]rune(s)[:width-1]) + "…"
}
