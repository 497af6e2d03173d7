package main

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/amends-dev/amends/internal/deskapi"
	"github.com/amends-dev/amends/internal/edge"
)

// fakeStops is a console with one switch.
type fakeStops struct {
	current   deskapi.Stop
	unaudited bool
	// busy is how many changes are turned away first.
	busy     int
	conflict bool
	received []deskapi.StopRequest
}

func (f *fakeStops) serve(t *testing.T) func(verb string, more ...string) []string {
	t.Helper()
	mux := http.NewServeMux()
	mux.Handle("GET /v1/stops", edge.Handler(func(w http.ResponseWriter, _ *http.Request) *deskapi.Problem {
		edge.WriteJSON(w, 200, deskapi.Stops{Stops: []deskapi.Stop{f.current, {Scope: "beta"}}})
		return nil
	}))
	mux.Handle("POST /v1/stops", edge.Handler(func(w http.ResponseWriter, r *http.Request) *deskapi.Problem {
		var in deskapi.StopRequest
		if err := json.NewDecoder(r.Body).Decode(&in); err != nil {
			t.Error(err)
		}
		if f.busy--; f.busy >= 0 {
			return deskapi.NewProblem(503, deskapi.CodeStopUnconfirmed, "").After(time.Millisecond)
		}
		f.received = append(f.received, in)
		if f.conflict {
			return deskapi.NewProblem(409, deskapi.CodeStopConflict, "the switch is not as you saw it").Over(f.current)
		}
		was := f.current
		edge.WriteJSON(w, 200, deskapi.StopChanged{
			Stop: deskapi.Stop{Scope: in.Scope, Stopped: *in.Stopped, By: "sam", Reason: in.Reason, At: &now, Sequence: was.Sequence + 1}, Replaced: &was, Audited: !f.unaudited,
		})
		return nil
	}))
	s := httptest.NewServer(mux)
	t.Cleanup(s.Close)
	dir, _ := files(t)
	return func(verb string, more ...string) []string {
		return append([]string{verb, "--console", s.URL, "--token-file", filepath.Join(dir, "token")}, more...)
	}
}

func setStop(scope string) deskapi.Stop {
	return deskapi.Stop{Scope: scope, Stopped: true, By: "ravi", Reason: "odd \x1b[2J\u202erefunds", At: &now, Sequence: 7}
}

func TestStop(t *testing.T) {
	t.Parallel()
	f := &fakeStops{current: setStop("acme-in"), busy: 1}
	args := f.serve(t)
	got := amends(t, nil, args("stop", "--tenant", "acme-in", "--reason", "wrong captures")...)
	want := "stopped: tenant acme-in, by sam at 2026-03-12T10:20:00Z: wrong captures\n" +
		`it was stopped before: tenant acme-in, by ravi at 2026-03-12T10:20:00Z: odd \x1b[2J\u202erefunds` + "\n"
	if got.code != exitDone || got.out != want || got.err != "" {
		t.Errorf("%+v", got)
	}
	if len(f.received) != 1 || f.received[0].Scope != "acme-in" || !*f.received[0].Stopped || f.received[0].Sequence != nil {
		t.Errorf("%+v", f.received)
	}
	f.unaudited = true
	got = amends(t, nil, args("stop", "--all", "--reason", "x")...)
	if got.code != exitDone || !strings.HasPrefix(got.out, "stopped: every tenant, by sam") || !strings.Contains(got.err, "audit log could not be written") {
		t.Errorf("%+v", got)
	}
	got = amends(t, nil, args("stop", "--all", "--reason", "x", "--json")...)
	var out deskapi.StopChanged
	if err := json.Unmarshal([]byte(got.out), &out); err != nil || out.Audited || !out.Stopped || out.Scope != "all" || out.Sequence != 8 {
		t.Errorf("%+v, %v", got, err)
	}
	got = amends(t, nil, args("stops")...)
	if lines := strings.Split(got.out, "\n"); got.code != exitDone || len(lines) != 4 || strings.Join(strings.Fields(lines[1])[:4], " ") != "acme-in STOPPED 2026-03-12T10:20:00Z ravi" ||
		!strings.HasPrefix(lines[2], "beta     running") || strings.Contains(got.out, "\x1b") {
		t.Errorf("%+v", got)
	}
}

// A release names the switch it was shown; that of everybody is asked about.
func TestResume(t *testing.T) {
	t.Parallel()
	all, yes, no := "all\n", "yes\n", ""
	for name, c := range map[string]struct {
		current  deskapi.Stop
		conflict bool
		answer   *string
		args     []string
		code     int
		sent     int
		want     string
	}{
		"tenant":       {setStop("acme-in"), false, nil, []string{"--tenant", "acme-in"}, exitDone, 1, "released: tenant acme-in, by sam"},
		"all, typed":   {setStop("all"), false, &all, []string{"--all"}, exitDone, 1, "released: every tenant, by sam"},
		"all, --yes":   {setStop("all"), false, nil, []string{"--all", "--yes"}, exitDone, 1, "released: every tenant, by sam"},
		"all, nobody":  {setStop("all"), false, nil, []string{"--all"}, exitFailed, 0, "say --yes"},
		"all, y":       {setStop("all"), false, &yes, []string{"--all"}, exitFailed, 0, "you did not type all"},
		"all, nothing": {setStop("all"), false, &no, []string{"--all"}, exitFailed, 0, "you did not type all"},
		"not stopped":  {deskapi.Stop{Scope: "acme-in"}, false, nil, []string{"--tenant", "acme-in"}, exitDone, 0, "not stopped: tenant acme-in"},
		"unknown":      {setStop("acme-in"), false, nil, []string{"--tenant", "gamma"}, exitFailed, 0, "there is no switch of gamma"},
		"set again":    {setStop("acme-in"), true, nil, []string{"--tenant", "acme-in"}, exitFailed, 1, "stop_conflict: the switch is not as you saw it; now stopped: tenant acme-in, by ravi"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := &fakeStops{current: c.current, conflict: c.conflict}
			got := amends(t, c.answer, f.serve(t)("resume", append(c.args, "--reason", "over")...)...)
			if got.code != c.code || !strings.Contains(got.out+got.err, c.want) || len(f.received) != c.sent {
				t.Errorf("%+v, sent %+v", got, f.received)
			}
			for _, r := range f.received {
				if *r.Stopped || r.Sequence == nil || *r.Sequence != 7 || r.Reason != "over" {
					t.Errorf("sent %+v", r)
				}
			}
		})
	}
}
