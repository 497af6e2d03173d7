package e2e_test

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"golang.org/x/sync/errgroup"
	"google.golang.org/protobuf/proto"

	"github.com/amends-dev/amends/internal/allinone"
	"github.com/amends-dev/amends/internal/casework"
	"github.com/amends-dev/amends/internal/deskapi"
	"github.com/amends-dev/amends/internal/deskclient"
	"github.com/amends-dev/amends/internal/roles"
	"github.com/amends-dev/amends/internal/sandbox"
	amendsv1 "github.com/amends-dev/amends/proto/amends/v1"
)

// resumed bounds how long held cases may take to close after a release; by
// their own deadline alone they would take five minutes.
const resumed = 30 * time.Second

func (w *world) stop(scope string) deskapi.StopChanged {
	w.t.Helper()
	out, err := w.staff.ChangeStop(w.ctx, deskapi.StopRequest{Scope: scope, Stopped: new(true), Reason: "odd refunds"})
	if err != nil || !out.Audited {
		w.t.Fatalf("stop: %+v, %v", out, err)
	}
	return out
}

func (w *world) resume(scope string, seen uint64) {
	w.t.Helper()
	if _, err := w.staff.ChangeStop(w.ctx, deskapi.StopRequest{Scope: scope, Stopped: new(false), Reason: "looked into", Sequence: &seen}); err != nil {
		w.t.Fatal(err)
	}
}

// look reads a case's record as the console shows it until it is as wanted.
func (w *world) look(i int, what string, ok func(deskapi.Record, *amendsv1.CaseRecord) bool) *amendsv1.CaseRecord {
	w.t.Helper()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		shown, err := w.staff.Record(w.ctx, allinone.Tenant, caseID(i), 0)
		if err != nil {
			w.t.Fatalf("case %s, waiting for it to be %s: %v", caseID(i), what, err)
		}
		if rec := w.record(i, shown.Version); ok(shown, rec) {
			return rec
		}
		select {
		case <-tick.C:
		case <-w.ctx.Done():
			w.t.Fatalf("case %s did not come to be %s", caseID(i), what)
		}
	}
}

func held(shown deskapi.Record, rec *amendsv1.CaseRecord) bool {
	return shown.Held && rec.GetState() == amendsv1.CaseState_CASE_STATE_REFUND_REQUESTED
}

// closes waits, bounded, for a held case to close.
func (w *world) closes(i int) deskapi.View {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.ctx, resumed)
	defer cancel()
	bounded := *w
	bounded.ctx = ctx
	return bounded.until(caseID(i), 0, closed)
}

// begun gives when each refund was begun, by its key.
func (w *world) begun() map[string]*amendsv1.EffectIntent {
	w.t.Helper()
	out := map[string]*amendsv1.EffectIntent{}
	w.read(roles.StreamEffects, func(m jetstream.Msg) {
		e := new(amendsv1.EffectEntry)
		if err := proto.Unmarshal(m.Data(), e); err != nil {
			w.t.Fatal(err)
		}
		for _, in := range e.GetIntents() {
			out[in.GetIdempotencyKey()] = in
		}
	})
	return out
}

// A stop that is set between the approval and the call: nothing is begun, the
// case keeps its place and shows why, and when the stop is released it closes
// with one refund (MONEY-1, LIVE-1). Who did it and why is in the audit log.
func TestStopBetweenApprovalAndCall(t *testing.T) {
	t.Parallel()
	w := start(t, allinone.Options{NoSync: true})
	w.orders(1, true)
	auditor, err := w.Auditor()
	if err != nil {
		t.Fatal(err)
	}
	defer auditor.Close()
	if err := w.post(0); err != nil {
		t.Fatal(err)
	}
	waiting := w.until(caseID(0), 0, in("AWAITING_APPROVAL"))
	executor := roles.TaskConsumer(roles.RefundExecutor)
	if err := auditor.Hold(w.ctx, executor, true); err != nil {
		t.Fatal(err)
	}
	if err := w.approve(caseID(0), waiting.Version); err != nil {
		t.Fatal(err)
	}
	w.until(caseID(0), waiting.Version, in("REFUND_REQUESTED"))
	set := w.stop(allinone.Tenant)
	if err := auditor.Hold(w.ctx, executor, false); err != nil {
		t.Fatal(err)
	}
	rec := w.look(0, "held", held)
	if n, begun := len(w.refunds()), len(w.begun()); n != 0 || begun != 0 {
		t.Errorf("%d refunds and %d intents while stopped", n, begun)
	}
	if last := rec.GetTimeline()[len(rec.GetTimeline())-1]; last.GetRow() != "effect.held" || !strings.Contains(last.GetNote(), "emergency stop") {
		t.Errorf("the timeline says %v", last)
	}
	shown, err := w.staff.Record(w.ctx, allinone.Tenant, caseID(0), rec.GetVersion())
	if err != nil || len(shown.Stops) != 1 || shown.Stops[0].Sequence != set.Sequence || shown.Stops[0].By != allinone.StaffMember {
		t.Errorf("the case shows %+v, %v", shown.Stops, err)
	}
	w.resume(allinone.Tenant, set.Sequence)
	if v := w.closes(0); v.State != "VERIFIED_CLOSED" || len(w.refunds()) != 1 {
		t.Errorf("ended %s with %v", v.State, w.refunds())
	}
	var audited []string
	w.read(roles.StreamAudit, func(m jetstream.Msg) {
		e := new(amendsv1.AuditEvent)
		if m.Subject() != "audit.console."+allinone.Tenant || proto.Unmarshal(m.Data(), e) != nil {
			return
		}
		audited = append(audited, e.GetActor()+" "+e.GetAction()+" "+e.GetOutcome()+" "+e.GetReason())
	})
	if want := "sam stop asked odd refunds\nsam stop done odd refunds\nsam resume asked looked into\nsam resume done looked into"; strings.Join(audited, "\n") != want {
		t.Errorf("audited:\n%s", strings.Join(audited, "\n"))
	}
	w.sound(1, amendsv1.CaseState_CASE_STATE_VERIFIED_CLOSED)
	w.noDeadLetters()
}

// Another tenant's stop changes nothing (TENANT-1); everybody's stops, and goes
// on only for those whom nothing else stops.
func TestStopIsForItsScope(t *testing.T) {
	t.Parallel()
	w := start(t, allinone.Options{NoSync: true, Guests: []allinone.Guest{{Tenant: "beta", Channel: "shop"}}})
	w.orders(2, true)
	w.stop("beta")
	for i := range 2 {
		if err := w.post(i); err != nil {
			t.Fatal(err)
		}
	}
	if v, err := w.finish(0, closed); err != nil || v.State != "VERIFIED_CLOSED" {
		t.Fatalf("ended %s, %v", v.State, err)
	}
	all, own := w.stop(deskapi.ScopeAll), w.stop(allinone.Tenant)
	waiting := w.until(caseID(1), 0, in("AWAITING_APPROVAL"))
	if err := w.approve(caseID(1), waiting.Version); err != nil {
		t.Fatal(err)
	}
	rec := w.look(1, "held", held)
	w.resume(deskapi.ScopeAll, all.Sequence)
	if seen, err := w.staff.Stops(w.ctx); err != nil || len(seen.Stops) != 3 || seen.Stops[0].Stopped || !seen.Stops[1].Stopped || !seen.Stops[2].Stopped {
		t.Errorf("the switches are %+v, %v", seen, err)
	}
	if now := w.record(1, 0); now.GetVersion() != rec.GetVersion() || len(w.refunds()) != 1 {
		t.Errorf("v%d with %d refunds while its own tenant is stopped", now.GetVersion(), len(w.refunds()))
	}
	w.resume(allinone.Tenant, own.Sequence)
	if v := w.closes(1); v.State != "VERIFIED_CLOSED" || len(w.refunds()) != 2 {
		t.Errorf("ended %s with %v", v.State, w.refunds())
	}
	w.sound(2, amendsv1.CaseState_CASE_STATE_VERIFIED_CLOSED)
	w.noDeadLetters()
}

// With a hundred cases under way: once the stop's answer is there, no refund is
// made that was begun later, and none at all after a second. Every case keeps
// its place, and all close after the release (MONEY-1, LIVE-1, LOSS-1).
func TestStopWithAHundredCasesUnderWay(t *testing.T) {
	t.Parallel()
	const cases, enough = 100, 30
	w := start(t, allinone.Options{NoSync: true})
	w.orders(cases, true)
	waiting := make([]deskapi.View, cases)
	w.each(cases, 8, func(i int) error {
		if err := w.post(i); err != nil {
			return err
		}
		return w.gateway.Follow(w.ctx, caseID(i), "", 0, func(v deskapi.View) error {
			if waiting[i] = v; v.State != "AWAITING_APPROVAL" {
				return nil
			}
			return deskclient.ErrStop
		})
	})
	var approvals errgroup.Group
	approvals.SetLimit(8)
	var asked atomic.Int32
	enoughAsked := make(chan struct{})
	approving := make(chan error, 1)
	go func() {
		for i := range cases {
			approvals.Go(func() error {
				if asked.Add(1) == enough {
					close(enoughAsked)
				}
				return w.approve(caseID(i), waiting[i].Version)
			})
		}
		approving <- approvals.Wait()
	}()
	<-enoughAsked
	set := w.stop(allinone.Tenant)
	answered := time.Now()
	if err := <-approving; err != nil {
		t.Fatal(err)
	}
	var kept int
	for i := range cases {
		rec := w.look(i, "held or refunded", func(shown deskapi.Record, rec *amendsv1.CaseRecord) bool {
			return held(shown, rec) || rec.GetState() == amendsv1.CaseState_CASE_STATE_VERIFIED_CLOSED
		})
		if casework.Held(rec) {
			kept++
		}
	}
	refunds, intents := w.refunds(), w.begun()
	t.Logf("%d refunds, %d cases held", len(refunds), kept)
	if kept == 0 || len(refunds)+kept != cases {
		t.Errorf("%d refunds and %d held cases of %d", len(refunds), kept, cases)
	}
	for payment, r := range refunds {
		if begun := intents[r.Reference].GetBegunAt().AsTime(); begun.After(answered) {
			t.Errorf("%s was refunded though it was begun %s after the stop", payment, begun.Sub(answered))
		}
		if r.CreatedAt.After(answered.Add(time.Second)) {
			t.Errorf("%s was refunded %s after the stop", payment, r.CreatedAt.Sub(answered))
		}
	}
	w.resume(allinone.Tenant, set.Sequence)
	w.each(cases, 16, func(i int) error {
		_, err := w.finish(i, closed)
		return err
	})
	if n := len(w.refunds()); n != cases {
		t.Errorf("%d refunds of %d cases", n, cases)
	}
	w.sound(cases, amendsv1.CaseState_CASE_STATE_VERIFIED_CLOSED)
	w.noDeadLetters()
}

// A stop that is set while refunds are in doubt: what the provider has made is
// found and told all the same, what it has not is not sent again before the
// release, and then once (MONEY-1, TRUTH-2, LIVE-1).
func TestStopWhileARefundIsInDoubt(t *testing.T) {
	t.Parallel()
	w := start(t, allinone.Options{NoSync: true})
	w.orders(2, true)
	w.faults(
		sandbox.Fault{Kind: sandbox.AnswerLost, Payment: "pay_" + orderID(0) + "_b", Times: 1},
		sandbox.Fault{Kind: sandbox.ErrorBefore, Payment: "pay_" + orderID(1) + "_b", Times: 1},
	)
	w.each(2, 2, func(i int) error {
		if err := w.post(i); err != nil {
			return err
		}
		_, err := w.finish(i, in("REFUND_REQUESTED"))
		return err
	})
	for i := range 2 {
		w.look(i, "in doubt", func(_ deskapi.Record, rec *amendsv1.CaseRecord) bool { return rec.GetOutcomeUnknown() })
	}
	set := w.stop(allinone.Tenant)
	if v := w.closes(0); v.State != "VERIFIED_CLOSED" {
		t.Errorf("the refund that was made: ended %s", v.State)
	}
	w.look(1, "held", held)
	if got := w.refunds(); len(got) != 1 || got["pay_"+orderID(0)+"_b"].RefundID == "" {
		t.Errorf("refunds while stopped: %v", got)
	}
	w.resume(allinone.Tenant, set.Sequence)
	if v := w.closes(1); v.State != "VERIFIED_CLOSED" || len(w.refunds()) != 2 {
		t.Errorf("the refund that was not made: ended %s with %v", v.State, w.refunds())
	}
	w.sound(2, amendsv1.CaseState_CASE_STATE_VERIFIED_CLOSED)
	w.noDeadLetters()
}
