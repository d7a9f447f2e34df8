package plugin

import (
	"os"
	"strings"

	"golang.org/x/term"
)

// screen is what the output goes to.
type screen struct {
	terminal bool
	colour   bool
	width    int  // 0 when nothing has to be cut
	height   int  // 0 when it is not known
	unicode  bool // whether blocks can be drawn
}

// findScreen looks each time: a window changes its size while it is watched.
func (c *common) findScreen() screen {
	f, ok := c.Out.(*os.File)
	if !ok || !term.IsTerminal(int(f.Fd())) {
		return screen{}
	}
	s := screen{terminal: true, colour: !c.noColor && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb", unicode: unicodeLocale()}
	s.width, s.height, _ = term.GetSize(int(f.Fd())) // zeroes when it does not say
	return s
}

func unicodeLocale() bool {
	for _, name := range []string{"LC_ALL", "LC_CTYPE", "LANG"} {
		if value := strings.ToUpper(os.Getenv(name)); value != "" {
			return strings.Contains(value, "UTF-8") || strings.Contains(value, "UTF8")
		}
	}
	return false
}

// colour is a colour of text.
type colour string

const (
	plain  colour = ""
	red    colour = "\x1b[31m"
	green  colour = "\x1b[32m"
	yellow colour = "\x1b[33m"
	faint  colour = "\x1b[2m"
	bold   colour = "\x1b[1m"
	reset         = "\x1b[0m"
)

func (s screen) paint(c colour, text string) string {
	if !s.colour || c == plain || text == "" {
		return text
	}
	return string(c) + text + reset
}
