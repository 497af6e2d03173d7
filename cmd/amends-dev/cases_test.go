package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

// caseResult is what a test reads of a result.
type caseResult struct {
	ID          string
	Passed      bool
	Error       string
	Outcome     string
	Differences []struct{ What, Expected, Actual string }
	NotJudged   []string `json:"not_judged"`
	Summary     *struct{ Passed, Failed int }
}

// runCases runs the command with JSON output, and gives the results by id and
// the exit code.
func runCases(t *testing.T, args ...string) (map[string]caseResult, int) {
	t.Helper()
	var out, errs bytes.Buffer
	code := run(append([]string{"cases", "--json", "--limit", "5m"}, args...), &out, &errs)
	results := map[string]caseResult{}
	lines := bufio.NewScanner(&out)
	lines.Buffer(nil, 1<<20)
	last := caseResult{}
	for lines.Scan() {
		last = caseResult{}
		if err := json.Unmarshal(lines.Bytes(), &last); err != nil {
			t.Fatalf("%v in %s", err, lines.Text())
		}
		if last.Summary == nil {
			results[last.ID] = last
		}
	}
	passed := 0
	for _, r := range results {
		if r.Passed {
			passed++
		}
	}
	if last.Summary == nil || last.Summary.Passed != passed || last.Summary.Failed != len(results)-passed {
		t.Fatalf("the last line is no summary of %d results: %+v\n%s", len(results), last, errs.String())
	}
	return results, code
}

// All message cases run; those that need no more than this desk has pass.
func TestMessageCases(t *testing.T) {
	t.Parallel()
	results, _ := runCases(t, "testdata/messages.jsonl")
	if len(results) != 28 {
		t.Errorf("%d cases ran, want 28", len(results))
	}
	open := []string{"M07", "M11", "M12", "M13", "M17"} // languages and several wants
	for id, r := range results {
		if r.Error != "" || !r.Passed && !slices.Contains(open, id) {
			t.Errorf("%s: %s %+v", id, r.Error, r.Differences)
		}
		if !r.Passed && len(r.Differences) == 0 {
			t.Errorf("%s failed and does not say how", id)
		}
	}
}

// Cases of our own: time, approvers, ledgers that change, other tenants and
// currencies, withdrawals at several moments.
func TestOwnCases(t *testing.T) {
	t.Parallel()
	results, code := runCases(t, "testdata/own.jsonl")
	for id, r := range results {
		if !r.Passed {
			t.Errorf("%s: %s %+v", id, r.Error, r.Differences)
		}
	}
	if code != 0 || len(results) < 30 {
		t.Errorf("%d cases, exit code %d", len(results), code)
	}
}

// Bugs B19 and B20. A hold beside a capture is no second charge (M02): nothing
// is refunded and nothing approved. Three captures are three though the shop
// shows one (M23): the provider's own list is read, and two go back.
func TestWhatThePaymentsSideSaysCountsB19B20(t *testing.T) {
	t.Parallel()
	results, code := runCases(t, "testdata/messages.jsonl", "--only", "M02", "--only", "M23")
	if code != 0 || len(results) != 2 {
		t.Fatalf("exit code %d: %+v", code, results)
	}
	for id, outcome := range map[string]string{"M02": "HOLD_FOR_EVIDENCE", "M23": "REFUND_AFTER_APPROVAL"} {
		if r := results[id]; !r.Passed || r.Outcome != outcome {
			t.Errorf("%s came out as %s: %s %+v", id, r.Outcome, r.Error, r.Differences)
		}
	}
}

// zones are the places of B70: a window must not depend on where a process runs.
var zones = []string{"Asia/Kolkata", "America/New_York", "Pacific/Kiritimati"}

// B70: the cases at the edge of the 30-day window, with the process elsewhere.
func TestWindowCasesInOtherZones(t *testing.T) {
	if zone := os.Getenv("AMENDS_TEST_ZONE"); zone != "" {
		if _, offset := time.Now().Zone(); offset == 0 {
			t.Fatalf("the process is not in %s", zone)
		}
		own, code := runCases(t, "testdata/own.jsonl", "--only", "T09", "--only", "T10")
		if code != 0 || len(own) != 2 {
			t.Errorf("exit code %d: %+v", code, own)
		}
		if m26, code := runCases(t, "testdata/messages.jsonl", "--only", "M26"); code != 0 {
			t.Errorf("exit code %d: %+v", code, m26)
		}
		return
	}
	t.Parallel()
	for _, zone := range zones {
		cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestWindowCasesInOtherZones$")
		cmd.Env = append(os.Environ(), "TZ="+zone, "AMENDS_TEST_ZONE="+zone)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%s: %v\n%s", zone, err, out)
		}
	}
}

// A case whose expectation is wrong fails, and says what is different; one that
// cannot be played fails, and says why. The rest still runs.
func TestWrongCasesFail(t *testing.T) {
	t.Parallel()
	base := line(t, "testdata/messages.jsonl", "M02")
	with := func(id, old, replacement string) string {
		s := strings.Replace(base, `"M02"`, `"`+id+`"`, 1)
		if !strings.Contains(s, old) {
			t.Fatalf("%s: no %q", id, old)
		}
		return strings.Replace(s, old, replacement, 1)
	}
	follow := func(id, followup string) string {
		return with(id, `"forbidden":`, `"followups": [`+followup+`], "forbidden":`)
	}
	file := filepath.Join(t.TempDir(), "wrong.jsonl")
	lines := []string{
		base,
		with("W01", `"outcome": "HOLD_FOR_EVIDENCE"`, `"outcome": "REFUND_AUTO"`),
		with("W02", `"final_state": "HOLD_FOR_EVIDENCE"`, `"final_state": "VERIFIED_CLOSED"`),
		with("W03", `"refunds": [], "reply_must_say"`, `"refunds": [{"payment_id": "pay_8472_a", "amount_minor": 1, "currency": "INR", "needs_approval": true}], "reply_must_say"`),
		with("W04", `"second amount is a hold, not taken"`, `"refund completed"`),
		with("W05", `"reply_must_not_say": ["refunded"`, `"reply_must_not_say": ["is a hold"`),
		with("W06", `"any_refund"`, `"order_8472_assumed"`),
		with("W07", `"orders_in_scope": ["8472"]`, `"orders_in_scope": []`),
		follow("W08", `{"when": "state == REFUND_REQUESTED", "message": "hello"}`),
		follow("W09", `{"when": "on HOLD_FOR_EVIDENCE", "approver_action": "approve the old action record"}`),
		follow("W10", `{"when": "when pigs fly", "message": "hello"}`),
		`{"id": "W11"`,
		with("W12", `"now": "2026-03-12T10:14:00Z"`, `"now": "today"`),
		with("W13", `"status": "authorized"`, `"status": ""`),
	}
	if err := os.WriteFile(file, []byte(strings.Join(lines, "\n")), 0o600); err != nil {
		t.Fatal(err)
	}
	results, code := runCases(t, file)
	if code != 1 || len(results) != len(lines) || !results["M02"].Passed {
		t.Errorf("%d results, exit code %d, M02 %+v", len(results), code, results["M02"])
	}
	for id, want := range map[string]string{
		"W01": "outcome", "W02": "final state", "W03": "refund", "W04": "reply must say", "W05": "reply must not say", "W06": "forbidden", "W07": "orders in scope",
		"W08": "never came", "W09": "none was shown before", "W10": "not understood", "line 12": "not JSON", "W12": "is no time", "W13": "ledger",
	} {
		r := results[id]
		said := r.Error
		for _, d := range r.Differences {
			if d.Expected == "" || d.Actual == "" || d.Expected == d.Actual {
				t.Errorf("%s: a difference without its sides: %+v", id, d)
			}
			said += " " + d.What
		}
		if r.Passed || !strings.Contains(said, want) {
			t.Errorf("%s: passed %t, says %q, want %q", id, r.Passed, said, want)
		}
	}
}

// line gives the line of a case in a file.
func line(t *testing.T, file, id string) string {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range strings.Split(string(data), "\n") {
		if strings.Contains(l, `"id": "`+id+`"`) {
			return l
		}
	}
	t.Fatalf("%s has no case %s", file, id)
	return ""
}

// The text output names each case, shows both sides of a difference and what
// was not judged, and ends with the count.
func TestCasesReport(t *testing.T) {
	t.Parallel()
	var out, errs bytes.Buffer
	code := run([]string{"cases", "testdata/messages.jsonl", "--only", "M03", "--only", "M07", "-v", "--jobs", "1"}, &out, &errs)
	text := out.String()
	if m07 := strings.Contains(text, "FAIL M07"); code != 0 != m07 {
		t.Errorf("exit code %d\n%s", code, text)
	}
	for _, want := range []string{"ok   M03  exactly at the threshold", "AWAITING_APPROVAL", "reply", "not judged: 1", "M03 threshold_compared_as_float"} {
		if !strings.Contains(text, want) {
			t.Errorf("the report lacks %q:\n%s", want, text)
		}
	}
	lines := strings.Split(strings.TrimRight(text, "\n"), "\n")
	if last := lines[len(lines)-1]; !regexp.MustCompile(`^\d+ passed, \d+ failed$`).MatchString(last) {
		t.Errorf("the last line is %q", last)
	}
	if errs.Len() > 0 {
		t.Errorf("standard error: %s", errs.String())
	}
}

func TestCasesUsage(t *testing.T) {
	t.Parallel()
	empty := filepath.Join(t.TempDir(), "empty.jsonl")
	if err := os.WriteFile(empty, []byte("\n\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{
		{"cases"},
		{"cases", "/no/such/file"},
		{"cases", "testdata"},
		{"cases", empty},
		{"cases", "testdata/own.jsonl", "--only", "T99"},
		{"cases", "testdata/own.jsonl", "--jobs", "0"},
		{"cases", "testdata/own.jsonl", "--limit", "1ms"},
		{"cases", "testdata/own.jsonl", "--fast"},
	} {
		var out, errs bytes.Buffer
		if code := run(args, &out, &errs); code != 2 || errs.Len() == 0 {
			t.Errorf("%v ends with code %d and %q", args, code, errs.String())
		}
	}
	if help := (casesCmd{}).Help(); !strings.Contains(help, "N passed, N failed") {
		t.Errorf("the help is %q", help)
	}
}
