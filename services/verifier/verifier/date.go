package verifier

import (
	"strconv"
	"strings"
	"time"

	"github.com/amends-dev/amends/internal/prose"
)

// date is a date as a text states it; parts it leaves out are zero.
type date struct {
	day, month, year int
	timed            bool
	hour, minute     int
	// utc: the time of day names UTC.
	utc bool
}

// is reports whether the date is that of t. A time of day must say UTC, and
// a date without a year is one of t's.
func (d date) is(t time.Time) bool {
	t = t.UTC()
	if d.day != t.Day() || d.month != int(t.Month()) || d.year != 0 && d.year != t.Year() {
		return false
	}
	return !d.timed || d.utc && d.hour == t.Hour() && d.minute == t.Minute()
}

// date reads a date that begins at token i and gives the token after it, or
// false. One that cannot be told, like 12/03/2026, has no day.
func (r *reading) date(i int) (d date, end int, ok bool) {
	t := r.Tokens[i]
	switch {
	case t.Plain() && t.Digits <= 2:
		j := i + 1
		if r.low(j) == "st" || r.low(j) == "nd" || r.low(j) == "rd" || r.low(j) == "th" {
			j++
		}
		if r.low(j) == "of" {
			j++
		}
		if months[r.low(j)] == 0 {
			return d, 0, false
		}
		d.day, d.month, end = atoi(t.Raw), months[r.low(j)], j+1
	case months[t.Low] != 0 && i+1 < len(r.Tokens) && r.Tokens[i+1].Plain() && r.Tokens[i+1].Digits <= 2:
		d.month, d.day, end = months[t.Low], atoi(r.Tokens[i+1].Raw), i+2
		if s := r.low(end); s == "st" || s == "nd" || s == "rd" || s == "th" {
			end++
		}
	case months[t.Low] != 0 && (t.Low != "may" && t.Low != "march" && t.Low != "mar" || r.low(i-1) == "in" || r.low(i-1) == "by" || r.low(i-1) == "since"):
		d.month, end = months[t.Low], i+1
	case t.Kind == prose.Ident && isoDate(t.Raw):
		d.year, d.month, d.day, end = atoi(t.Raw[:4]), atoi(t.Raw[5:7]), atoi(t.Raw[8:10]), i+1
		if len(t.Raw) > 10 { // 2026-03-12T14:14Z is for machines
			d.day = 0
		}
		return r.clock(d, end)
	case t.Kind == prose.Stamp && strings.Contains(t.Raw, "/"):
		return d, i + 1, true
	case t.Kind == prose.Stamp:
		return date{}, i + 1, true // a time without its day
	default:
		return d, 0, false
	}
	if r.low(end) == "," {
		end++
	}
	if end < len(r.Tokens) && r.Tokens[end].Plain() && r.Tokens[end].Digits == 4 {
		d.year = atoi(r.Tokens[end].Raw)
		end++
	} else if r.low(end-1) == "," {
		end--
	}
	return r.clock(d, end)
}

// clock reads the time of day behind a date.
func (r *reading) clock(d date, end int) (date, int, bool) {
	j := end
	if r.low(j) == "," || r.low(j) == "at" {
		j++
	}
	if j >= len(r.Tokens) || r.Tokens[j].Kind != prose.Stamp || strings.Contains(r.Tokens[j].Raw, "/") {
		return d, end, true
	}
	hour, minute, _ := strings.Cut(r.Tokens[j].Raw, ":")
	d.timed, d.hour, d.minute = true, atoi(hour), atoi(minute)
	if len(minute) != 2 {
		d.hour = -1
	}
	if d.utc = r.low(j+1) == "utc" || r.low(j+1) == "gmt"; d.utc {
		j++
	}
	return d, j + 1, true
}

func isoDate(s string) bool {
	return len(s) >= 10 && s[4] == '-' && s[7] == '-' && atoi(s[:4]) > 0 && atoi(s[5:7]) > 0 && atoi(s[8:10]) > 0
}

// atoi gives a number, or -1.
func atoi(s string) int {
	n, err := strconv.Atoi(s)
	if err != nil {
		return -1
	}
	return n
}
