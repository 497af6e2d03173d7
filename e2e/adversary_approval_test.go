package e2e_test

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/amends-dev/amends/internal/allinone"
	"github.com/amends-dev/amends/internal/approval"
	"github.com/amends-dev/amends/internal/money"
	"github.com/amends-dev/amends/internal/sandbox"
	amendsv1 "github.com/amends-dev/amends/proto/amends/v1"
)

// twice gives an action on an order of its own that was paid twice.
func (s *siege) twice(minor int64) *amendsv1.ActionRecord {
	order := s.fresh()
	s.paid(order, minor, 2)
	return s.wants(order, minor)
}

// with sends a duplicate of 2,000.00 with what sign makes of it.
func with(sign func(*siege, *amendsv1.ActionRecord) []*amendsv1.SignedDecision) func(*siege) string {
	return func(s *siege) string {
		a := s.twice(200000)
		return s.order(a, sign(s, a)...)
	}
}

// by signs with one key.
func by(key string, edit ...func(*amendsv1.SignedDecision)) func(*siege) string {
	return with(func(s *siege, a *amendsv1.ActionRecord) []*amendsv1.SignedDecision {
		return []*amendsv1.SignedDecision{s.decision(key, a, 1, edit...)}
	})
}

// of approves one action, changes it, and sends what it has become.
func of(minor int64, change func(*siege, *amendsv1.ActionRecord)) func(*siege) string {
	return func(s *siege) string {
		a := s.twice(minor)
		a.Refunds[0].Amount.Minor = 200000
		d := s.decision("maya-1", a, 1)
		change(s, a)
		return s.order(rekey(a), d)
	}
}

// approvalAttempts: an approval is of exactly one action.
func approvalAttempts() []attempt {
	return []attempt{
		{asBoth, "control: the same helper, properly approved", by("maya-1"), "acknowledged"},
		{asOrchestrator, "control: below the caps, unapproved", func(s *siege) string { return s.order(s.twice(60000)) }, "acknowledged"},
		{asOrchestrator, "no approval at the threshold (B26)", func(s *siege) string { return s.order(s.twice(100000)) }, "approval_missing"},
		{asOrchestrator, "no approval at 2,000.00 (B26)", func(s *siege) string { return s.order(s.twice(200000)) }, "approval_missing"},
		{asOrchestrator, "approved for 2,000.00, sent as 20,000.00 (B25)", of(2000000, func(_ *siege, a *amendsv1.ActionRecord) { a.Refunds[0].Amount.Minor = 2000000 }), "action_mismatch"},
		{asOrchestrator, "approved for 2,000.00, sent as 2,000.01", of(2000000, func(_ *siege, a *amendsv1.ActionRecord) { a.Refunds[0].Amount.Minor++ }), "action_mismatch"},
		{asOrchestrator, "approved, then a refund added", of(200000, func(_ *siege, a *amendsv1.ActionRecord) {
			r := proto.CloneOf(a.GetRefunds()[0])
			r.PaymentId = strings.TrimSuffix(r.GetPaymentId(), "b") + "c"
			a.Refunds = append(a.Refunds, r)
		}), "action_mismatch"},
		{asOrchestrator, "approved for another payment", of(200000, func(_ *siege, a *amendsv1.ActionRecord) {
			a.Refunds[0].PaymentId = strings.TrimSuffix(a.GetRefunds()[0].GetPaymentId(), "b") + "a"
		}), "action_mismatch"},
		{asOrchestrator, "approved for another order", of(200000, func(s *siege, a *amendsv1.ActionRecord) {
			b := s.twice(200000)
			a.OrderId, a.Refunds = b.GetOrderId(), b.GetRefunds()
		}), "action_mismatch"},
		{asOrchestrator, "approved for another case", of(200000, func(_ *siege, a *amendsv1.ActionRecord) { a.CaseId += "-2" }), "action_mismatch"},
		{asOrchestrator, "approved as a duplicate, sent as goodwill", of(200000, func(_ *siege, a *amendsv1.ActionRecord) { a.Refunds[0].Kind = approval.KindGoodwill }), "action_mismatch"},
		{asOrchestrator, "approved on other evidence", of(200000, func(_ *siege, a *amendsv1.ActionRecord) { a.EvidenceSha256 = strings.Repeat("cd", 32) }), "action_mismatch"},
		{asOrchestrator, "approved at an earlier version", of(200000, func(_ *siege, a *amendsv1.ActionRecord) { a.CaseVersion++ }), "action_mismatch"},
		{asOrchestrator, "approved as an earlier proposal", of(200000, func(_ *siege, a *amendsv1.ActionRecord) { a.Proposal++ }), "action_mismatch"},
		{asOrchestrator, "approved until 10:44, sent as until 11:44", of(200000, func(_ *siege, a *amendsv1.ActionRecord) {
			a.Expires = timestamppb.New(a.GetExpires().AsTime().Add(time.Hour))
		}), "action_mismatch"},
		{asOrchestrator, "approved, dated otherwise", of(200000, func(_ *siege, a *amendsv1.ActionRecord) {
			a.Created = timestamppb.New(a.GetCreated().AsTime().Add(-1))
		}), "action_mismatch"},
		{asOrchestrator, "another tenant's order, approved for ours", of(200000, func(s *siege, a *amendsv1.ActionRecord) {
			s.foreign(a.GetOrderId()+"x", 200000)
			a.Tenant, a.OrderId = otherTenant, a.GetOrderId()+"x"
		}), "action_mismatch"},
		{asOrchestrator, "expired a moment ago", func(s *siege) string {
			a := s.twice(200000)
			now := s.clock.Now()
			a.Created, a.Expires = timestamppb.New(now.Add(-30*time.Minute)), timestamppb.New(now)
			return s.order(a, s.decision("maya-1", a, 1))
		}, "approval_expired"},
		{asOrchestrator, "expired, the decision says otherwise", func(s *siege) string {
			a := s.twice(200000)
			now := s.clock.Now()
			a.Created, a.Expires = timestamppb.New(now.Add(-30*time.Minute)), timestamppb.New(now)
			return s.order(a, s.decision("maya-1", a, 1, func(d *amendsv1.SignedDecision) { d.Expires = timestamppb.New(now.Add(time.Hour)) }))
		}, "action_mismatch"},
		{asOrchestrator, "signed over the text of an older version", func(s *siege) string {
			a := s.twice(200000)
			text, err := approval.ActionText(a)
			if err != nil {
				s.t.Fatal(err)
			}
			sum := sha256.Sum256([]byte(strings.Replace(strings.Replace(text, "amends-action/1", "amends-action/0", 1), "proposal=1\n", "", 1)))
			return s.order(a, s.decision("maya-1", a, 1, func(d *amendsv1.SignedDecision) { d.ActionSha256 = hex.EncodeToString(sum[:]) }))
		}, "action_mismatch"},
	}
}

// foreign loads an order of the other tenant, paid twice.
func (s *siege) foreign(order string, minor int64) {
	s.t.Helper()
	s.paid(order, minor, 2, func(l *sandbox.Ledger) {
		l.Orders[0].Tenant = otherTenant
		for i := range l.Captures {
			l.Captures[i].Tenant = otherTenant
		}
	})
}

// peopleAttempts: an approval is a listed person's own, with a valid key, by
// somebody who may.
func peopleAttempts() []attempt {
	forged := func(who, id string) func(*siege) string {
		return with(func(s *siege, a *amendsv1.ActionRecord) []*amendsv1.SignedDecision {
			k, err := approval.NewKey(who, id, rand.Reader)
			if err != nil {
				s.t.Fatal(err)
			}
			s.keys["forged"] = k
			return []*amendsv1.SignedDecision{s.decision("forged", a, 1)}
		})
	}
	deny := func(d *amendsv1.SignedDecision) { d.Verdict = amendsv1.Verdict_VERDICT_DENY }
	after := func(change func(*amendsv1.SignedDecision), edit ...func(*amendsv1.SignedDecision)) func(*siege) string {
		return with(func(s *siege, a *amendsv1.ActionRecord) []*amendsv1.SignedDecision {
			d := s.decision("maya-1", a, 1, edit...)
			s.judge = s.judge.without(a) // nobody signed what it becomes
			change(d)
			return []*amendsv1.SignedDecision{d}
		})
	}
	two := func(keys ...string) func(*siege) string {
		return func(s *siege) string {
			a := s.twice(5000000)
			var ds []*amendsv1.SignedDecision
			for i, k := range keys {
				ds = append(ds, s.decision(k, a, i+1))
			}
			return s.order(a, ds...)
		}
	}
	proposed := func(who string, minor int64, keys ...string) func(*siege) string {
		return func(s *siege) string {
			a := s.twice(minor)
			a.ProposedBy = who
			var ds []*amendsv1.SignedDecision
			for i, k := range keys {
				ds = append(ds, s.decision(k, a, i+1))
			}
			return s.order(a, ds...)
		}
	}
	return []attempt{
		{asBoth, "signed with a key of his own in maya's name", forged(allinone.Approver, "maya-1"), "signature_invalid"},
		{asBoth, "signed by nobody known", forged("eve", "eve-1"), "approver_unknown"},
		{asBoth, "signed with a key maya never had", forged(allinone.Approver, "maya-9"), "key_unknown"},
		{asBoth, "signed with ravi's key id in maya's name", forged(allinone.Approver, "ravi-1"), "key_unknown"},
		{asBoth, "signed with a key rotated out", by("maya-rotated"), "key_retired"},
		{asBoth, "signed with a revoked key", by("maya-revoked"), "key_retired"},
		{asBoth, "signed with a key not yet valid", by("maya-next"), "key_retired"},
		{asBoth, "a custodian's signature", by("sam-1"), "role_missing"},
		{asBoth, "an approver of another tenant", by("nora-1"), "tenant_not_allowed"},
		{asBoth, "above the approver's limit", by("lena-1"), "limit_exceeded"},
		{asBoth, "a denial", by("maya-1", deny), "approval_is_denial"},
		{asBoth, "a denial turned into an approval", after(func(d *amendsv1.SignedDecision) { d.Verdict = amendsv1.Verdict_VERDICT_APPROVE }, deny), "signature_invalid"},
		{asBoth, "one bit of the signature", after(func(d *amendsv1.SignedDecision) { d.Signature[0] ^= 1 }), "signature_invalid"},
		{asBoth, "the signature cut off", after(func(d *amendsv1.SignedDecision) { d.Signature = d.GetSignature()[:63] }), "schema_invalid"},
		{asBoth, "no signature", after(func(d *amendsv1.SignedDecision) { d.Signature = nil }), "schema_invalid"},
		{asBoth, "all of it zero bytes", after(func(d *amendsv1.SignedDecision) { d.Signature = make([]byte, 64) }), "signature_invalid"},
		{asBoth, "signed again under another id", after(func(d *amendsv1.SignedDecision) { d.ApprovalId += "0" }), "signature_invalid"},
		{asBoth, "a look-alike letter in the approver's name", after(func(d *amendsv1.SignedDecision) { d.ApproverId = "m\u0430ya" }), "approval_malformed"},
		{asBoth, "a line end in the approver's name", after(func(d *amendsv1.SignedDecision) { d.ApproverId = "maya\nkey=maya-1" }), "approval_malformed"},
		{asBoth, "control: two people at the second threshold", two("maya-1", "ravi-1"), "acknowledged"},
		{asBoth, "one person at the second threshold", two("maya-1"), "approvers_missing"},
		{asBoth, "one person twice at the second threshold", two("maya-1", "maya-1"), "approvers_missing"},
		{asBoth, "one person with two keys, one rotated out", two("maya-1", "maya-rotated"), "key_retired"},
		{asBoth, "one person and a custodian", two("maya-1", "sam-1"), "role_missing"},
		{asBoth, "one decision twice", func(s *siege) string {
			a := s.twice(5000000)
			d := s.decision("maya-1", a, 1)
			return s.order(a, d, d)
		}, "approval_malformed"},
		{asBoth, "an approval and a forged one", func(s *siege) string {
			a := s.twice(5000000)
			d := s.decision("maya-1", a, 1)
			second := proto.CloneOf(d)
			second.ApproverId, second.KeyId, second.ApprovalId = allinone.SecondApprover, "ravi-1", approval.ID(a.GetCaseId(), 2)
			return s.order(a, d, second)
		}, "signature_invalid"},
		{asBoth, "own proposal approved", proposed("dara", 200000, "dara-1"), "own_proposal"},
		{asBoth, "own proposal and one more at the second threshold", proposed("dara", 5000000, "dara-1", "maya-1"), "own_proposal"},
		{asBoth, "proposed by a person, small, unapproved", proposed("sam", 50000), "approval_missing"},
		{asBoth, "the proposer's name taken out after it was signed", func(s *siege) string {
			a := s.twice(200000)
			a.ProposedBy = "dara"
			d := s.decision("maya-1", a, 1)
			a.ProposedBy = ""
			return s.order(a, d)
		}, "action_mismatch"},
		{asBoth, "a proposer put in after it was signed", of(200000, func(_ *siege, a *amendsv1.ActionRecord) { a.ProposedBy = "sam" }), "action_mismatch"},
		{asBoth, "control: proposed by one, approved by another", proposed("dara", 200000, "maya-1"), "acknowledged"},
		{asBoth, "approved in yen, sent in rupees", func(s *siege) string {
			a := s.twice(200000)
			a.Refunds[0].Amount = money.New(200000, "JPY")
			d := s.decision("maya-1", a, 1)
			a.Refunds[0].Amount = money.New(200000, "INR")
			return s.order(a, d)
		}, "action_mismatch"},
	}
}
