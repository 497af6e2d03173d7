package e2e_test

import (
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/amends-dev/amends/internal/approval"
	"github.com/amends-dev/amends/internal/roles"
	"github.com/amends-dev/amends/internal/subject"
	amendsv1 "github.com/amends-dev/amends/proto/amends/v1"
)

// spent makes an approved refund of 2,000.00 on an order paid three times and
// then lets the attacker go on with what he has seen.
func spent(then func(s *siege, a *amendsv1.ActionRecord, d *amendsv1.SignedDecision) string) func(*siege) string {
	return func(s *siege) string {
		order := s.fresh()
		s.paid(order, 200000, 3)
		a := s.wants(order, 200000)
		d := s.decision("maya-1", a, 1)
		if got := s.order(a, d); got != "acknowledged" {
			return "the first: " + got
		}
		return then(s, a, d)
	}
}

// replayAttempts: what was seen once is worth nothing a second time.
func replayAttempts() []attempt {
	third := func(a *amendsv1.ActionRecord) *amendsv1.ActionRecord {
		c := proto.CloneOf(a)
		c.Refunds[0].PaymentId = "pay_" + a.GetOrderId() + "_c"
		return rekey(c)
	}
	return []attempt{
		{asOrchestrator, "the same task again: the same answer, no second refund", spent(func(s *siege, a *amendsv1.ActionRecord, d *amendsv1.SignedDecision) string {
			return s.order(a, d)
		}), "acknowledged"},
		{asOrchestrator, "the old bytes, thirty times at once (B10)", spent(func(s *siege, a *amendsv1.ActionRecord, d *amendsv1.SignedDecision) string {
			return s.flood(30, func(int) (*amendsv1.ActionRecord, []*amendsv1.SignedDecision) {
				return a, []*amendsv1.SignedDecision{d}
			})
		}), "30 acknowledged"},
		{asOrchestrator, "a spent approval for another payment (B27)", spent(func(s *siege, a *amendsv1.ActionRecord, d *amendsv1.SignedDecision) string {
			return s.order(third(a), d)
		}), "action_mismatch"},
		{asOrchestrator, "a spent approval for the same once more (B27)", spent(func(s *siege, a *amendsv1.ActionRecord, d *amendsv1.SignedDecision) string {
			again := proto.CloneOf(a)
			again.CaseId += "-2"
			return s.order(rekey(again), d)
		}), "action_mismatch"},
		{asOrchestrator, "a spent approval's id, signed once more (B27)", spent(func(s *siege, a *amendsv1.ActionRecord, _ *amendsv1.SignedDecision) string {
			c := third(a)
			return s.order(c, s.decision("maya-1", c, 1))
		}), "approval_spent"},
		{asOrchestrator, "a spent approval's id, signed once more for another sum", spent(func(s *siege, a *amendsv1.ActionRecord, _ *amendsv1.SignedDecision) string {
			c := third(a)
			c.Refunds[0].Amount.Minor = 120000
			return s.order(c, s.decision("maya-1", c, 1))
		}), "approval_spent"},
		{asOrchestrator, "the same payment as a new proposal, approved again", spent(func(s *siege, a *amendsv1.ActionRecord, _ *amendsv1.SignedDecision) string {
			again := proto.CloneOf(a)
			again.Proposal = 2
			return s.order(again, s.decision("maya-1", again, 2))
		}), "key_reused_with_other_parameters"},
		{asOrchestrator, "a used key with another amount, approved", spent(func(s *siege, a *amendsv1.ActionRecord, _ *amendsv1.SignedDecision) string {
			again := proto.CloneOf(a)
			again.Refunds[0].Amount.Minor = 100000
			return s.order(again, s.decision("maya-1", again, 2))
		}), "key_reused_with_other_parameters"},
		{asOrchestrator, "the same payment as another case, approved again", spent(func(s *siege, a *amendsv1.ActionRecord, _ *amendsv1.SignedDecision) string {
			again := proto.CloneOf(a)
			again.CaseId += "-2"
			return s.order(again, s.decision("maya-1", rekey(again), 1))
		}), "exceeds_captured"},
		{asOrchestrator, "control: the third payment, approved for itself", spent(func(s *siege, a *amendsv1.ActionRecord, _ *amendsv1.SignedDecision) string {
			c := third(a)
			return s.order(c, s.decision("maya-1", c, 2))
		}), "acknowledged"},
		{asOrchestrator, "the first payment too, approved: the order would not be paid", spent(func(s *siege, a *amendsv1.ActionRecord, _ *amendsv1.SignedDecision) string {
			c := third(a)
			if got := s.order(c, s.decision("maya-1", c, 2)); got != "acknowledged" {
				return "the third: " + got
			}
			first := s.wants(a.GetOrderId(), 200000, "a")
			return s.order(first, s.decision("maya-1", first, 3))
		}), "order_not_overpaid"},
		{asOrchestrator, "what was withdrawn, approved", func(s *siege) string {
			a := s.twice(200000)
			d := s.decision("maya-1", a, 1)
			if got := s.ask(s.taskOf(a, &amendsv1.TaskAssign{Input: &amendsv1.TaskAssign_Cancel{Cancel: &amendsv1.CancelOrder{Action: a, CancelRevision: 1}}})); got != "cancelled" {
				return "the withdrawal: " + got
			}
			return s.order(a, d)
		}, "cancelled"},
		{asOrchestrator, "what was withdrawn, as a new proposal, approved", func(s *siege) string {
			a := s.twice(200000)
			if got := s.ask(s.taskOf(a, &amendsv1.TaskAssign{Input: &amendsv1.TaskAssign_Cancel{Cancel: &amendsv1.CancelOrder{Action: a, CancelRevision: 1}}})); got != "cancelled" {
				return "the withdrawal: " + got
			}
			a.Proposal, a.Created = 2, timestamppb.New(s.clock.Now())
			return s.order(a, s.decision("maya-1", a, 2))
		}, "cancelled"},
		{asOrchestrator, "the tombstone overwritten", func(s *siege) string {
			a := s.twice(200000)
			empty := must(&amendsv1.EffectEntry{Tenant: a.GetTenant(), OrderId: a.GetOrderId(), Revision: 9})
			return s.steal(roles.Orchestrator).try(msg(subject.Effect(a.GetTenant(), a.GetOrderId()), empty))
		}, denied},
		{asOrchestrator, "an intent of one case, approvals of another", func(s *siege) string {
			a, b := s.twice(200000), s.twice(200000)
			return s.order(a, s.decision("maya-1", a, 1), s.decision("maya-1", b, 1, func(d *amendsv1.SignedDecision) { d.ApprovalId = approval.ID(a.GetCaseId(), 2) }))
		}, "action_mismatch"},
	}
}
