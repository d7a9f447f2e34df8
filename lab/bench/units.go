package bench

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// unit is what a number is of, and how people read it.
type unit string

const (
	inSeconds unit = "seconds"
	inBytes   unit = "bytes"
	inTimes   unit = "times"
	inNumbers unit = "number"
)

// format writes three useful digits in the unit that fits.
func (u unit) format(v float64) string {
	switch u {
	case inSeconds:
		switch {
		case v == 0:
			return "0 s"
		case math.Abs(v) < 1e-3:
			return digits(v*1e6) + " µs"
		case math.Abs(v) < 1:
			return digits(v*1e3) + " ms"
		}
		return digits(v) + " s"
	case inBytes:
		switch a := math.Abs(v); {
		case a < 1<<10:
			return digits(v) + " B"
		case a < 1<<20:
			return digits(v/(1<<10)) + " KiB"
		case a < 1<<30:
			return digits(v/(1<<20)) + " MiB"
		}
		return digits(v/(1<<30)) + " GiB"
	case inTimes:
		return digits(v) + " ×"
	}
	return digits(v)
}

// digits writes a number with three digits, or more if they stand before the point.
func digits(v float64) string {
	if a := math.Abs(v); a >= 100 || v == 0 {
		return group(strconv.FormatFloat(v, 'f', 0, 64))
	}
	text := strconv.FormatFloat(v, 'g', 3, 64)
	if strings.Contains(text, "e") {
		text = strconv.FormatFloat(v, 'f', 3, 64)
	}
	return text
}

// group sets commas.
func group(text string) string {
	sign := ""
	if rest, ok := strings.CutPrefix(text, "-"); ok {
		sign, text = "-", rest
	}
	for i := len(text) - 3; i > 0; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return sign + text
}

// show writes a median and between what it lay.
func (u unit) show(s *Stat) string {
	if s == nil {
		return "–"
	}
	if u.format(s.Min) == u.format(s.Max) {
		return u.format(s.Median)
	}
	return fmt.Sprintf("%s (%s – %s)", u.format(s.Median), u.format(s.Min), u.format(s.Max))
}
