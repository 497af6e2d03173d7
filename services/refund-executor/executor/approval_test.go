package executor_test

import (
	"testing"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/amends-dev/amends/internal/approval"
	"github.com/amends-dev/amends/internal/money"
	"github.com/amends-dev/amends/internal/roles"
	"github.com/amends-dev/amends/internal/sandbox"
	amendsv1 "github.com/amends-dev/amends/proto/amends/v1"
	"github.com/amends-dev/amends/services/refund-executor/ledger"
)

// Bugs B25, B26, B27 and B30: an approval is of exactly one action, by a person
// who may, in time, spent once; and without it nothing at or above the
// threshold moves. Nothing refused reaches the provider, and each refusal is
// on the record.
func TestWithoutExactlyItsApprovalNothingMovesMONEY2B25B26B27B30(t *testing.T) {
	t.Parallel()
	d := open(t)
	d.run()
	small := func(l *sandbox.Ledger) { l.Captures = l.Captures[:2] }
	for name, c := range map[string]struct {
		order string
		minor int64
		task  func(a *amendsv1.ActionRecord) *amendsv1.TaskAssign
		want  string
	}{
		"no approval":      {"o1", 200000, func(a *amendsv1.ActionRecord) *amendsv1.TaskAssign { return execute(a) }, ledger.ReasonApprovalMissing},
		"at the threshold": {"o2", 100000, func(a *amendsv1.ActionRecord) *amendsv1.TaskAssign { return execute(a) }, ledger.ReasonApprovalMissing},
		"approved for less, then changed": {"o3", 200000, func(a *amendsv1.ActionRecord) *amendsv1.TaskAssign {
			less := proto.CloneOf(a)
			less.Refunds[0].Amount.Minor = 20000
			return execute(a, d.sign(d.maya, less, 1))
		}, approval.ReasonOtherAction},
		"approved for another payment": {"o4", 200000, func(a *amendsv1.ActionRecord) *amendsv1.TaskAssign {
			return execute(a, d.sign(d.maya, action("o4", refund{"pay_o4_a", 200000}), 1))
		}, approval.ReasonOtherAction},
		"approved for an earlier proposal": {"o5", 200000, func(a *amendsv1.ActionRecord) *amendsv1.TaskAssign {
			s := d.sign(d.maya, a, 1)
			a.Proposal = 2
			return execute(a, s)
		}, approval.ReasonOtherAction},
		"expired a moment ago": {"o6", 200000, func(a *amendsv1.ActionRecord) *amendsv1.TaskAssign {
			a.Created, a.Expires = timestamppb.New(time.Now().Add(-30*time.Minute)), timestamppb.Now()
			return execute(a, d.sign(d.maya, a, 1))
		}, approval.ReasonExpired},
		"signed long ago, for an action that lasts a year": {"o18", 200000, func(a *amendsv1.ActionRecord) *amendsv1.TaskAssign {
			a.Created, a.Expires = timestamppb.New(time.Now().Add(-2*time.Hour)), timestamppb.New(time.Now().Add(365*24*time.Hour))
			return execute(a, d.sign(d.maya, a, 1))
		}, ledger.ReasonApprovalStale},
		"signed as of tomorrow": {"o19", 200000, func(a *amendsv1.ActionRecord) *amendsv1.TaskAssign {
			a.Expires = timestamppb.New(time.Now().Add(365 * 24 * time.Hour))
			return execute(a, d.sign(d.maya, a, 1, func(s *amendsv1.SignedDecision) { s.SignedAt = timestamppb.New(time.Now().Add(24 * time.Hour)) }))
		}, ledger.ReasonApprovalStale},
		"below the threshold, expired": {"o7", 50000, func(a *amendsv1.ActionRecord) *amendsv1.TaskAssign {
			a.Created, a.Expires = timestamppb.New(time.Now().Add(-30*time.Minute)), timestamppb.Now()
			return execute(a)
		}, ledger.ReasonActionExpired},
		"a denial": {"o8", 200000, func(a *amendsv1.ActionRecord) *amendsv1.TaskAssign {
			return execute(a, d.sign(d.maya, a, 1, func(s *amendsv1.SignedDecision) { s.Verdict = amendsv1.Verdict_VERDICT_DENY }))
		}, approval.ReasonDenied},
		"signed by nobody known": {"o9", 200000, func(a *amendsv1.ActionRecord) *amendsv1.TaskAssign {
			return execute(a, d.sign(person(t, "eve"), a, 1))
		}, approval.ReasonUnknownApprover},
		"signed with another's name": {"o10", 200000, func(a *amendsv1.ActionRecord) *amendsv1.TaskAssign {
			return execute(a, d.sign(person(t, "maya"), a, 1))
		}, approval.ReasonSignature},
		"one of two needed": {"o11", 5000000, func(a *amendsv1.ActionRecord) *amendsv1.TaskAssign {
			return execute(a, d.sign(d.maya, a, 1))
		}, approval.ReasonTooFew},
		"approved by whoever proposed it": {"p1", 200000, func(a *amendsv1.ActionRecord) *amendsv1.TaskAssign {
			a.ProposedBy = "maya"
			return execute(a, d.sign(d.maya, a, 1))
		}, approval.ReasonOwnProposal},
		"proposed by a person, below the threshold": {"p2", 50000, func(a *amendsv1.ActionRecord) *amendsv1.TaskAssign {
			a.ProposedBy = "sam"
			return execute(a)
		}, ledger.ReasonApprovalMissing},
		"the proposer's name taken away": {"p3", 200000, func(a *amendsv1.ActionRecord) *amendsv1.TaskAssign {
			a.ProposedBy = "maya"
			s := d.sign(d.maya, a, 1)
			a.ProposedBy = ""
			return execute(a, s)
		}, approval.ReasonOtherAction},
		"one person twice": {"o12", 5000000, func(a *amendsv1.ActionRecord) *amendsv1.TaskAssign {
			return execute(a, d.sign(d.maya, a, 1), d.sign(d.maya, a, 2))
		}, approval.ReasonTooFew},
	} {
		d.order(c.order, c.minor, 2, small)
		d.expect(name, d.ask(c.task(duplicate(c.order, c.minor))), refused, c.want)
		d.noRefund(c.order)
	}
	if n := d.stored(roles.StreamAudit); n != 17 {
		t.Errorf("%d refusals on the record, want 17", n)
	}
	if n := d.stored(roles.StreamEffects); n != 0 {
		t.Errorf("%d effect entries written for refusals", n)
	}
}

// Bug B30: 29 minutes after the proposal, and after a restart, an approval
// still counts. Two people carry what one may not.
func TestAnApprovalOutlivesARestartB30(t *testing.T) {
	t.Parallel()
	d := open(t)
	d.order("8472", 5000000, 2)
	a := duplicate("8472", 5000000)
	a.Created, a.Expires = timestamppb.New(time.Now().Add(-29*time.Minute)), timestamppb.New(time.Now().Add(time.Minute))
	n := d.send(execute(a, d.sign(d.maya, a, 1), d.sign(d.ravi, a, 2)))
	d.run()
	res, _ := d.answer(n).(*amendsv1.EffectResult)
	d.expect("two approvers", res, acknowledged, "")
	if ids := d.entry("8472").GetIntents()[0].GetApprovalIds(); len(ids) != 2 {
		t.Errorf("spent %v", ids)
	}
}

// Bug B27: an approval id is spent by the intent that records it; it carries no
// second action, even signed again.
func TestAnApprovalIsSpentOnceB27(t *testing.T) {
	t.Parallel()
	d := open(t)
	d.order("8472", 200000, 3)
	d.run()
	b := duplicate("8472", 200000)
	d.expect("first", d.ask(execute(b, d.sign(d.maya, b, 1))), acknowledged, "")
	c := action("8472", refund{"pay_8472_c", 200000})
	d.expect("the old signature", d.ask(execute(c, d.sign(d.maya, b, 1))), refused, approval.ReasonOtherAction)
	d.expect("the old id", d.ask(execute(c, d.sign(d.maya, c, 1))), refused, ledger.ReasonApprovalSpent)
	d.onlyRefund("8472", 200000)
	d.expect("a new one", d.ask(execute(c, d.sign(d.maya, c, 2))), acknowledged, "")
	if n, sum := d.refunds("8472"); n != 2 || sum != 400000 {
		t.Errorf("%d refunds of %d", n, sum)
	}
}

// A currency without limits always needs a person; slices do not slip under
// the threshold of one that has them.
func TestTheThresholdIsTheOrdersOwn(t *testing.T) {
	t.Parallel()
	d := open(t)
	d.run()
	yen := func(l *sandbox.Ledger) {
		l.Orders[0].Currency, l.Captures[0].Currency, l.Captures[1].Currency = "JPY", "JPY", "JPY"
	}
	d.order("yen", 500, 2, yen)
	a := duplicate("yen", 500)
	a.Refunds[0].Amount = money.New(500, "JPY")
	d.expect("yen without a person", d.ask(execute(a)), refused, ledger.ReasonApprovalMissing)
	d.expect("yen with one", d.ask(execute(a, d.sign(d.maya, a, 1))), acknowledged, "")

	d.order("slices", 60000, 3)
	first, second := duplicate("slices", 60000), ofCase(action("slices", refund{"pay_slices_c", 60000}), "req-slices-2")
	d.expect("first slice", d.ask(execute(first)), acknowledged, "")
	d.expect("second slice", d.ask(execute(second)), refused, ledger.ReasonApprovalMissing)
	d.onlyRefund("slices", 60000)
	d.expect("second slice with a person", d.ask(execute(second, d.sign(d.maya, second, 1))), acknowledged, "")
}
