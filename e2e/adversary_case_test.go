package e2e_test

import (
	"fmt"
	"sync"
	"testing"

	"github.com/nats-io/nats.go/jetstream"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/amends-dev/amends/internal/allinone"
	"github.com/amends-dev/amends/internal/approval"
	"github.com/amends-dev/amends/internal/ident"
	"github.com/amends-dev/amends/internal/roles"
	"github.com/amends-dev/amends/internal/subject"
	amendsv1 "github.com/amends-dev/amends/proto/amends/v1"
)

// waiting gives the action a case of the desk proposes and waits for.
func (s *siege) waiting(i int) (*amendsv1.ActionRecord, uint64) {
	s.t.Helper()
	v := s.until(caseID(i), 0, in("AWAITING_APPROVAL"))
	_, a, err := s.staff.Action(s.ctx, allinone.Tenant, caseID(i), v.Version)
	if err != nil {
		s.t.Fatal(err)
	}
	return a, v.Version
}

// relay hands a decision to a case on the console's credential, past the
// console itself, and gives what the case made of it.
func (s *siege) relay(d *amendsv1.SignedDecision, caseID string) string {
	s.t.Helper()
	env := &amendsv1.Envelope{
		MessageId: ident.Derive(s.clock.Now(), s.fresh()), CaseId: caseID, Tenant: allinone.Tenant, RequestId: caseID,
		Sender: asConsole, Recipient: asOrchestrator, Type: "approval.decision", SchemaVersion: "1.0", Payload: must(d),
	}
	s.steal(roles.Console).put(subject.Intake(asConsole, allinone.Tenant, caseID), must(env))
	j := s.judgement(s.ctx, caseID, env.GetMessageId(), 0)
	if j.Refused != "" {
		return j.Refused
	}
	return j.State
}

// caseAttempts: the desk's own cases, with the orchestrator at work. All
// three wait for approval; only case 0 is given one.
func caseAttempts() []attempt {
	forging := func(change func(s *siege, a *amendsv1.ActionRecord, d *amendsv1.SignedDecision)) func(*siege) string {
		return func(s *siege) string {
			a, _ := s.waiting(0)
			d := s.decision("maya-1", a, 1)
			s.judge = s.judge.without(a) // it is not handed in
			change(s, a, d)
			return s.relay(d, caseID(0))
		}
	}
	return []attempt{
		{asBoth, "control: three cases wait for people", func(s *siege) string {
			s.orders(3, true)
			for i := range 3 {
				if err := s.post(i); err != nil {
					return err.Error()
				}
				s.waiting(i)
			}
			return "waiting"
		}, "waiting"},
		{asConsole, "relays a decision whose verdict he turned", forging(func(s *siege, a *amendsv1.ActionRecord, d *amendsv1.SignedDecision) {
			deny := s.decision("maya-1", a, 1, func(d *amendsv1.SignedDecision) { d.Verdict = amendsv1.Verdict_VERDICT_DENY })
			d.Signature = deny.GetSignature()
		}), "signature_invalid"},
		{asConsole, "relays a decision in ravi's name", forging(func(_ *siege, _ *amendsv1.ActionRecord, d *amendsv1.SignedDecision) {
			d.ApproverId, d.KeyId = allinone.SecondApprover, "ravi-1"
		}), "signature_invalid"},
		{asConsole, "relays an approval of another case", forging(func(s *siege, _ *amendsv1.ActionRecord, d *amendsv1.SignedDecision) {
			other, _ := s.waiting(1)
			proto.Merge(d, s.decision("maya-1", other, 1))
			s.judge = s.judge.without(other)
		}), "action_mismatch"},
		{asConsole, "relays a custodian's approval", forging(func(s *siege, a *amendsv1.ActionRecord, d *amendsv1.SignedDecision) {
			proto.Merge(d, s.decision("sam-1", a, 1))
		}), "role_missing"},
		{asBoth, "the case forged as approved, 2,000.00 made 20,000.00 in the record (B25)", func(s *siege) string {
			return s.forgeRecord(2)
		}, "action_mismatch, by the case action_mismatch, 1 audited, 0 begun"},
		{asConsole, "control: approved twenty times at once (B21)", func(s *siege) string {
			a, _ := s.waiting(0)
			var wg sync.WaitGroup
			for i := range 20 {
				d := s.decision("maya-1", a, 1+i%3)
				wg.Go(func() { _, _ = s.staff.Decide(s.ctx, d) }) // most come too late
			}
			wg.Wait()
			return s.until(caseID(0), 0, closed).State
		}, "VERIFIED_CLOSED"},
		{asOrchestrator, "that case's task with a new id, after it was closed", func(s *siege) string {
			rec := s.record(0, 1)
			return s.order(rec.GetAction(), rec.GetApprovals()...)
		}, "acknowledged"},
	}
}

// forgeRecord takes an approval of what a case proposes, writes a record that
// wants ten times as much, sends the task that follows from it, and hands the
// approval in. Nothing of it may reach the provider.
func (s *siege) forgeRecord(i int) string {
	s.t.Helper()
	a, version := s.waiting(i)
	d := s.decision("maya-1", a, 1)
	forged := s.record(i, version)
	forged.Version++
	forged.Action.Refunds[0].Amount.Minor *= 10
	var err error
	if forged.ActionSha256, err = approval.ActionSHA256(forged.GetAction()); err != nil {
		s.t.Fatal(err)
	}
	s.steal(roles.Orchestrator).put(subject.Case(allinone.Tenant, caseID(i)), must(&amendsv1.CaseCommit{
		FirstVersion: forged.GetVersion(), Record: forged,
		Inputs: []*amendsv1.AppliedInput{{
			Envelope:   &amendsv1.Envelope{MessageId: ident.Derive(s.clock.Now(), s.fresh()), CaseId: caseID(i), Tenant: allinone.Tenant},
			BrokerTime: timestamppb.New(s.clock.Now()), Stream: roles.StreamIntake,
		}},
	}))
	answered := s.order(forged.GetAction(), d)
	judged := s.relay(d, caseID(i))
	audited, begun := 0, 0
	s.read(roles.StreamAudit, func(m jetstream.Msg) {
		e := &amendsv1.AuditEvent{}
		if proto.Unmarshal(m.Data(), e) == nil && e.GetSubject() == caseID(i) && e.GetOutcome() == answered {
			audited++
		}
	})
	s.read(roles.StreamEffects, func(m jetstream.Msg) {
		if m.Subject() == subject.Effect(allinone.Tenant, orderID(i)) {
			begun++
		}
	})
	return fmt.Sprintf("%s, by the case %s, %d audited, %d begun", answered, judged, audited, begun)
}

// B21: after a restart, in which every guard in memory is gone, the task of a
// closed case is sent once more and its approval handed in again: one refund.
func TestAnOldTaskAfterARestartB21(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	w := start(t, allinone.Options{Dir: dir, NoSync: true})
	w.orders(1, true)
	if err := w.post(0); err != nil {
		t.Fatal(err)
	}
	v, err := w.finish(0, closed)
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}

	s := newSiege()
	s.world = start(t, allinone.Options{Dir: dir, NoSync: true})
	s.listen()
	rec := s.record(0, v.Version)
	s.relay(rec.GetApprovals()[0], caseID(0))
	if got := s.order(rec.GetAction(), rec.GetApprovals()...); got != "acknowledged" {
		t.Errorf("the old task: %s", got)
	}
	if made := s.refunds(); len(made) != 1 {
		t.Errorf("MONEY-1: refunds %+v", made)
	}
}
