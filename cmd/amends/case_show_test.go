package main

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"github.com/amends-dev/amends/internal/deskapi"
	"github.com/amends-dev/amends/internal/edge"
)

// Bug B72, among others: the reply is shown with its hidden characters escaped.
func TestCaseShow(t *testing.T) {
	t.Parallel()
	dir, _ := files(t)
	s := httptest.NewServer(edge.Handler(func(w http.ResponseWriter, r *http.Request) *deskapi.Problem {
		if r.URL.Path != "/v1/cases/req-8472" || edge.Bearer(r) != "staff-token" || r.Header.Get(deskapi.HeaderCustomer) != "cust_5519" {
			return deskapi.NewProblem(404, deskapi.CodeNotFound, "no such case")
		}
		edge.WriteJSON(w, 200, deskapi.View{
			CaseID: "req-8472", Version: 9, State: "VERIFIED_CLOSED", OrderID: "8472", Closed: true,
			Next:     "the_desk",
			Timeline: []deskapi.ViewEntry{{Version: 1, State: "RECEIVED", At: &now}, {Version: 9, State: "VERIFIED_CLOSED"}},
			Replies:  []deskapi.ViewReply{{Kind: "refunded", Text: "We refunded ₹2,000.\nReference rf_5521\x1b[2J \u202e84\u200b72\u202c.", SentAt: &now, Version: 9}, {Kind: "holding", Text: "We look.", Version: 3}},
		})
		return nil
	}))
	t.Cleanup(s.Close)
	args := []string{"case", "show", "req-8472", "--gateway", s.URL, "--token-file", filepath.Join(dir, "token"), "--customer", "cust_5519"}
	got := amends(t, nil, args...)
	for _, want := range []string{
		"req-8472  VERIFIED_CLOSED  v9  order 8472\n", "  v1   2026-03-12T10:20:00Z  RECEIVED\n", "  v9                         VERIFIED_CLOSED\n",
		"reply of v9 (refunded), 2026-03-12T10:20:00Z:\n", "reply of v3 (holding):\n", "\nnext: the_desk\n", "  We refunded ₹2,000.\n  Reference rf_5521\\x1b[2J \\u202e84\\u200b72\\u202c.\n",
	} {
		if got.code != exitDone || !strings.Contains(got.out, want) {
			t.Errorf("%+v lacks %q", got, want)
		}
	}
	for line := range strings.Lines(got.out) {
		if strings.HasSuffix(line, " \n") {
			t.Errorf("trailing spaces: %q", line)
		}
	}
	var v deskapi.View
	if asJSON := amends(t, nil, append(args, "--json")...); json.Unmarshal([]byte(asJSON.out), &v) != nil || v.Version != 9 {
		t.Errorf("%+v", asJSON)
	}
	if got := amends(t, nil, "case", "show", "req-1", "--gateway", s.URL, "--token-file", filepath.Join(dir, "token")); got.code != exitFailed || !strings.Contains(got.err, "no such case") {
		t.Errorf("unknown case: %+v", got)
	}
}

func TestNextNamesItsTime(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	showView(&out, deskapi.View{CaseID: "req-8472", Version: 3, State: "HOLD_FOR_EVIDENCE", Next: "recheck", NextAt: &now})
	if want := "req-8472  HOLD_FOR_EVIDENCE  v3\nnext: recheck 2026-03-12T10:20:00Z\n"; out.String() != want {
		t.Errorf("%q, want %q", out.String(), want)
	}
}
