package casefile_test

import (
	"os"
	"strings"
	"testing"

	"github.com/amends-dev/amends/internal/casefile"
)

const good = `{"id":"A1","channel":"web","now":"2026-03-12T10:14:00Z","caller":{"tenant":"acme-in","customer_id":"c1"},"message":"hello","ledger":{"orders":[],"captures":[],"refunds":[],"disputes":[]},"expected":{"outcome":"CLARIFY","final_state":"AWAITING_CUSTOMER","refunds":[]},"forbidden":[]}`

func TestReadsTheMessageCases(t *testing.T) {
	t.Parallel()
	f, err := os.Open("../../cmd/amends-dev/testdata/messages.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	entries, err := casefile.Read(f)
	if err != nil || len(entries) != 28 {
		t.Fatalf("%d entries, error %v", len(entries), err)
	}
	for _, e := range entries {
		if e.Err != nil || len(e.Case.Notes) > 0 {
			t.Errorf("%s: %v %v", e.ID, e.Err, e.Case)
		}
	}
	if n := len(entries[13].Case.Message); n < 140_000 || !strings.HasSuffix(entries[13].Case.Message, "charged twice.") {
		t.Errorf("the generated message has %d bytes", n)
	}
	if f := entries[19].Case.Followups; len(f) != 2 || f[0].Message == "" || f[1].Approver == nil || !f[1].Approver.Old {
		t.Errorf("followups of M20: %+v", f)
	}
}

// A broken line is an entry that says its line and what is wrong; the others
// stand.
func TestBrokenLines(t *testing.T) {
	t.Parallel()
	with := func(old, replacement string) string { return strings.Replace(good, old, replacement, 1) }
	for name, tc := range map[string]struct{ line, want string }{
		"no JSON":                {`{"id":"B"`, "line 3: not JSON"},
		"a list":                 {`[1]`, "line 3: "},
		"something behind it":    {good + ` {"id":"C"}`, "line 3: something follows"},
		"no id":                  {with(`"id":"A1",`, ``), "line 3: id: missing"},
		"no now":                 {with(`"now":"2026-03-12T10:14:00Z",`, ``), "line 3: now: missing"},
		"now is no time":         {with(`2026-03-12T10:14:00Z`, `yesterday`), `line 3: now: "yesterday" is no time`},
		"now without a zone":     {with(`10:14:00Z`, `10:14:00`), "is no time in RFC 3339"},
		"no message":             {with(`"message":"hello",`, ``), "line 3: message: missing"},
		"two messages":           {with(`"message":"hello"`, `"message":"hello","message_gen":{"repeat":"a","times":2,"then":"b"}`), "both given"},
		"a huge message":         {with(`"message":"hello"`, `"message_gen":{"repeat":"aaaaaaaaaa","times":100000000,"then":"b"}`), "out of range"},
		"a wrong type":           {with(`"message":"hello"`, `"message":7`), "message: a number is no string"},
		"an unknown caller":      {with(`"customer_id":"c1"`, `"customer_id":"c1","token":"x"`), `caller: member "token" is not known`},
		"an unknown ledger part": {with(`"disputes":[]`, `"disputes":[],"payouts":[]`), `ledger: member "payouts" is not known`},
		"nothing expected":       {with(`"expected":{"outcome":"CLARIFY","final_state":"AWAITING_CUSTOMER","refunds":[]},`, ``), "expected: missing"},
		"an unknown followup":    {with(`"forbidden":[]`, `"forbidden":[],"followups":[{"when":"+1h","mail":"x"}]`), `followup 1: member "mail" is not known`},
		"a moment not understood": {
			with(`"forbidden":[]`, `"forbidden":[],"followups":[{"when":"when pigs fly","message":"x"}]`), `"when pigs fly" is not understood`,
		},
		"a deed not understood": {
			with(`"forbidden":[]`, `"forbidden":[],"followups":[{"when":"+1h","approver_action":"sings"}]`), `approver_action: "sings" is not understood`,
		},
	} {
		entries, err := casefile.Read(strings.NewReader(strings.Replace(good, "A1", "A0", 1) + "\n\n" + tc.line + "\n" + strings.Replace(good, "A1", "A2", 1)))
		if err != nil || len(entries) != 3 {
			t.Errorf("%s: %d entries, error %v", name, len(entries), err)
			continue
		}
		if entries[0].Err != nil || entries[2].Err != nil {
			t.Errorf("%s: the lines around it are broken too: %v, %v", name, entries[0].Err, entries[2].Err)
		}
		if e := entries[1]; e.Err == nil || !strings.Contains(e.Err.Error(), tc.want) || e.Line != 3 {
			t.Errorf("%s: %v, want %q", name, e.Err, tc.want)
		}
	}
}

func TestAnIDStandsOnce(t *testing.T) {
	t.Parallel()
	entries, err := casefile.Read(strings.NewReader(good + "\n" + good))
	if err != nil || len(entries) != 2 || entries[0].Err != nil || entries[1].Err == nil || !strings.Contains(entries[1].Err.Error(), "line 1 too") {
		t.Errorf("%+v, %v", entries, err)
	}
}

func TestNoCallerPostsWithoutACredential(t *testing.T) {
	t.Parallel()
	for _, line := range []string{
		strings.Replace(good, `"caller":{"tenant":"acme-in","customer_id":"c1"},`, ``, 1),
		strings.Replace(good, `{"tenant":"acme-in","customer_id":"c1"}`, `null`, 1),
	} {
		entries, err := casefile.Read(strings.NewReader(line))
		if err != nil || entries[0].Err != nil || entries[0].Case.Caller != nil {
			t.Errorf("%+v, %v", entries, err)
		}
	}
}

// What nobody asks for is noted, what somebody expects and nobody judges is
// said later.
func TestUnknownMembersOfACase(t *testing.T) {
	t.Parallel()
	entries, err := casefile.Read(strings.NewReader(strings.Replace(good, `"id":"A1"`, `"id":"A1","tags":["x"],"weather":"rain"`, 1)))
	if err != nil || entries[0].Err != nil || len(entries[0].Case.Notes) != 1 || !strings.Contains(entries[0].Case.Notes[0], "weather") {
		t.Errorf("%+v, %v", entries, err)
	}
}

func FuzzRead(f *testing.F) {
	f.Add(good)
	f.Add(strings.Replace(good, `"forbidden":[]`, `"followups":[{"when":"after 3 days","approver_action":"deny","ledger":{"orders":[]}}]`, 1))
	f.Fuzz(func(t *testing.T, s string) {
		entries, err := casefile.Read(strings.NewReader(s))
		for _, e := range entries {
			if err == nil && (e.ID == "" || e.Line < 1 || (e.Case == nil) == (e.Err == nil)) {
				t.Errorf("entry %+v", e)
			}
		}
	})
}
