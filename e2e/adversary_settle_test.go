package e2e_test

import (
	"crypto/rand"

	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/amends-dev/amends/internal/allinone"
	"github.com/amends-dev/amends/internal/approval"
	"github.com/amends-dev/amends/internal/ident"
	amendsv1 "github.com/amends-dev/amends/proto/amends/v1"
)

// settlement is what the owner of a key says of an action's refunds: that there
// is none, unless edit names one.
func (s *siege) settlement(key approval.Key25519, a *amendsv1.ActionRecord, edit func(*amendsv1.CustodyDecision)) *amendsv1.CustodyDecision {
	s.t.Helper()
	d := &amendsv1.CustodyDecision{
		Tenant: a.GetTenant(), CaseId: a.GetCaseId(), Step: amendsv1.CustodyStep_CUSTODY_STEP_SETTLE, PacketSha256: a.GetEvidenceSha256(),
		SignedAt: timestamppb.New(s.clock.Now()), Reason: "looked into",
	}
	for _, r := range a.GetRefunds() {
		d.Settlements = append(d.Settlements, &amendsv1.Settlement{IdempotencyKey: r.GetIdempotencyKey()})
	}
	if edit != nil {
		edit(d)
	}
	if err := approval.SignCustody(key, d); err != nil {
		s.t.Fatal(err)
	}
	return d
}

// settling sends an executor's task to settle an action.
func (s *siege) settling(a *amendsv1.ActionRecord, d *amendsv1.CustodyDecision) string {
	s.t.Helper()
	return s.ask(s.taskOf(a, &amendsv1.TaskAssign{Input: &amendsv1.TaskAssign_Settle{Settle: &amendsv1.SettleOrder{Action: a, Decision: d}}}))
}

// settleAttempts: what is said to have become of a refund does not bring it
// back to be made once more.
func settleAttempts() []attempt {
	saying := func(by string, edit, after func(*amendsv1.CustodyDecision)) func(*siege) string {
		return spent(func(s *siege, a *amendsv1.ActionRecord, _ *amendsv1.SignedDecision) string {
			d := s.settlement(s.keys[by], a, edit)
			if after != nil {
				after(d)
			}
			return s.settling(a, d)
		})
	}
	return []attempt{
		{asBoth, "settles as none with a key of his own", spent(func(s *siege, a *amendsv1.ActionRecord, _ *amendsv1.SignedDecision) string {
			k, err := approval.NewKey(allinone.StaffMember, "sam-1", rand.Reader)
			if err != nil {
				s.t.Fatal(err)
			}
			return s.settling(a, s.settlement(k, a, nil))
		}), "signature_invalid"},
		{asBoth, "settles as none with an approver's word", saying("maya-1", nil, nil), "role_missing"},
		{asBoth, "settles with a custodian's word of another case", saying("sam-1", func(d *amendsv1.CustodyDecision) {
			d.CaseId += "-2"
			d.Settlements[0].IdempotencyKey = approval.Key(d.GetCaseId(), "pay_x")
		}, nil), "case_mismatch"},
		{asBoth, "settles with the refund put in after it was signed", saying("sam-1", nil, func(d *amendsv1.CustodyDecision) { d.Settlements[0].RefundId = "rf_1" }), "signature_invalid"},
		{asBoth, "settles with a custodian's decision to take the case", saying("sam-1", func(d *amendsv1.CustodyDecision) {
			d.Step, d.Settlements = amendsv1.CustodyStep_CUSTODY_STEP_TAKE, nil
		}, nil), "action_malformed"},
		{asBoth, "settles before anything was begun", func(s *siege) string {
			a := s.twice(200000)
			return s.settling(a, s.settlement(s.keys["sam-1"], a, nil))
		}, "settled_absent"},
		{asBoth, "a custodian says none of a refund that was made; the task once more", spent(func(s *siege, a *amendsv1.ActionRecord, d *amendsv1.SignedDecision) string {
			if got := s.settling(a, s.settlement(s.keys["sam-1"], a, nil)); got != "acknowledged" {
				return "settled: " + got
			}
			return s.order(a, d)
		}), "acknowledged"},
		{asBoth, "the provider is said to have failed it; the payment once more, approved", spent(func(s *siege, a *amendsv1.ActionRecord, _ *amendsv1.SignedDecision) string {
			event := &amendsv1.ProviderEvent{OrderId: a.GetOrderId(), Kind: "refund.failed", ObjectId: s.refunds()[a.GetRefunds()[0].GetPaymentId()].RefundID}
			confirm := &amendsv1.TaskAssign{Input: &amendsv1.TaskAssign_Confirm{Confirm: &amendsv1.ConfirmOrder{Action: a, Events: []*amendsv1.ProviderEvent{event}}}}
			if got := s.ask(s.taskOf(a, confirm)); got != "acknowledged" {
				return "confirmed: " + got
			}
			a.CaseId += "-" + ident.Suffix(a.GetCaseId())
			return s.order(rekey(a), s.decision("maya-1", a, 1))
		}), "exceeds_captured"},
	}
}
