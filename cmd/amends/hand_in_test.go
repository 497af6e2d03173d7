package main

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/amends-dev/amends/internal/deskapi"
	"github.com/amends-dev/amends/internal/edge"
)

// look is an answer to a look at the record.
type look struct {
	record  deskapi.Record
	problem *deskapi.Problem
}

// judged gives a record that holds the decision and has moved on.
func judged(version uint64, state, refused string) []look {
	return []look{{record: deskapi.Record{
		// Another person's decision is in the record too.
		Version: version + 1, State: "REFUNDED", Decisions: []deskapi.Judgement{
			{MessageID: "m-0", Version: version, State: "AWAITING_APPROVAL", Refused: "approver_unknown"},
			{MessageID: "m-1", Version: version, State: state, Refused: refused},
		},
	}}}
}

func (c *fakeConsole) showRecord(w http.ResponseWriter, r *http.Request) *deskapi.Problem {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.asked = append(c.asked, r.URL.Query().Get(deskapi.ParamMinVersion))
	if edge.Bearer(r) != "staff-token" || len(c.looks) == 0 {
		return deskapi.NewProblem(401, deskapi.CodeUnauthenticated, "")
	}
	l := c.looks[min(len(c.asked), len(c.looks))-1]
	if l.problem != nil {
		return l.problem
	}
	edge.WriteJSON(w, 200, l.record)
	return nil
}

var notReached = deskapi.NewProblem(503, deskapi.CodeVersionNotReached, "").After(time.Millisecond)

func TestTheJudgementIsWaitedFor(t *testing.T) {
	t.Parallel()
	dir, _ := files(t)
	c := &fakeConsole{action: action(), looks: slices.Concat([]look{
		{problem: notReached},
		{record: deskapi.Record{Version: 6, Decisions: []deskapi.Judgement{{MessageID: "m-0", Version: 6, Refused: "signature_invalid"}}}},
	}, judged(7, "REFUND_REQUESTED", ""))}
	got := amends(t, nil, decideArgs("approve", dir, c.serve(t), "--yes")...)
	if got.code != exitDone || !strings.HasSuffix(got.out, "\napproved as apr-8472-1 (v7, REFUND_REQUESTED)\n") || got.err != "" {
		t.Errorf("%+v", got)
	}
	if want := []string{"6", "6", "7"}; !slices.Equal(c.asked, want) {
		t.Errorf("asked for the versions %v, want %v", c.asked, want)
	}
}

func TestARefusedDecisionIsNoSuccess(t *testing.T) {
	t.Parallel()
	dir, _ := files(t)
	c := &fakeConsole{action: action(), looks: judged(6, "AWAITING_APPROVAL", "signature_invalid")}
	url := c.serve(t)
	got := amends(t, nil, decideArgs("approve", dir, url, "--yes")...)
	if got.code != exitFailed || got.err != "amends: refused: signature_invalid\n" || strings.Contains(got.out, "approved") {
		t.Errorf("%+v", got)
	}
	got = amends(t, nil, decideArgs("approve", dir, url, "--yes", "--json")...)
	var out decided
	if err := json.Unmarshal([]byte(got.out), &out); err != nil || got.code != exitFailed {
		t.Fatalf("%+v", got)
	}
	if !out.Recorded || out.Refused != "signature_invalid" || out.Version != 6 || out.State != "AWAITING_APPROVAL" || out.Unjudged {
		t.Errorf("%+v", out)
	}
	if last := lastLine(got.err); last != `{"error":"refused: signature_invalid"}` {
		t.Errorf("standard error ends in %q", last)
	}
	// What the console says cannot pass for another line of ours (B72).
	c.looks = judged(6, "AWAITING_APPROVAL", "no\napproved\x1b[2J")
	if got := amends(t, nil, decideArgs("approve", dir, url, "--yes")...); got.err != "amends: refused: no\\napproved\\x1b[2J\n" {
		t.Errorf("%+v", got)
	}
}

func TestADecisionThatIsNotJudgedIsNoSuccess(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		looks []look
		wait  string
		want  string
	}{
		"the version does not come": {[]look{{problem: notReached}}, "1s", "the case is at v5"},
		"other versions come":       {[]look{{record: deskapi.Record{Version: 8}}}, "1s", "the case is at v8"},
		"the broker is away": {
			[]look{{problem: deskapi.NewProblem(503, deskapi.CodeUnavailable, "send the same request again").After(time.Second)}}, "1s", "503 unavailable",
		},
		// Waiting longer does not help.
		"the token ended meanwhile": {nil, "10m", "401 unauthenticated"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir, _ := files(t)
			fake := &fakeConsole{action: action(), looks: c.looks}
			got := amends(t, nil, decideArgs("approve", dir, fake.serve(t), "--yes", "--json", "--wait", c.wait)...)
			var out decided
			if err := json.Unmarshal([]byte(got.out), &out); err != nil || got.code != exitFailed {
				t.Fatalf("%+v", got)
			}
			if !out.Unjudged || out.Recorded || out.Refused != "" || out.ApprovalID != "apr-8472-1" || out.MessageID != "m-1" {
				t.Errorf("%+v", out)
			}
			if last := lastLine(got.err); !strings.Contains(last, "handed in as apr-8472-1, not judged yet: ") || !strings.Contains(last, c.want) {
				t.Errorf("standard error ends in %q, want %q", last, c.want)
			}
			fake.mu.Lock() // a look that was given up may still be under way
			defer fake.mu.Unlock()
			if len(fake.asked) == 0 || len(fake.asked) > 6 {
				t.Errorf("the console was asked %d times", len(fake.asked))
			}
		})
	}
}

func TestNobodyHasToWait(t *testing.T) {
	t.Parallel()
	dir, _ := files(t)
	c := &fakeConsole{action: action()}
	url := c.serve(t)
	got := amends(t, nil, decideArgs("approve", dir, url, "--yes", "--no-wait")...)
	if got.code != exitDone || !strings.HasSuffix(got.out, "\napprove handed in as apr-8472-1\n") {
		t.Errorf("%+v", got)
	}
	got = amends(t, nil, decideArgs("approve", dir, url, "--yes", "--no-wait", "--json")...)
	var out decided
	if err := json.Unmarshal([]byte(got.out), &out); err != nil || got.code != exitDone || out.Recorded || out.Unjudged || out.MessageID != "m-1" {
		t.Errorf("%+v", got)
	}
	if len(c.asked) != 0 {
		t.Errorf("the record was asked for: %v", c.asked)
	}
}

func lastLine(s string) string {
	s = strings.TrimSuffix(s, "\n")
	return s[strings.LastIndexByte(s, '\n')+1:]
}
