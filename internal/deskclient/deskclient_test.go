package deskclient_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/amends-dev/amends/internal/deskapi"
	"github.com/amends-dev/amends/internal/deskclient"
	"github.com/amends-dev/amends/internal/edge"
)

func serve(t *testing.T, h http.HandlerFunc) *deskclient.Gateway {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	g, err := deskclient.NewGateway(deskclient.Config{URL: s.URL, Token: "secret"})
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func TestPostSendsWhatThePostSays(t *testing.T) {
	t.Parallel()
	g := serve(t, func(w http.ResponseWriter, r *http.Request) {
		var body deskapi.Post
		err := json.NewDecoder(r.Body).Decode(&body)
		if err != nil || r.Method != http.MethodPost || r.URL.Path != "/v1/cases" || r.Header.Get("Authorization") != "Bearer secret" ||
			r.Header.Get("Idempotency-Key") != "k" || r.Header.Get("X-Customer-Id") != "cust_1" || body != (deskapi.Post{Message: "m", CaseID: "req-1"}) {
			t.Errorf("%s %s %v %+v %v", r.Method, r.URL, r.Header, body, err)
		}
		edge.WriteJSON(w, http.StatusAccepted, deskapi.Accepted{CaseID: "req-1"})
	})
	got, err := g.Post(t.Context(), deskclient.Post{Key: "k", Message: "m", CaseID: "req-1", Customer: "cust_1"})
	if err != nil || got.CaseID != "req-1" {
		t.Errorf("%+v, %v", got, err)
	}
}

func TestMessageAndCancelSendWhatTheySay(t *testing.T) {
	t.Parallel()
	var bodies []string
	g := serve(t, func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil || r.Method != http.MethodPost || r.Header.Get("Idempotency-Key") != "k" || r.Header.Get("X-Customer-Id") != "cust_1" {
			t.Errorf("%s %s %v %v", r.Method, r.URL, r.Header, err)
		}
		bodies = append(bodies, r.URL.Path+" "+string(body))
		edge.WriteJSON(w, http.StatusAccepted, deskapi.AcceptedMessage{CaseID: "req-1", MessageID: "m-1", Links: deskapi.LinksOf("req-1")})
	})
	said, err1 := g.Message(t.Context(), deskclient.Message{Key: "k", CaseID: "req-1", Message: "m", Customer: "cust_1"})
	withdrawn, err2 := g.Cancel(t.Context(), deskclient.Cancel{Key: "k", CaseID: "req-1", Customer: "cust_1"})
	if err1 != nil || err2 != nil || said != withdrawn || said.MessageID != "m-1" || said.Links.Events != "/v1/cases/req-1/events" {
		t.Errorf("%+v %v, %+v %v", said, err1, withdrawn, err2)
	}
	if want := []string{`/v1/cases/req-1/messages {"message":"m"}`, "/v1/cases/req-1/cancel "}; !slices.Equal(bodies, want) {
		t.Errorf("sent %q, want %q", bodies, want)
	}
}

func TestListAndRequestAskForWhatTheySay(t *testing.T) {
	t.Parallel()
	var asked []string
	g := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet || r.Header.Get("Authorization") != "Bearer secret" {
			t.Errorf("%s %v", r.Method, r.Header)
		}
		asked = append(asked, r.URL.String()+" "+r.Header.Get("X-Customer-Id"))
		if r.URL.Path == "/v1/cases" {
			edge.WriteJSON(w, 200, deskapi.CaseList{Cases: []deskapi.CaseSummary{{CaseID: "req-1", State: "RECEIVED"}}, Next: "abc"})
			return
		}
		edge.WriteJSON(w, 200, deskapi.Request{RequestID: "req-1", Cases: []deskapi.View{{CaseID: "req-1"}, {CaseID: "req-1-2"}}})
	})
	newest, err1 := g.Cases(t.Context(), deskclient.List{})
	page, err2 := g.Cases(t.Context(), deskclient.List{Customer: "cust_1", Limit: 5, Cursor: "a-_", State: "REFUNDED"})
	request, err3 := g.Request(t.Context(), "req-1", "cust_1")
	if err := errors.Join(err1, err2, err3); err != nil || newest.Cases[0].CaseID != "req-1" || page.Next != "abc" || len(request.Cases) != 2 {
		t.Errorf("%+v, %+v, %+v, %v", newest, page, request, err)
	}
	if want := []string{"/v1/cases ", "/v1/cases?cursor=a-_&limit=5&state=REFUNDED cust_1", "/v1/requests/req-1 cust_1"}; !slices.Equal(asked, want) {
		t.Errorf("asked %q, want %q", asked, want)
	}
}

func TestRefusalsAreProblems(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		answer http.HandlerFunc
		status int
		code   deskapi.Code
		after  time.Duration
	}{
		"problem": {func(w http.ResponseWriter, _ *http.Request) {
			edge.WriteProblem(w, deskapi.NewProblem(429, deskapi.CodeRateLimited, "slow down").After(3*time.Second))
		}, 429, deskapi.CodeRateLimited, 3 * time.Second},
		"plain text": {func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "bad gateway", http.StatusBadGateway) }, 502, deskapi.CodeInternal, 0},
		"lying status": {func(w http.ResponseWriter, _ *http.Request) {
			edge.WriteJSON(w, 500, deskapi.NewProblem(200, "ok", ""))
		}, 500, deskapi.CodeInternal, 0},
		"redirected away": {func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "http://other.example/", http.StatusFound)
		}, 302, deskapi.CodeInternal, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := serve(t, c.answer).View(t.Context(), "req-1", "")
			p, ok := errors.AsType[*deskapi.Problem](err)
			if !ok || p.Status != c.status || p.Code != c.code || p.RetryAfter != c.after {
				t.Errorf("%+v (%v)", p, err)
			}
		})
	}
}

func TestHugeAnswersAreRefused(t *testing.T) {
	t.Parallel()
	g := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte(`"` + strings.Repeat("x", 5<<20) + `"`))
	})
	if _, err := g.View(t.Context(), "req-1", ""); err == nil || !strings.Contains(err.Error(), "larger") {
		t.Errorf("got %v", err)
	}
}

func TestAddressesAreChecked(t *testing.T) {
	t.Parallel()
	for _, bad := range []string{"", "127.0.0.1:8080", "ftp://x", "http://", "http://x/y", "http://a b"} {
		if _, err := deskclient.NewGateway(deskclient.Config{URL: bad}); err == nil {
			t.Errorf("%q was accepted", bad)
		}
		if deskclient.CheckURL(bad) == nil {
			t.Errorf("%q passed the check", bad)
		}
	}
	if err := deskclient.CheckURL("https://desk.example:8443/"); err != nil {
		t.Error(err)
	}
}

func event(version uint64, closed bool, text string) string {
	body, err := json.Marshal(deskapi.View{Version: version, Closed: closed, Replies: []deskapi.ViewReply{{Text: text}}})
	if err != nil {
		panic(err)
	}
	return fmt.Sprintf("id: %d\nevent: view\ndata: %s\n\n", version, body)
}

// A stream that breaks is resumed after what was seen; a view larger than any
// buffer comes whole; what was seen is not shown again.
func TestFollowResumesABrokenStream(t *testing.T) {
	t.Parallel()
	var visits atomic.Int32
	long := strings.Repeat("long ", 20000)
	g := serve(t, func(w http.ResponseWriter, r *http.Request) {
		after := r.Header.Get(deskapi.HeaderLastEventID)
		var text string
		switch visits.Add(1) {
		case 1:
			text = "retry: 1000\n\n" + event(1, false, "") + ": still here\n\n" + event(2, false, long)
		case 2:
			if after != "2" {
				t.Errorf("resumed after %q, want 2", after)
			}
			text = "id: 3\nevent: view\ndata: {\"vers" // cut off
		case 3:
			edge.WriteProblem(w, deskapi.NewProblem(503, deskapi.CodeOverloaded, "").After(time.Second))
			return
		default:
			if after != "2" {
				t.Errorf("resumed after %q, want 2", after)
			}
			text = event(2, false, "") + event(3, false, "") + event(5, true, "")
		}
		_, _ = w.Write([]byte(text))
	})
	var got []uint64
	err := g.Follow(t.Context(), "req-1", "", 0, func(v deskapi.View) error {
		if v.Version == 2 && v.Replies[0].Text != long {
			t.Errorf("a long view came with %d bytes", len(v.Replies[0].Text))
		}
		got = append(got, v.Version)
		return nil
	})
	if err != nil || !slices.Equal(got, []uint64{1, 2, 3, 5}) {
		t.Errorf("versions %v, %v", got, err)
	}
}

func TestFollowEnds(t *testing.T) {
	t.Parallel()
	mine := errors.New("mine")
	for name, c := range map[string]struct {
		answer http.HandlerFunc
		fn     error
		want   func(error) bool
	}{
		"when told to": {func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(event(1, false, ""))) }, deskclient.ErrStop, func(err error) bool { return err == nil }},
		"on an error":  {func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(event(1, false, ""))) }, mine, func(err error) bool { return errors.Is(err, mine) }},
		"when closed":  {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) }, nil, func(err error) bool { return err == nil }},
		"when unknown": {func(w http.ResponseWriter, r *http.Request) { edge.NotFound.ServeHTTP(w, r) }, nil, func(err error) bool {
			p, ok := errors.AsType[*deskapi.Problem](err)
			return ok && p.Code == deskapi.CodeNotFound
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := serve(t, c.answer).Follow(t.Context(), "req-1", "", 0, func(deskapi.View) error { return c.fn })
			if !c.want(err) {
				t.Errorf("ended with %v", err)
			}
		})
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	g := serve(t, func(http.ResponseWriter, *http.Request) {})
	if err := g.Follow(ctx, "req-1", "", 0, func(deskapi.View) error { return nil }); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}

// The connection of a stream that ended is used again.
func TestFollowKeepsItsConnection(t *testing.T) {
	t.Parallel()
	var conns atomic.Int32
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(event(1, true, ""))) }))
	s.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			conns.Add(1)
		}
	}
	s.Start()
	t.Cleanup(s.Close)
	g, err := deskclient.NewGateway(deskclient.Config{URL: s.URL, Transport: deskclient.NewTransport(1)})
	if err != nil {
		t.Fatal(err)
	}
	for range 5 {
		if err := g.Follow(t.Context(), "req-1", "", 0, func(deskapi.View) error { return nil }); err != nil {
			t.Fatal(err)
		}
	}
	if n := conns.Load(); n != 1 {
		t.Errorf("%d connections for five streams in turn", n)
	}
}
