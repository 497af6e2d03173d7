package main

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/amends-dev/amends/internal/casefile"
	"github.com/amends-dev/amends/internal/caserun"
	"github.com/amends-dev/amends/internal/display"
)

// caseReport prints results as they come.
type caseReport struct {
	cmd            casesCmd
	out            *console
	progress       bool
	passed, failed int
	notJudged      []string
}

func newCaseReport(cmd casesCmd, out *console) *caseReport {
	return &caseReport{cmd: cmd, out: out, progress: !cmd.JSON && isTerminal(os.Stderr)}
}

func isTerminal(f *os.File) bool {
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}

// waiting says on a terminal which case is waited for.
func (r *caseReport) waiting(e casefile.Entry, i, n int) {
	if r.progress {
		fmt.Fprintf(os.Stderr, "\r\x1b[K%d of %d: %s", i+1, n, display.Text(e.ID))
	}
}

// caseLine is a case's result in JSON.
type caseLine struct {
	ID     string `json:"id"`
	Line   int    `json:"line"`
	Title  string `json:"title,omitempty"`
	Passed bool   `json:"passed"`
	Error  string `json:"error,omitempty"`
	casefile.Judgement
	Replies []string `json:"replies"`
	Story   []string `json:"story,omitempty"`
	TookMS  int64    `json:"took_ms"`
}

// summaryLine ends the JSON output.
type summaryLine struct {
	Summary struct {
		Passed    int      `json:"passed"`
		Failed    int      `json:"failed"`
		NotJudged []string `json:"not_judged"`
	} `json:"summary"`
}

func (r *caseReport) add(e casefile.Entry, res caserun.Result) {
	if res.Passed() {
		r.passed++
	} else {
		r.failed++
	}
	for _, name := range res.NotJudged {
		r.notJudged = append(r.notJudged, e.ID+" "+name)
	}
	if r.progress {
		fmt.Fprint(os.Stderr, "\r\x1b[K")
	}
	if r.cmd.JSON {
		r.addJSON(e, res)
		return
	}
	verdict, title := "ok  ", ""
	if !res.Passed() {
		verdict = "FAIL"
	}
	if e.Case != nil {
		title = e.Case.Title
	}
	r.line("%s %s  %s", verdict, e.ID, title)
	if res.Err != nil {
		r.line("       %s", strings.ReplaceAll(res.Err.Error(), "\n", "; "))
	}
	for _, d := range res.Differences {
		r.difference(d)
	}
	if r.cmd.Verbose {
		r.details(res)
	} else if !res.Passed() {
		r.replies(res)
	}
}

// line prints one line; whatever a case file or a desk said may be in it.
func (r *caseReport) line(format string, args ...any) {
	r.out.printf("%s\n", strings.TrimRight(display.Text(fmt.Sprintf(format, args...)), " "))
}

func (r *caseReport) difference(d casefile.Difference) {
	r.line("       %-20s expected  %s", d.What, d.Expected)
	r.line("       %-20s actual    %s", "", d.Actual)
	if d.Why != "" {
		r.line("       %-20s           %s", "", d.Why)
	}
}

func (r *caseReport) replies(res caserun.Result) {
	for _, text := range res.Replies {
		r.line("       %-20s %s", "reply", text)
	}
}

func (r *caseReport) details(res caserun.Result) {
	r.line("       %-20s %s", "outcome", res.Outcome)
	r.line("       %-20s %s", "final state", res.FinalState)
	for _, refund := range res.Refunds {
		r.line("       %-20s %s", "refund", refund)
	}
	r.replies(res)
	for _, s := range res.Story {
		r.line("       %s", s)
	}
	for _, n := range res.Notes {
		r.line("       %-20s %s", "note", n)
	}
	for _, n := range res.NotJudged {
		r.line("       %-20s %s", "not judged", n)
	}
	r.line("       %-20s %s, in which %s of the case's time passed", "took", res.Took.Round(time.Millisecond), res.Span.Round(time.Second))
}

func (r *caseReport) addJSON(e casefile.Entry, res caserun.Result) {
	l := caseLine{ID: e.ID, Line: e.Line, Passed: res.Passed(), Judgement: res.Judgement, Replies: res.Replies, TookMS: res.Took.Milliseconds()}
	if e.Case != nil {
		l.Title = e.Case.Title
	}
	if res.Err != nil {
		l.Error = res.Err.Error()
	}
	if r.cmd.Verbose || !res.Passed() {
		l.Story = res.Story
	}
	r.json(l)
}

func (r *caseReport) json(v any) {
	data, err := json.Marshal(v)
	if err != nil {
		data = []byte(`{"error":"the result cannot be written as JSON"}`)
	}
	r.out.printf("%s\n", data)
}

// sum prints what was not judged, and last the count.
func (r *caseReport) sum() {
	if r.cmd.JSON {
		var s summaryLine
		s.Summary.Passed, s.Summary.Failed, s.Summary.NotJudged = r.passed, r.failed, append([]string{}, r.notJudged...)
		r.json(s)
		return
	}
	if n := len(r.notJudged); n > 0 {
		r.line("")
		r.line("not judged: %d, which nobody can see from outside or no check knows: %s", n, strings.Join(r.notJudged, ", "))
	}
	r.line("%d passed, %d failed", r.passed, r.failed)
}
