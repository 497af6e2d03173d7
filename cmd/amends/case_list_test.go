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

// listsOf answers lists and requests, and tells what it heard.
func listsOf(t *testing.T) (url string, requests <-chan string) {
	t.Helper()
	out := make(chan string, 16)
	s := httptest.NewServer(edge.Handler(func(w http.ResponseWriter, r *http.Request) *deskapi.Problem {
		out <- r.URL.String() + " " + r.Header.Get(deskapi.HeaderCustomer)
		switch r.URL.Path {
		case deskapi.CasesPath:
			list := deskapi.CaseList{Cases: []deskapi.CaseSummary{
				{CaseID: "req-8473", State: "RECEIVED", Version: 1, OpenedAt: &now},
				{CaseID: "req-8472", State: "CANCELLED\x1b[2J", Version: 4, OrderID: "8472", Closed: true},
			}}
			if r.URL.Query().Get(deskapi.ParamCursor) == "" {
				list.Next = "abc"
			}
			edge.WriteJSON(w, 200, list)
		case deskapi.RequestPath("req-8472"):
			edge.WriteJSON(w, 200, deskapi.Request{RequestID: "req-8472", Cases: []deskapi.View{
				{CaseID: "req-8472", State: "CANCELLED", Version: 4, OrderID: "8472"},
				{CaseID: "req-8472-2", State: "RECEIVED", Version: 1, Timeline: []deskapi.ViewEntry{{Version: 1, State: "RECEIVED", At: &now}}},
			}})
		default:
			return deskapi.NewProblem(503, deskapi.CodeListUnavailable, "the list of cases is being built")
		}
		return nil
	}))
	t.Cleanup(s.Close)
	return s.URL, out
}

func TestCaseList(t *testing.T) {
	t.Parallel()
	dir, _ := files(t)
	url, requests := listsOf(t)
	args := []string{"case", "list", "--gateway", url, "--token-file", filepath.Join(dir, "token")}
	lines := "req-8473  RECEIVED  v1  opened 2026-03-12T10:20:00Z\n" + `req-8472  CANCELLED\x1b[2J  v4  order 8472` + "\n"
	for _, c := range []struct {
		more      []string
		out, sent string
	}{
		{nil, lines + "more with --cursor abc\n", "/v1/cases?limit=20 "},
		{[]string{"--customer", "cust_5519", "--limit", "2", "--cursor", "abc", "--state", "CANCELLED"}, lines, "/v1/cases?cursor=abc&limit=2&state=CANCELLED cust_5519"},
	} {
		if got := amends(t, nil, append(args, c.more...)...); got.code != exitDone || got.out != c.out || got.err != "" {
			t.Errorf("%v: %+v, want %q", c.more, got, c.out)
		}
		if sent := <-requests; sent != c.sent {
			t.Errorf("%v: asked for %q, want %q", c.more, sent, c.sent)
		}
	}
	got := amends(t, nil, append(args, "--json")...)
	var list deskapi.CaseList
	if err := json.Unmarshal([]byte(got.out), &list); err != nil || got.code != exitDone || len(list.Cases) != 2 || list.Next != "abc" {
		t.Errorf("%+v, %v", got, err)
	}
	for _, bad := range []string{"0", "101", "x"} {
		if got := amends(t, nil, append(args, "--limit", bad)...); got.code != exitUsage || got.out != "" {
			t.Errorf("--limit %s: %+v", bad, got)
		}
	}
}

func TestCaseRequest(t *testing.T) {
	t.Parallel()
	dir, _ := files(t)
	url, _ := listsOf(t)
	args := []string{"case", "request", "req-8472", "--gateway", url, "--token-file", filepath.Join(dir, "token")}
	want := "req-8472  CANCELLED  v4  order 8472\nreq-8472-2  RECEIVED  v1\n  v1   2026-03-12T10:20:00Z  RECEIVED\n"
	if got := amends(t, nil, args...); got.code != exitDone || got.out != want || got.err != "" {
		t.Errorf("%+v, want %q", got, want)
	}
	got := amends(t, nil, append(args, "--json")...)
	var r deskapi.Request
	if err := json.Unmarshal([]byte(got.out), &r); err != nil || got.code != exitDone || len(r.Cases) != 2 {
		t.Errorf("%+v, %v", got, err)
	}
	args[2] = "req-none"
	if got := amends(t, nil, args...); got.code != exitFailed || !strings.Contains(got.err, "503 list_unavailable") {
		t.Errorf("a refusal: %+v", got)
	}
	args[2] = "8472.>"
	if got := amends(t, nil, args...); got.code != exitUsage || got.out != "" {
		t.Errorf("B55: %+v", got)
	}
}
