package gateway

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/amends-dev/amends/internal/bus/bustest"
	"github.com/amends-dev/amends/internal/deskapi"
	"github.com/amends-dev/amends/internal/deskclient"
	"github.com/amends-dev/amends/internal/edge"
	"github.com/amends-dev/amends/internal/roles"
)

// follow collects a case's versions until it is closed.
func follow(t *testing.T, url, key string, after uint64) (versions <-chan uint64, ended <-chan error) {
	t.Helper()
	client, err := deskclient.NewGateway(deskclient.Config{URL: url, Token: key})
	if err != nil {
		t.Fatal(err)
	}
	out, end := make(chan uint64, 64), make(chan error, 1)
	go func() {
		end <- client.Follow(t.Context(), "req-8472", "", after, func(v deskapi.View) error {
			out <- v.Version
			return nil
		})
		close(out)
	}()
	return out, end
}

func TestFollowerSeesEachNewerVersionUntilTheCaseIsClosed(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	url := d.gateway(t)
	d.publish(t, view("req-8472", 1, "RECEIVED"))
	versions, ended := follow(t, url, webKey, 0)
	if v := <-versions; v != 1 {
		t.Fatalf("first version %d, want the stored one", v)
	}
	// What a restarted orchestrator may send again is never shown.
	for _, v := range []uint64{2, 4, 3, 4, 1} {
		d.publish(t, view("req-8472", v, "INVESTIGATING"))
	}
	d.publish(t, view("req-8473", 9, "INVESTIGATING"))
	d.publish(t, view("req-8472", 5, "VERIFIED_CLOSED"))
	var got []uint64
	for v := range versions {
		got = append(got, v)
	}
	if err := <-ended; err != nil || !slices.Equal(got, []uint64{2, 4, 5}) {
		t.Errorf("versions %v, %v", got, err)
	}
}

// Bug B75: a stream that is cut before any event loses nothing when it is
// resumed.
func TestFollowResumesB75(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	url := d.gateway(t)
	d.publish(t, view("req-8472", 4, "INVESTIGATING"))
	for range 3 { // cut before any event
		ctx, cancel := context.WithCancel(t.Context())
		resp := stream(ctx, t, url, "3")
		cancel()
		_ = resp.Body.Close()
	}
	versions, ended := follow(t, url, webKey, 3)
	if v := <-versions; v != 4 {
		t.Fatalf("resumed at %d, want 4", v)
	}
	again, endedAgain := follow(t, url, webKey, 4)
	d.publish(t, view("req-8472", 5, "VERIFIED_CLOSED"))
	for _, ch := range []<-chan uint64{versions, again} {
		if v := <-ch; v != 5 {
			t.Errorf("got %d, want 5", v)
		}
	}
	if err := errors.Join(<-ended, <-endedAgain); err != nil {
		t.Error(err)
	}
	resp := stream(t.Context(), t, url, "5")
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusNoContent {
		t.Errorf("resuming a closed case: %d, want %d", resp.StatusCode, http.StatusNoContent)
	}
}

// A stream ends with the token it was opened with, and goes on from where it
// was with a new one; a key does not end.
func TestAStreamEndsWithItsToken(t *testing.T) {
	t.Parallel()
	d, m := newDesk(t), openID(t, "")
	var ahead atomic.Int64
	now := func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) }
	url := d.gatewayOf(t, withLogin(m, func(ch *Channel) { ch.OIDC.Leeway = time.Second }), Deps{Now: now})
	d.publish(t, view("req-8472", 4, "INVESTIGATING"))
	open := func(token, after string) *bufio.Scanner {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url+"/v1/cases/req-8472/events", nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Authorization", "Bearer "+token)
		req.Header.Set(deskapi.HeaderLastEventID, after)
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = resp.Body.Close() })
		if resp.StatusCode != http.StatusOK {
			t.Fatalf("status %d", resp.StatusCode)
		}
		return bufio.NewScanner(resp.Body)
	}
	until := func(s *bufio.Scanner, line string) bool {
		for s.Scan() {
			if s.Text() == line {
				return true
			}
		}
		return false
	}
	short := issued(t, m, map[string]any{"exp": time.Now().Add(2 * time.Second).Unix()})
	tokens, keys := open(short, "3"), open(webKey, "3")
	if !until(tokens, "id: 4") || until(tokens, "id: 5") || tokens.Err() != nil {
		t.Errorf("the stream of the short token: %v", tokens.Err())
	}
	// Where the desk's time jumps, no event is sent after it.
	long := open(issued(t, m, nil), "4")
	ahead.Store(int64(2 * time.Hour))
	d.publish(t, view("req-8472", 5, "INVESTIGATING"))
	if until(long, "id: 5") {
		t.Error("an event was sent after the token's end")
	}
	resumed := open(issued(t, m, map[string]any{"exp": now().Add(time.Hour).Unix(), "iat": now().Unix()}), "4")
	if !until(resumed, "id: 5") || !until(keys, "id: 5") {
		t.Error("version 5 is missing")
	}
}

// cutter ends the first streams before any of their bytes, and notes what each
// request resumes from.
type cutter struct {
	http.RoundTripper
	left   int
	resume []string
	cut    func()
}

func (c *cutter) RoundTrip(r *http.Request) (*http.Response, error) {
	c.resume = append(c.resume, r.Header.Get(deskapi.HeaderLastEventID))
	resp, err := c.RoundTripper.RoundTrip(r)
	if err != nil || c.left == 0 {
		return resp, err
	}
	c.left--
	_ = resp.Body.Close()
	resp.Body = io.NopCloser(strings.NewReader(""))
	c.cut()
	return resp, nil
}

// Bug B75: the place to resume from survives streams that end before any event,
// while the case moves on: no version is missing at the end, and none comes
// twice.
func TestStreamCutThreeTimesBeforeAnyEventB75(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	url := d.gateway(t)
	d.publish(t, view("req-8472", 3, "INVESTIGATING"))
	version := uint64(3)
	trips := &cutter{RoundTripper: deskclient.NewTransport(1), left: 3, cut: func() {
		version++
		d.publish(t, view("req-8472", version, "INVESTIGATING"))
	}}
	client, err := deskclient.NewGateway(deskclient.Config{URL: url, Token: webKey, Transport: trips})
	if err != nil {
		t.Fatal(err)
	}
	var got []uint64
	err = client.Follow(t.Context(), "req-8472", "", 3, func(v deskapi.View) error {
		got = append(got, v.Version)
		if v.Version < 8 {
			state := "INVESTIGATING"
			if v.Version == 7 {
				state = "VERIFIED_CLOSED"
			}
			d.publish(t, view("req-8472", v.Version+1, state))
		}
		return nil
	})
	if err != nil || !slices.Equal(got, []uint64{6, 7, 8}) || !slices.Equal(trips.resume, []string{"3", "3", "3", "3"}) {
		t.Errorf("versions %v after streams from %q, %v", got, trips.resume, err)
	}
}

func stream(ctx context.Context, t *testing.T, url, last string) *http.Response {
	t.Helper()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url+"/v1/cases/req-8472/events", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+webKey)
	if last != "" {
		req.Header.Set(deskapi.HeaderLastEventID, last)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	return resp
}

func TestEventsOnTheWire(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	url := d.gateway(t)
	d.publish(t, view("req-8472", 7, "REFUNDED"))
	resp := stream(t.Context(), t, url, "")
	defer resp.Body.Close()
	if got := resp.Header.Get("Content-Type"); got != "text/event-stream" {
		t.Errorf("sent as %q", got)
	}
	shown := ask(t, http.MethodGet, url+"/v1/cases/req-8472", webKey, "")
	lines := bufio.NewScanner(resp.Body)
	for _, want := range []string{"retry: 1000", "", "id: 7", "event: view", "data: " + shown.body, "", ": still here"} {
		if !lines.Scan() || lines.Text() != want {
			t.Fatalf("line %q, want %q", lines.Text(), want)
		}
	}
}

// What is republished while the broker is away is lost; the stored view is not.
func TestFollowerCatchesUpAfterTheBrokerWasAway(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	url := d.gateway(t)
	d.publish(t, view("req-8472", 1, "RECEIVED"))
	versions, _ := follow(t, url, webKey, 0)
	<-versions
	d.broker.Stop()
	d.broker.Start()
	bustest.Await(t, "the orchestrator's connection", func() bool { return d.writes.Ready() == nil })
	d.publish(t, view("req-8472", 2, "VERIFIED_CLOSED"))
	select {
	case v := <-versions:
		if v != 2 {
			t.Errorf("version %d, want 2", v)
		}
	case <-time.After(15 * time.Second):
		t.Error("nothing came")
	}
}

func TestStopEndsStreamsAndFinishesRequests(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.publish(t, view("req-8472", 1, "RECEIVED"))
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	g, h := d.handler(ctx, t, d.broker.Connect(roles.Gateway))
	ready, ended := make(chan string, 1), make(chan error, 1)
	go func() {
		ended <- edge.Serve(ctx, edge.Endpoint{Listen: "127.0.0.1:0"}, h, quiet(), func(addr string) { ready <- addr })
	}()
	url := "http://" + <-ready
	resp := stream(t.Context(), t, url, "")
	defer resp.Body.Close()
	waiting := make(chan answer, 1)
	go func() { waiting <- ask(t, http.MethodGet, url+"/v1/cases/req-late", webKey, "") }()
	bustest.Await(t, "the request in flight", func() bool { return g.requests.inside.Load() == 1 })
	cancel()
	rest, err := io.ReadAll(resp.Body)
	if err != nil || !strings.Contains(string(rest), "id: 1\n") {
		t.Errorf("the stream gave %q, %v", rest, err)
	}
	if a := <-waiting; a.status != http.StatusNotFound {
		t.Errorf("the request in flight: %d", a.status)
	}
	if err := <-ended; err != nil {
		t.Errorf("ended with %v", err)
	}
}

func TestTooManyFollowersAreTurnedAway(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	url := d.gatewayWith(t, func(c *Config) { c.Limits.Streams = 1 })
	d.publish(t, view("req-8472", 1, "RECEIVED"))
	first := stream(t.Context(), t, url, "")
	defer first.Body.Close()
	second := stream(t.Context(), t, url, "")
	defer second.Body.Close()
	if first.StatusCode != http.StatusOK || second.StatusCode != http.StatusServiceUnavailable || second.Header.Get("Retry-After") == "" {
		t.Errorf("%d, then %d", first.StatusCode, second.StatusCode)
	}
}
