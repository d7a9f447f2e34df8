package plugin

import (
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// shown is where a column is shown.
type shown uint8

const (
	always       shown = iota
	wide               // with -o wide, and in CSV
	csvOnly            // what tables show in a shorter form
	tableOnly          // what is derived from other columns
	terminalOnly       // what is for the eye
)

// column is a column of a table and of CSV, where it is called like the field in JSON.
type column struct {
	title string
	field string
	shown shown
	right bool // numbers
	cut   bool // may be shortened to make the lines fit into a terminal
}

// cell is what a row has in a column.
type cell struct {
	text   string
	colour colour
	number bool // never mistaken for a formula
	// draw makes the text when it is known what it is drawn on; nil for text.
	draw func(screen) string
}

func text(s string) cell { return cell{text: s} }

func number[N int | int32 | int64](n N) cell {
	return cell{text: strconv.FormatInt(int64(n), 10), number: true}
}

// zero is a number that is less worth a look when it is 0.
func zero(n int64) cell {
	c := number(n)
	if n == 0 {
		c.colour = faint
	}
	return c
}

func (c cell) in(colour colour) cell {
	c.colour = colour
	return c
}

// table is rows below a header.
type table struct {
	title   string // above it, "" for none
	columns []column
	rows    [][]cell
	totals  [][]cell // below the rows; not in CSV
	after   []string // lines below all
}

const gap = "  "

// lines lays the table out. Colours are put on when the columns are set: they have no
// width.
func (t *table) lines(s screen, isWide bool) []string {
	var lines []string
	if t.title != "" && len(t.rows)+len(t.after) > 0 {
		lines = append(lines, s.paint(bold, clean(t.title)))
	}
	if len(t.rows) > 0 {
		lines = append(lines, t.grid(s, isWide)...)
	}
	for _, line := range t.after {
		lines = append(lines, clean(line))
	}
	return lines
}

func (t *table) grid(s screen, isWide bool) []string {
	var columns []int
	for i, c := range t.columns {
		if c.shown == always || c.shown == tableOnly || c.shown == wide && isWide || c.shown == terminalOnly && s.terminal {
			columns = append(columns, i)
		}
	}
	all := [][]cell{t.header()}
	all = append(append(all, t.rows...), t.totals...)
	for r, row := range all[1:] {
		cleaned := make([]cell, len(row))
		for i, c := range row {
			c.text = clean(c.text)
			if c.draw != nil {
				c.text = c.draw(s)
			}
			cleaned[i] = c
		}
		all[r+1] = cleaned
	}
	widths, fits := t.widths(all, columns, s.width)
	if !fits && slices.ContainsFunc(columns, t.forTheEye) {
		columns = slices.DeleteFunc(columns, t.forTheEye)
		widths, _ = t.widths(all, columns, s.width)
	}
	lines := make([]string, 0, len(all))
	for r, row := range all {
		var b strings.Builder
		for n, i := range columns {
			c := row[i]
			c.text = cut(c.text, widths[i])
			if r == 0 {
				c.colour = faint
			}
			padding := strings.Repeat(" ", max(0, widths[i]-utf8.RuneCountInString(c.text)))
			if n > 0 {
				b.WriteString(gap)
			}
			if t.columns[i].right {
				b.WriteString(padding)
			}
			b.WriteString(s.paint(c.colour, c.text))
			if !t.columns[i].right {
				b.WriteString(padding)
			}
		}
		lines = append(lines, strings.TrimRight(b.String(), " "))
	}
	return lines
}

func (t *table) header() []cell {
	header := make([]cell, len(t.columns))
	for i, c := range t.columns {
		header[i] = text(c.title)
	}
	return header
}

// forTheEye columns are the first to go when there is no room.
func (t *table) forTheEye(i int) bool { return t.columns[i].shown == terminalOnly }

// widths is how wide each column is, and whether all is shown as it is. When a line does
// not fit into the room there is, the widest column that may be cut gives way, down to
// what can still be told apart; numbers never do.
func (t *table) widths(rows [][]cell, columns []int, room int) (widths []int, fits bool) {
	const least = 12
	widths = make([]int, len(t.columns))
	total := len(gap) * (len(columns) - 1)
	for _, i := range columns {
		for _, row := range rows {
			widths[i] = max(widths[i], utf8.RuneCountInString(row[i].text))
		}
		total += widths[i]
	}
	if room == 0 || total <= room {
		return widths, true
	}
	for total > room {
		widest := -1
		for _, i := range columns {
			if t.columns[i].cut && widths[i] > least && (widest < 0 || widths[i] > widths[widest]) {
				widest = i
			}
		}
		if widest < 0 {
			break // it is the terminal's turn to break lines
		}
		widths[widest]--
		total--
	}
	return widths, false
}
