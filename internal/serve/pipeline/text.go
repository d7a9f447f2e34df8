package pipeline

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/gpu-summary/gpu-summary-controller/internal/serve/page"
)

// none stands where there is nothing to say.
const none = "–"

// span is a length of time in two units at most.
func span(d time.Duration) string {
	switch {
	case d < time.Second:
		return fmt.Sprintf("%dms", max(0, d.Milliseconds()))
	case d < time.Minute:
		return fmt.Sprintf("%ds", d/time.Second)
	case d < time.Hour:
		return fmt.Sprintf("%dm %ds", d/time.Minute, d%time.Minute/time.Second)
	case d < 24*time.Hour:
		return fmt.Sprintf("%dh %dm", d/time.Hour, d%time.Hour/time.Minute)
	}
	return fmt.Sprintf("%dd %dh", d/(24*time.Hour), d%(24*time.Hour)/time.Hour)
}

// seconds is a length of time as metrics have it.
func seconds(s float64) string {
	if s <= 0 {
		return "0s"
	}
	return time.Duration(s * float64(time.Second)).Round(10 * time.Microsecond).String()
}

// since is how long ago something was.
func since(now, then time.Time) string {
	if then.IsZero() {
		return none
	}
	return span(now.Sub(then)) + " ago"
}

// size is a number of bytes in the largest unit that leaves one digit before the point.
func size(bytes int64) string {
	value, unit := float64(bytes), "B"
	for _, larger := range []string{"KiB", "MiB", "GiB", "TiB"} {
		if value < 1024 {
			break
		}
		value, unit = value/1024, larger
	}
	if unit == "B" {
		return fmt.Sprintf("%d B", bytes)
	}
	return fmt.Sprintf("%.1f %s", value, unit)
}

// share is a part of a whole, "95.1%".
func share(part, whole int64) string {
	if whole == 0 {
		return none
	}
	return fmt.Sprintf("%.1f%%", 100*float64(part)/float64(whole))
}

// parts is "3 changed, 1 missing", without what is zero, in order.
func parts(counts map[string]int64) string {
	var out []string
	for _, name := range slices.Sorted(maps.Keys(counts)) {
		if counts[name] != 0 {
			out = append(out, page.Number(counts[name])+" "+name)
		}
	}
	if len(out) == 0 {
		return none
	}
	return strings.Join(out, ", ")
}
