package main

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/amends-dev/amends/internal/deskapi"
	"github.com/amends-dev/amends/internal/edge"
)

// heard is a request at the gateway.
type heard struct{ path, key, customer, body string }

// gatewayOf answers every post, or with a problem, and tells what it heard.
func gatewayOf(t *testing.T, problem *deskapi.Problem) (url string, requests <-chan heard) {
	t.Helper()
	out := make(chan heard, 16)
	s := httptest.NewServer(edge.Handler(func(w http.ResponseWriter, r *http.Request) *deskapi.Problem {
		body, err := io.ReadAll(r.Body)
		if err != nil || r.Method != http.MethodPost || edge.Bearer(r) != "staff-token" {
			return deskapi.NewProblem(401, deskapi.CodeUnauthenticated, "")
		}
		out <- heard{r.URL.Path, r.Header.Get(deskapi.HeaderIdempotencyKey), r.Header.Get(deskapi.HeaderCustomer), string(body)}
		switch {
		case problem != nil:
			return problem
		case r.URL.Path == deskapi.CasesPath:
			edge.WriteJSON(w, 202, deskapi.Accepted{CaseID: "req-8472", RequestID: "req-8472", State: "RECEIVED", Links: deskapi.LinksOf("req-8472")})
		default:
			edge.WriteJSON(w, 202, deskapi.AcceptedMessage{CaseID: "req-8472", MessageID: "m-1\x1b[2J", Links: deskapi.LinksOf("req-8472")})
		}
		return nil
	}))
	t.Cleanup(s.Close)
	return s.URL, out
}

func TestCaseRequestsAreSentUnderTheirKey(t *testing.T) {
	t.Parallel()
	dir, _ := files(t)
	url, requests := gatewayOf(t, nil)
	for name, c := range map[string]struct {
		args []string
		path string
		body string
		out  string
	}{
		"post":    {[]string{"post", "charged twice", "--case-id", "req-8472"}, "/v1/cases", `{"message":"charged twice","case_id":"req-8472"}`, "req-8472  RECEIVED\n"},
		"message": {[]string{"message", "req-8472", "it is 8472"}, "/v1/cases/req-8472/messages", `{"message":"it is 8472"}`, `req-8472  message m-1\x1b[2J` + "\n"},
		"cancel":  {[]string{"cancel", "req-8472"}, "/v1/cases/req-8472/cancel", "", `req-8472  cancel m-1\x1b[2J` + "\n"},
	} {
		args := append([]string{"case"}, append(c.args, "--gateway", url, "--token-file", filepath.Join(dir, "token"), "--customer", "cust_5519")...)
		got := amends(t, nil, append(args, "--key", "k-1")...)
		if want := c.out + "idempotency key k-1\n"; got.code != exitDone || got.out != want || got.err != "" {
			t.Errorf("%s: %+v, want %q", name, got, want)
		}
		if h := <-requests; h != (heard{c.path, "k-1", "cust_5519", c.body}) {
			t.Errorf("%s: sent %+v", name, h)
		}
		// Without a key each request gets a fresh one, and tells it.
		var keys []string
		for range 2 {
			var out struct {
				CaseID string `json:"case_id"`
				Key    string `json:"idempotency_key"`
				Links  deskapi.Links
			}
			got := amends(t, nil, append(args, "--json")...)
			if err := json.Unmarshal([]byte(got.out), &out); err != nil || got.code != exitDone || out.CaseID != "req-8472" || out.Links.Self != "/v1/cases/req-8472" {
				t.Fatalf("%s: %+v", name, got)
			}
			if h := <-requests; h.key != out.Key || !regexp.MustCompile("^[0-9a-f]{32}$").MatchString(h.key) {
				t.Errorf("%s: key %q sent, %q told", name, h.key, out.Key)
			}
			keys = append(keys, out.Key)
		}
		if keys[0] == keys[1] {
			t.Errorf("%s: one key for two requests", name)
		}
	}
}

// What went wrong may have been taken all the same: the key is told.
func TestAFailedCaseRequestTellsItsKey(t *testing.T) {
	t.Parallel()
	dir, _ := files(t)
	url, requests := gatewayOf(t, deskapi.NewProblem(409, deskapi.CodeCaseClosed, "the case has ended: CANCELLED"))
	for _, args := range [][]string{{"post", "m"}, {"message", "req-8472", "m"}, {"cancel", "req-8472"}} {
		args = append([]string{"case"}, append(args, "--gateway", url, "--token-file", filepath.Join(dir, "token"))...)
		got := amends(t, nil, args...)
		if h := <-requests; got.code != exitFailed || got.out != "" || !strings.Contains(got.err, "idempotency key "+h.key+": 409 case_closed: the case has ended") {
			t.Errorf("%v: %+v", args, got)
		}
		got = amends(t, nil, append(args, "--json", "--key", "k-2")...)
		var out struct{ Error, Code string }
		if err := json.Unmarshal([]byte(got.err), &out); err != nil || got.code != exitFailed || out.Code != "case_closed" || !strings.Contains(out.Error, "k-2") {
			t.Errorf("%v: %+v", args, got)
		}
		<-requests
	}
}

func TestCaseFollow(t *testing.T) {
	t.Parallel()
	dir, _ := files(t)
	s := httptest.NewServer(edge.Handler(func(w http.ResponseWriter, r *http.Request) *deskapi.Problem {
		if r.URL.Path != "/v1/cases/req-8472/events" {
			return deskapi.NewProblem(404, deskapi.CodeNotFound, "no such case")
		}
		v := deskapi.View{CaseID: "req-8472"}
		for i, state := range []string{"RECEIVED", "AWAITING_CUSTOMER", "CANCELLED"} {
			v.Version, v.State, v.Closed = uint64(i+1), state, i == 2
			v.Timeline = append(v.Timeline, deskapi.ViewEntry{Version: v.Version, State: state, At: &now})
			v.Next = ""
			if i == 1 {
				v.Replies, v.Next, v.NextAt = []deskapi.ViewReply{{Kind: "clarify", Text: "Which\norder?\x1b", Version: 2}}, "customer", &now
			}
			data, err := json.Marshal(v)
			if err != nil {
				t.Error(err)
			}
			_, _ = w.Write([]byte("data: " + string(data) + "\n\n"))
		}
		return nil
	}))
	t.Cleanup(s.Close)
	args := []string{"case", "follow", "req-8472", "--gateway", s.URL, "--token-file", filepath.Join(dir, "token")}
	want := "  v1   2026-03-12T10:20:00Z  RECEIVED\n" +
		"  v2   2026-03-12T10:20:00Z  AWAITING_CUSTOMER\nreply of v2 (clarify):\n  Which\n  order?\\x1b\nnext: customer 2026-03-12T10:20:00Z\n" +
		"  v3   2026-03-12T10:20:00Z  CANCELLED\n"
	if got := amends(t, nil, args...); got.code != exitDone || got.out != want {
		t.Errorf("%+v, want %q", got, want)
	}
	if got := amends(t, nil, append(args, "--after", "2")...); got.code != exitDone || got.out != "  v3   2026-03-12T10:20:00Z  CANCELLED\n" {
		t.Errorf("after version 2: %+v", got)
	}
	got := amends(t, nil, append(args, "--json")...)
	lines := strings.Split(strings.TrimSpace(got.out), "\n")
	var last deskapi.View
	if err := json.Unmarshal([]byte(lines[len(lines)-1]), &last); err != nil || got.code != exitDone || len(lines) != 3 || !last.Closed {
		t.Errorf("%+v", got)
	}
	args[2] = "req-none"
	if got := amends(t, nil, args...); got.code != exitFailed || !strings.Contains(got.err, "no such case") {
		t.Errorf("unknown case: %+v", got)
	}
}
