package console

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/amends-dev/amends/internal/bus"
	"github.com/amends-dev/amends/internal/deskapi"
	"github.com/amends-dev/amends/internal/deskclient"
	"github.com/amends-dev/amends/internal/roles"
	"github.com/amends-dev/amends/internal/subject"
	amendsv1 "github.com/amends-dev/amends/proto/amends/v1"
)

const headToken = "head-staff-token"

func (d *desk) client(t *testing.T, url, token string) *deskclient.Console {
	t.Helper()
	c, err := deskclient.NewConsole(deskclient.Config{URL: url, Token: token})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func stopOrder(scope, reason string) deskapi.StopRequest {
	return deskapi.StopRequest{Scope: scope, Stopped: new(true), Reason: reason}
}

func resumeOrder(scope string, seen uint64) deskapi.StopRequest {
	return deskapi.StopRequest{Scope: scope, Stopped: new(false), Reason: "over", Sequence: &seen}
}

// isProblem gives the problem an error is, which must be of a code.
func isProblem(t *testing.T, err error, code deskapi.Code) *deskapi.Problem {
	t.Helper()
	p, ok := errors.AsType[*deskapi.Problem](err)
	if !ok || p.Code != code {
		t.Fatalf("got %v, want %s", err, code)
	}
	return p
}

// audit gives the audit events of a subject as "actor action outcome: reason".
func (d *desk) audit(t *testing.T, subj string) (out []string) {
	t.Helper()
	stream, err := d.broker.Admin().Stream(t.Context(), roles.StreamAudit)
	if err != nil {
		t.Fatal(err)
	}
	info, err := stream.Info(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for seq := info.State.FirstSeq; seq <= info.State.LastSeq && info.State.Msgs > 0; seq++ {
		m, err := stream.GetMsg(t.Context(), seq)
		if err != nil {
			t.Fatal(err)
		}
		e := new(amendsv1.AuditEvent)
		if err := proto.Unmarshal(m.Data, e); err != nil || e.GetService() != "console" || len(e.GetTraceId()) != 32 || e.GetAt() == nil {
			t.Errorf("audit event %v, %v", e, err)
		}
		if m.Subject == subj {
			out = append(out, fmt.Sprintf("%s %s %s %s: %s", e.GetActor(), e.GetAction(), e.GetSubject(), e.GetOutcome(), e.GetReason()))
		}
	}
	return out
}

// The switch is set, shown, released and audited; what is stored is what the
// executor reads.
func TestStopAndResume(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	head := d.client(t, d.url, headToken)
	before, err := head.Stops(t.Context())
	if err != nil || len(before.Stops) != 3 || before.Stops[0] != (deskapi.Stop{Scope: "all"}) || before.Stops[1] != (deskapi.Stop{Scope: "acme-in"}) {
		t.Fatalf("before: %+v, %v", before, err)
	}
	set, err := head.ChangeStop(t.Context(), stopOrder("acme-in", "odd refunds <b>"))
	if err != nil || !set.Stopped || set.By != "head" || set.Reason != "odd refunds <b>" || set.Sequence == 0 || !set.Audited || set.Replaced != nil {
		t.Fatalf("set: %+v, %v", set, err)
	}
	stored, err := d.writes.Last(t.Context(), roles.StreamControl, subject.Control("acme-in"))
	sw := new(amendsv1.StopSwitch)
	if err != nil || proto.Unmarshal(stored.Data, sw) != nil || !sw.GetStopped() || sw.GetScope() != "acme-in" || stored.Seq != set.Sequence {
		t.Fatalf("stored: %v, %v", sw, err)
	}
	// Somebody else stops too, and sees what was there.
	again, err := d.client(t, d.url, acmeToken).ChangeStop(t.Context(), stopOrder("acme-in", "me too"))
	if err != nil || again.By != "maya" || again.Replaced == nil || again.Replaced.By != "head" || again.Sequence <= set.Sequence {
		t.Fatalf("again: %+v, %v", again, err)
	}
	// Whoever releases must have seen that one.
	_, err = head.ChangeStop(t.Context(), resumeOrder("acme-in", set.Sequence))
	if p := isProblem(t, err, deskapi.CodeStopConflict); p.Current == nil || p.Current.By != "maya" || p.Current.Sequence != again.Sequence {
		t.Errorf("release of a switch that was not seen: %+v", p)
	}
	released, err := head.ChangeStop(t.Context(), resumeOrder("acme-in", again.Sequence))
	if err != nil || released.Stopped || released.Replaced == nil || released.Replaced.Reason != "me too" {
		t.Fatalf("released: %+v, %v", released, err)
	}
	_, err = head.ChangeStop(t.Context(), resumeOrder("acme-in", released.Sequence))
	if p := isProblem(t, err, deskapi.CodeStopConflict); p.Current == nil || p.Current.Stopped {
		t.Errorf("released twice: %+v", p)
	}
	want := []string{
		"head stop control.stop.acme-in asked: odd refunds <b>", "head stop control.stop.acme-in done: odd refunds <b>",
		"maya stop control.stop.acme-in asked: me too", "maya stop control.stop.acme-in done: me too",
		"head resume control.stop.acme-in asked: over", "head resume control.stop.acme-in stop_conflict: over",
		"head resume control.stop.acme-in asked: over", "head resume control.stop.acme-in done: over",
		"head resume control.stop.acme-in asked: over", "head resume control.stop.acme-in stop_conflict: over",
	}
	if got := d.audit(t, "audit.console.acme-in"); strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("audited:\n%s", strings.Join(got, "\n"))
	}
	if _, err := head.ChangeStop(t.Context(), stopOrder("all", "everything")); err != nil {
		t.Fatal(err)
	}
	if got := d.audit(t, "audit.console.all"); len(got) != 2 {
		t.Errorf("audited %q", got)
	}
}

// A switch that cannot be understood is shown as the stop it is, and can be
// released.
func TestUnreadableSwitchIsAStop(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	if _, err := d.broker.Connect(roles.Console).Publish(t.Context(), subject.Control("all"), []byte("no switch")); err != nil {
		t.Fatal(err)
	}
	head := d.client(t, d.url, headToken)
	got, err := head.Stops(t.Context())
	if err != nil || !got.Stops[0].Stopped || !got.Stops[0].Unreadable {
		t.Fatalf("%+v, %v", got, err)
	}
	if out, err := head.ChangeStop(t.Context(), resumeOrder("all", got.Stops[0].Sequence)); err != nil || out.Stopped {
		t.Errorf("%+v, %v", out, err)
	}
}

// Everybody may stop their tenants; the rest are rights of their own, and what
// lacks one is audited. A foreign tenant is unknown (TENANT-1).
func TestRightsOfTheStop(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	maya := d.client(t, d.url, acmeToken)
	for name, c := range map[string]struct {
		order deskapi.StopRequest
		code  deskapi.Code
	}{
		"all":           {stopOrder("all", "x"), deskapi.CodeRightMissing},
		"release":       {resumeOrder("acme-in", 1), deskapi.CodeRightMissing},
		"release all":   {resumeOrder("all", 1), deskapi.CodeRightMissing},
		"foreign":       {stopOrder("beta", "x"), deskapi.CodeNotFound},
		"unknown":       {stopOrder("gamma", "x"), deskapi.CodeNotFound},
		"no scope":      {stopOrder("", "x"), deskapi.CodeBodyInvalid},
		"wildcard":      {stopOrder("*", "x"), deskapi.CodeBodyInvalid},
		"no reason":     {stopOrder("acme-in", " "), deskapi.CodeBodyInvalid},
		"long reason":   {stopOrder("acme-in", strings.Repeat("x", 257)), deskapi.CodeBodyInvalid},
		"neither":       {deskapi.StopRequest{Scope: "acme-in", Reason: "x"}, deskapi.CodeBodyInvalid},
		"unseen switch": {deskapi.StopRequest{Scope: "acme-in", Reason: "x", Stopped: new(false)}, deskapi.CodeBodyInvalid},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := maya.ChangeStop(t.Context(), c.order)
			isProblem(t, err, c.code)
		})
	}
	for body, want := range map[string]int{
		`{"scope":"acme-in","stopped":true,"reason":"x","until":"noon"}`: 400, `{"scope":"acme-in","stopped":true,"reason":"x"} {}`: 400, `[]`: 400, ``: 400,
		`{"reason":"` + strings.Repeat("x", maxStopBody) + `"}`: 413,
	} {
		if a := d.ask(t, http.MethodPost, deskapi.StopsPath, body, bearer(acmeToken)); a.status != want {
			t.Errorf("%.40s: %d %s", body, a.status, a.body)
		}
	}
	if a := d.ask(t, http.MethodPost, deskapi.StopsPath, `{"scope":"acme-in","stopped":true,"reason":"x"}`, basic(acmeToken)); a.status != http.StatusUnauthorized {
		t.Errorf("a browser's password: %d", a.status)
	}
	if a := d.ask(t, http.MethodDelete, deskapi.StopsPath, "", bearer(acmeToken)); a.status != http.StatusMethodNotAllowed {
		t.Errorf("%d", a.status)
	}
	got, err := maya.Stops(t.Context())
	if err != nil || len(got.Stops) != 2 || got.Stops[0].Sequence+got.Stops[1].Sequence != 0 {
		t.Errorf("maya sees %+v, %v", got, err)
	}
	if got := d.audit(t, "audit.console.all"); len(got) != 2 || !strings.HasSuffix(got[0], "right_missing: x") && !strings.HasSuffix(got[1], "right_missing: x") {
		t.Errorf("audited %q", got)
	}
}

// Of many that stop and release at once each sees what it replaced: the
// switches form one line, and no release passes over a stop it did not see.
func TestStopsAtOnceFormOneLine(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	head := d.client(t, d.url, headToken)
	var mu sync.Mutex
	replaced := map[uint64]int{}
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 3 {
				out, err := head.ChangeStop(t.Context(), stopOrder("acme-in", "x"))
				if err != nil {
					t.Error(err)
					return
				}
				was := uint64(0)
				if out.Replaced != nil {
					was = out.Replaced.Sequence
				}
				mu.Lock()
				replaced[was]++
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	for seq, n := range replaced {
		if n != 1 {
			t.Errorf("%d changes replaced the switch at %d", n, seq)
		}
	}
	if len(replaced) != 12 {
		t.Errorf("%d changes", len(replaced))
	}
}

// broken is the real broker, of which a test breaks a part.
type broken struct {
	broker
	publish func(ctx context.Context, subj string, through func() (uint64, error)) (uint64, error)
}

func (b *broken) Publish(ctx context.Context, subj string, data []byte, opts ...bus.PublishOption) (uint64, error) {
	return b.publish(ctx, subj, func() (uint64, error) { return b.broker.Publish(ctx, subj, data, opts...) })
}

// Without the audit log a stop goes on and says so; nothing is released. A lost
// acknowledgement is read back, and what nobody knows is not called done.
func TestStopWhenTheBrokerFails(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	b := &broken{broker: d.broker.Connect(roles.Console)}
	h, err := build(testConfig(), Deps{}, b, nil)
	if err != nil {
		t.Fatal(err)
	}
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	head := d.client(t, s.URL, headToken)

	through := func(_ context.Context, _ string, send func() (uint64, error)) (uint64, error) { return send() }
	b.publish = func(_ context.Context, subj string, send func() (uint64, error)) (uint64, error) {
		if strings.HasPrefix(subj, "audit.") {
			return 0, bus.ErrUnavailable
		}
		return send()
	}
	set, err := head.ChangeStop(t.Context(), stopOrder("acme-in", "x"))
	if err != nil || !set.Stopped || set.Audited {
		t.Fatalf("stop without the log: %+v, %v", set, err)
	}
	_, err = head.ChangeStop(t.Context(), resumeOrder("acme-in", set.Sequence))
	isProblem(t, err, deskapi.CodeAuditUnavailable)

	lost := 0
	b.publish = func(_ context.Context, subj string, send func() (uint64, error)) (uint64, error) {
		seq, err := send()
		if strings.HasPrefix(subj, "control.") && lost == 0 {
			lost++
			return 0, errors.Join(bus.ErrUncertain, err)
		}
		return seq, err
	}
	again, err := head.ChangeStop(t.Context(), stopOrder("acme-in", "y"))
	if err != nil || again.Reason != "y" || lost != 1 || again.Sequence != set.Sequence+1 {
		t.Fatalf("lost acknowledgement: %+v, %v", again, err)
	}

	b.publish = func(_ context.Context, subj string, send func() (uint64, error)) (uint64, error) {
		if strings.HasPrefix(subj, "control.") {
			return 0, bus.ErrUncertain
		}
		return send()
	}
	_, err = head.ChangeStop(t.Context(), resumeOrder("acme-in", again.Sequence))
	isProblem(t, err, deskapi.CodeStopUnconfirmed)
	b.publish = through
	if out, err := head.ChangeStop(t.Context(), resumeOrder("acme-in", again.Sequence)); err != nil || out.Stopped {
		t.Errorf("%+v, %v", out, err)
	}
}

// The page and the record of a held case say which stop holds it.
func TestHeldCaseShowsTheStop(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	r := record(7)
	r.State = amendsv1.CaseState_CASE_STATE_REFUND_REQUESTED
	r.Tasks = append(r.Tasks, &amendsv1.TaskNode{
		TaskId: "task-8472-execute-1", Target: "refund-executor", Slice: amendsv1.Slice_SLICE_EXECUTE, Status: amendsv1.TaskStatus_TASK_STATUS_RUNNING,
		Attempts: []*amendsv1.Attempt{{Number: 1, Status: amendsv1.AttemptStatus_ATTEMPT_STATUS_FAILED, Reason: "held", DispatchedAt: timestamppb.New(at)}},
	})
	d.commit(t, r)
	head := d.client(t, d.url, headToken)
	set, err := head.ChangeStop(t.Context(), stopOrder("acme-in", "odd <refunds>"))
	if err != nil {
		t.Fatal(err)
	}
	page := d.ask(t, http.MethodGet, "/cases/acme-in/req-8472", "", basic(acmeToken)).body
	if !strings.Contains(page, "the emergency stop holds the refund") || !strings.Contains(page, "by head: odd &lt;refunds&gt;") || strings.Contains(page, "for every tenant") {
		t.Errorf("the page does not show it:\n%s", page)
	}
	got, err := head.Record(t.Context(), "acme-in", "req-8472", 7)
	if err != nil || !got.Held || len(got.Stops) != 1 || got.Stops[0].Sequence != set.Sequence {
		t.Errorf("%+v, %v", got.Stops, err)
	}
	if _, err := head.ChangeStop(t.Context(), resumeOrder("acme-in", set.Sequence)); err != nil {
		t.Fatal(err)
	}
	if got, err := head.Record(t.Context(), "acme-in", "req-8472", 7); err != nil || !got.Held || len(got.Stops) != 0 {
		t.Errorf("released: %+v, %v", got.Stops, err)
	}
	var wire map[string]json.RawMessage
	if err := json.Unmarshal([]byte(d.ask(t, http.MethodGet, casePath, "", bearer(acmeToken)).body), &wire); err != nil || string(wire["held"]) != "true" {
		t.Errorf("%s, %v", wire["held"], err)
	}
}
