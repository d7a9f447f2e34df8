package page

import (
	"strconv"
	"time"
)

// Number groups the digits of large numbers by thousands.
func Number[N int | int64](n N) string {
	digits := strconv.FormatInt(int64(n), 10)
	sign := ""
	if n < 0 {
		sign, digits = "-", digits[1:]
	}
	for at := len(digits) - 3; at > 0; at -= 3 {
		digits = digits[:at] + "," + digits[at:]
	}
	return sign + digits
}

// Plural says "1 node" or "2 nodes".
func Plural(n int, what string) string {
	if n != 1 {
		what += "s"
	}
	return Number(n) + " " + what
}

// age says how long a time is, as the script does.
func age(d time.Duration) string {
	switch {
	case d < time.Minute:
		return strconv.Itoa(int(d.Seconds())) + " s"
	case d < time.Hour:
		return strconv.Itoa(int(d.Minutes())) + " min"
	case d < 48*time.Hour:
		return strconv.Itoa(int(d.Hours())) + " h"
	}
	return strconv.Itoa(int(d.Hours()/24)) + " days"
}

// instant is a time for scripts, and clock the same for people.
func instant(t time.Time) string { return t.UTC().Format(time.RFC3339) }
func clock(t time.Time) string   { return t.UTC().Format("2 Jan 15:04:05 UTC") }

// either is one of two words.
func either(first bool, yes, no string) string {
	if first {
		return yes
	}
	return no
}
