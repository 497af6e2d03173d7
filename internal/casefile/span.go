package casefile

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"
)

const (
	unitsRE = `seconds?|secs?|s|minutes?|mins?|m|hours?|hrs?|hr|h|days?|d|weeks?|w`
	// A count in words needs a space behind it: "and" is no "an d".
	wordsRE = `(?:twenty|thirty|forty|fifty|sixty|seventy|eighty|ninety)[\s-](?:one|two|three|four|five|six|seven|eight|nine)|` +
		`three[\s-]quarters of an?|(?:an? )?quarter of an?|(?:an? )?quarter|half an?|an? half|half|an?|one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|thirteen|fourteen|` +
		`fifteen|sixteen|seventeen|eighteen|nineteen|twenty|thirty|forty|fifty|sixty|seventy|eighty|ninety`
)

var (
	// 71h59m and 1h30 are written apart.
	gluedRE = regexp.MustCompile(`(?i)\b(\d+(?:\.\d+)?(?:` + unitsRE + `))(\d)`)
	clockRE = regexp.MustCompile(`(?i)\b(\d+h) ?(\d{2})\b`)
	spanRE  = regexp.MustCompile(`(?i)\+?\s*\b(?:(\d+(?:\.\d+)?)[\s-]*|(` + wordsRE + `)(?: and (?:an? )?(half|quarter))?[\s-]+(?:full )?)(` + unitsRE + `)\b(?: and an? (half|quarter)\b)?`)
)

var counted = map[string]float64{
	"half": 0.5, "quarter": 0.25, "three quarters": 0.75, "an": 1, "a": 1, "one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7, "eight": 8,
	"nine": 9, "ten": 10, "eleven": 11, "twelve": 12, "thirteen": 13, "fourteen": 14, "fifteen": 15, "sixteen": 16, "seventeen": 17, "eighteen": 18, "nineteen": 19,
	"twenty": 20, "thirty": 30, "forty": 40, "fifty": 50, "sixty": 60, "seventy": 70, "eighty": 80, "ninety": 90,
}

// takeSpans reads the durations written out and gives the text without them.
func (w *When) takeSpans(rest string) (string, error) {
	for range 8 { // 1d2h3m4s
		apart := gluedRE.ReplaceAllString(rest, "$1 $2")
		if apart == rest {
			break
		}
		rest = apart
	}
	rest = clockRE.ReplaceAllString(rest, "$1 ${2}m")
	var err error
	rest = spanRE.ReplaceAllStringFunc(rest, func(found string) string {
		m := spanRE.FindStringSubmatch(found)
		n, ok := count(m[1] + m[2])
		if !ok {
			err = fmt.Errorf("when: %q is out of range", found)
			return found
		}
		n += counted[strings.ToLower(m[3])] + counted[strings.ToLower(m[5])]
		span := n * float64(unitOf(m[4]))
		if span > float64(maxDelay-w.Delay) { // also before it could overflow
			err = fmt.Errorf("when: %q is more than two years", found)
			return found
		}
		w.Delay += time.Duration(span)
		return " "
	})
	return rest, err
}

// count reads a number of units: 1.5, thirty-one, a quarter of an.
func count(s string) (float64, bool) {
	s = strings.Join(strings.Fields(strings.ReplaceAll(strings.ToLower(s), "-", " ")), " ")
	if s[0] >= '0' && s[0] <= '9' {
		n, err := strconv.ParseFloat(s, 64)
		return n, err == nil && n <= 100_000
	}
	s = strings.TrimSuffix(strings.TrimSuffix(s, " of a"), " of an")
	for _, part := range []string{"half", "quarter"} {
		if strings.Contains(s, part) && s != "three quarters" {
			return counted[part], true
		}
	}
	if n, ok := counted[s]; ok {
		return n, true
	}
	tens, ones, _ := strings.Cut(s, " ")
	return counted[tens] + counted[ones], counted[tens] > 0 && counted[ones] > 0
}

func unitOf(word string) time.Duration {
	switch strings.ToLower(word)[0] {
	case 's':
		return time.Second
	case 'm':
		return time.Minute
	case 'h':
		return time.Hour
	case 'd':
		return 24 * time.Hour
	default:
		return 7 * 24 * time.Hour
	}
}

// Clock is a time of day on a day counted from another moment's.
type Clock struct {
	Days   int
	Of     time.Duration
	Offset int // of the zone, in seconds
}

// Hours at which the parts of a day begin, for a moment that names one.
var dayParts = map[string]time.Duration{
	"morning": 9 * time.Hour, "noon": 12 * time.Hour, "midday": 12 * time.Hour, "afternoon": 15 * time.Hour, "evening": 18 * time.Hour, "night": 22 * time.Hour,
	"overnight": 9 * time.Hour,
}

var (
	dayPartRE = regexp.MustCompile(`(?i)\b(?:(?:on )?the )?(next|following|same|that|this|tomorrow)(?: day)?,?(?: (?:at|in the))? (morning|noon|midday|afternoon|evening|night)\b|` +
		`\b(?:the )?(morning|afternoon|evening) after\b(?: that$)?|\b(overnight)\b`)
	nextDayRE = regexp.MustCompile(`(?i)\b(?:on )?the (?:next|following) day\b|\btomorrow\b`)
	timeRE    = regexp.MustCompile(`(?i)\b(?:at )?([01]?\d|2[0-3]):([0-5]\d)\b|\b(?:at )?(1[0-2]|[1-9]) ?(am|pm)\b`)
)

// takeClock reads "the next morning", "the next day at 09:00", "tomorrow at
// 9 am", and gives the text without it. The next day alone is 24 hours.
func (w *When) takeClock(rest string, received time.Time) string {
	_, offset := received.Zone()
	c := Clock{Offset: offset}
	found := false
	if m := dayPartRE.FindStringSubmatch(rest); m != nil {
		switch strings.ToLower(m[1]) {
		case "same", "that", "this":
		default:
			c.Days = 1
		}
		c.Of, found = dayParts[strings.ToLower(m[2]+m[3]+m[4])], true
		rest = strings.Replace(rest, m[0], " ", 1)
	}
	if day := nextDayRE.FindString(rest); day != "" {
		c.Days = 1
		rest = strings.Replace(rest, day, " ", 1)
		if !timeRE.MatchString(rest) && !found {
			w.Delay += 24 * time.Hour
			return rest
		}
	}
	if m := timeRE.FindStringSubmatch(rest); m != nil {
		hour, _ := strconv.Atoi(m[1] + m[3])
		minute, _ := strconv.Atoi(m[2])
		if m[4] != "" {
			hour %= 12
			if strings.EqualFold(m[4], "pm") {
				hour += 12
			}
		}
		c.Of, found = time.Duration(hour)*time.Hour+time.Duration(minute)*time.Minute, true
		rest = strings.Replace(rest, m[0], " ", 1)
	}
	if found {
		w.Clock = &c
	}
	return rest
}

// from gives the moment so long after another, or at the time of day that
// comes after it.
func (w When) from(t time.Time) time.Time {
	if w.Clock == nil {
		return t.Add(w.Delay)
	}
	local := t.In(time.FixedZone("", w.Clock.Offset))
	year, month, day := local.Date()
	at := time.Date(year, month, day+w.Clock.Days, 0, 0, 0, 0, local.Location()).Add(w.Clock.Of)
	if at.Before(t) {
		at = at.AddDate(0, 0, 1)
	}
	return at.Add(w.Delay).UTC()
}
