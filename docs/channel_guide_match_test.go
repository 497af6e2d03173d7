package docs

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// compare says in what a printed answer differs from the one that is shown, or
// nothing. Ids, states, codes, texts and the shape of JSON must be the same.
// These may differ, as long as they are there and of their kind:
//
//   - times: JSON members called at or …_at, and times and dates in texts;
//   - versions, which count what happened in whichever order: members called
//     version, v9 in texts, the ids of events and of webhooks;
//   - trace ids and cursors.
//
// `…` stands for further members of an object, for the content of an array, and
// alone on a line for any lines. Of a stream, the events between may be missing
// or more; the last one is the one that is shown last.
func compare(language, shown, printed string) string {
	switch {
	case language == "json":
		return compareJSON(shown, printed)
	case strings.Contains(shown, "event: view\n"):
		return compareStream(shown, printed)
	default:
		return compareLines(varied.Replace(shown), varied.Replace(printed))
	}
}

// compareJSON compares two sequences of JSON values.
func compareJSON(shown, printed string) string {
	want, err := values(abbreviated(shown))
	if err != nil {
		return "what is shown is no JSON: " + err.Error()
	}
	got, err := values(printed)
	switch {
	case err != nil:
		return "it is no JSON: " + err.Error()
	case len(want) != len(got):
		return fmt.Sprintf("%d values, not %d", len(got), len(want))
	}
	for i := range want {
		if wrong := compareValue("", want[i], got[i]); wrong != "" {
			return wrong
		}
	}
	return ""
}

func values(text string) (out []any, err error) {
	for dec := json.NewDecoder(strings.NewReader(text)); ; {
		var v any
		if err := dec.Decode(&v); errors.Is(err, io.EOF) {
			return out, nil
		} else if err != nil {
			return nil, err
		}
		out = append(out, v)
	}
}

const more = "…"

// abbreviated makes JSON of what is shown with `…` in it.
func abbreviated(shown string) string {
	shown = regexp.MustCompile(`…(\s*\})`).ReplaceAllString(shown, `"…": null$1`)
	return strings.ReplaceAll(shown, "[…]", `["…"]`)
}

var (
	instant = regexp.MustCompile(`^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z$`)
	traceID = regexp.MustCompile(`^[0-9a-f]{32}$`)
	cursor  = regexp.MustCompile(`^[A-Za-z0-9_-]{24,}$`) // longer than any word for whose turn it is
)

// compareValue compares a member called name.
func compareValue(name string, want, got any) string {
	switch want := want.(type) {
	case map[string]any:
		return compareObject(name, want, got)
	case []any:
		list, ok := got.([]any)
		switch {
		case ok && len(want) == 1 && want[0] == more:
			return ""
		case !ok || len(list) != len(want):
			return fmt.Sprintf("%s is %v", name, got)
		}
		for i := range want {
			if wrong := compareValue(fmt.Sprintf("%s[%d]", name, i), want[i], list[i]); wrong != "" {
				return wrong
			}
		}
		return ""
	case float64:
		n, ok := got.(float64)
		if ok && (n == want || last(name) == "version" && n > 0 && want > 0) {
			return ""
		}
	case string:
		text, ok := got.(string)
		like := func(kind *regexp.Regexp) bool { return kind.MatchString(want) && kind.MatchString(text) }
		switch member := last(name); {
		case !ok:
		case member == "at" || strings.HasSuffix(member, "_at"):
			ok = like(instant)
		case member == "trace_id":
			ok = like(traceID)
		case member == "next" && cursor.MatchString(want):
			ok = cursor.MatchString(text)
		default:
			ok = varied.Replace(want) == varied.Replace(text)
		}
		if ok {
			return ""
		}
	default:
		if want == got {
			return ""
		}
	}
	return fmt.Sprintf("%s is %v", name, got)
}

func last(name string) string { return name[strings.LastIndexByte(name, '.')+1:] }

func compareObject(name string, want map[string]any, got any) string {
	object, ok := got.(map[string]any)
	if !ok {
		return fmt.Sprintf("%s is %v", name, got)
	}
	_, abridged := want[more]
	for _, key := range slices.Sorted(maps.Keys(want)) {
		if key == more {
			continue
		}
		value, ok := object[key]
		if !ok {
			return fmt.Sprintf("%s.%s is not there", name, key)
		}
		if wrong := compareValue(name+"."+key, want[key], value); wrong != "" {
			return wrong
		}
	}
	for _, key := range slices.Sorted(maps.Keys(object)) {
		if _, ok := want[key]; !ok && !abridged {
			return fmt.Sprintf("%s.%s is not shown", name, key)
		}
	}
	return ""
}

var eventData = regexp.MustCompile(`(?m)^id: (\d+)\nevent: view\ndata: (.*)$`)

// compareStream compares two streams of views: what is around the events, that
// ids are the versions and grow, events of the same state, and the last one.
func compareStream(shown, printed string) string {
	around := func(text string) string {
		return strings.Join(strings.Fields(eventData.ReplaceAllString(text, "")), "\n")
	}
	if a, b := around(shown), around(printed); a != b {
		return fmt.Sprintf("around the events is %q, not %q", b, a)
	}
	type event struct{ id, data string }
	events := func(text string) (out []event) {
		for _, m := range eventData.FindAllStringSubmatch(text, -1) {
			out = append(out, event{m[1], m[2]})
		}
		return out
	}
	state := regexp.MustCompile(`"state":"(\w+)",`)
	stateOf := func(e event) string { return state.FindString(e.data) }
	want, got := events(shown), events(printed)
	if len(got) == 0 {
		return "there are no events"
	}
	var before float64
	for _, e := range got {
		var v struct{ Version float64 }
		if err := json.Unmarshal([]byte(e.data), &v); err != nil || fmt.Sprint(v.Version) != e.id || v.Version <= before {
			return fmt.Sprintf("event %s has %s, after %v: %v", e.id, e.data, before, err)
		}
		before = v.Version
		if i := slices.IndexFunc(want, func(w event) bool { return stateOf(w) == stateOf(e) }); i >= 0 {
			if wrong := compareJSON(want[i].data, e.data); wrong != "" {
				return wrong
			}
		}
	}
	if end := got[len(got)-1]; stateOf(end) != stateOf(want[len(want)-1]) {
		return "it ends with " + end.data
	}
	return ""
}

// variation replaces what may differ in texts by what it is.
type variation []struct {
	what *regexp.Regexp
	by   string
}

var varied = variation{
	{regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z`), "<time>"},
	{regexp.MustCompile(`\d{1,2} [A-Z][a-z]+ \d{4}, \d\d:\d\d UTC`), "<date>"},
	{regexp.MustCompile(`\bv\d+ *`), "<version> "},
	{regexp.MustCompile(`\bmsg_[\w-]+`), "<webhook>"},
	{regexp.MustCompile(`--cursor \S+`), "--cursor <cursor>"},
}

func (v variation) Replace(text string) string {
	for _, one := range v {
		text = one.what.ReplaceAllString(text, one.by)
	}
	return text
}

// compareLines compares texts line by line; a line `…` stands for any.
func compareLines(shown, printed string) string {
	pattern := regexp.QuoteMeta(strings.TrimSpace(shown))
	pattern = regexp.MustCompile(`(?m)^…\n`).ReplaceAllString(pattern, `(?:.*\n)*?`)
	if !regexp.MustCompile(`^` + pattern + `$`).MatchString(strings.TrimSpace(printed)) {
		return "the texts differ"
	}
	return ""
}

// What compare lets through and what it does not.
func TestCompare(t *testing.T) {
	t.Parallel()
	view := `{"case_id":"req-1","version":8,"state":"CLOSED","at":"2026-03-12T10:15:59Z","replies":[{"text":"by 15 March 2026, 10:16 UTC"}]}`
	stream := "retry: 1000\n\nid: 5\nevent: view\ndata: {\"version\":5,\"state\":\"A\",…}\n\nid: 8\nevent: view\ndata: {\"version\":8,\"state\":\"B\",…}\n\n200\n"
	for name, c := range map[string]struct {
		language, shown, printed string
		same                     bool
	}{
		"the same":          {"json", view + "\n200", view + "\n200\n", true},
		"times, versions":   {"json", view, `{"case_id":"req-1","version":9,"state":"CLOSED","at":"2026-11-30T10:15:59.1Z","replies":[{"text":"by 2 May 2027, 00:16 UTC"}]}`, true},
		"another status":    {"json", view + "\n200", view + "\n202\n", false},
		"another id":        {"json", view, strings.Replace(view, "req-1", "req-2", 1), false},
		"another text":      {"json", view, strings.Replace(view, "by", "until", 1), false},
		"no time":           {"json", view, strings.Replace(view, "2026-03-12T10:15:59Z", "soon", 1), false},
		"a member too many": {"json", view, strings.Replace(view, "{", `{"x":1,`, 1), false},
		"one missing":       {"json", view, strings.Replace(view, `"version":8,`, "", 1), false},
		"abridged":          {"json", `{"case_id":"req-1","replies":[…],…}`, view, true},
		"abridged, other":   {"json", `{"case_id":"req-2",…}`, view, false},
		"a longer array":    {"json", `{"a":[1]}`, `{"a":[1,2]}`, false},
		"a stream":          {"text", stream, "retry: 1000\n\nid: 4\nevent: view\ndata: {\"version\":4,\"state\":\"C\",\"x\":1}\n\nid: 9\nevent: view\ndata: {\"version\":9,\"state\":\"B\",\"x\":1}\n\n\n200\n", true},
		"a stream, cut":     {"text", stream, "retry: 1000\n\nid: 5\nevent: view\ndata: {\"version\":5,\"state\":\"A\",\"x\":1}\n\n200\n", false},
		"a stream, back":    {"text", stream, "retry: 1000\n\nid: 9\nevent: view\ndata: {\"version\":9,\"state\":\"A\"}\n\nid: 8\nevent: view\ndata: {\"version\":8,\"state\":\"B\"}\n\n200\n", false},
		"lines":             {"text", "a\n…\nreply of v8, 2026-03-12T10:15:59Z\n", "a\nb\nc\nreply of v12, 2027-03-12T10:15:59Z\n", true},
		"lines, one more":   {"text", "a\nb\n", "a\nb\nc\n", false},
	} {
		if wrong := compare(c.language, c.shown, c.printed); (wrong == "") != c.same {
			t.Errorf("%s: %q", name, wrong)
		}
	}
}
