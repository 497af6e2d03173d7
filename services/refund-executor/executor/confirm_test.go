package executor

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/amends-dev/amends/internal/approval"
	"github.com/amends-dev/amends/internal/money"
	amendsv1 "github.com/amends-dev/amends/proto/amends/v1"
	"github.com/amends-dev/amends/services/refund-executor/ledger"
	"github.com/amends-dev/amends/services/refund-executor/provider"
	"github.com/amends-dev/amends/services/refund-executor/provider/providertest"
)

const (
	stPending   = amendsv1.RefundStatus_REFUND_STATUS_PENDING
	stSucceeded = amendsv1.RefundStatus_REFUND_STATUS_SUCCEEDED
	stFailed    = amendsv1.RefundStatus_REFUND_STATUS_FAILED
	stCanceled  = amendsv1.RefundStatus_REFUND_STATUS_CANCELED
	stAction    = amendsv1.RefundStatus_REFUND_STATUS_REQUIRES_ACTION
	stUnknown   = amendsv1.RefundStatus_REFUND_STATUS_UNKNOWN
)

// made gives the founding action, acknowledged as rf_5521.
func (s *solo) made() *amendsv1.ActionRecord {
	s.t.Helper()
	a := s.action(1)
	s.want("made", s.ask(s.execute(a)), acknowledged, "")
	return a
}

func news(kind, refund string) *amendsv1.ProviderEvent {
	return &amendsv1.ProviderEvent{OrderId: theirs, Kind: kind, ObjectId: refund}
}

// What a webhook says is a hint: only the executor's own reading moves a status
// (TRUTH-2, B15). Asked twice, nothing is written twice (B08), and never is
// anything called.
func TestConfirmReadsAgainAndBelievesNoHintB08B15TRUTH2(t *testing.T) {
	t.Parallel()
	s := alone(t, keeps)
	a := s.made()
	hint := news("refund.failed", "rf_5521")
	res := s.ask(confirms(a, hint))
	s.want("a false alarm", res, acknowledged, "")
	if o := res.GetRefunds()[0]; o.GetOutcome().GetProviderStatus() != stPending || o.GetReadBack().GetStatus() != stPending {
		t.Errorf("refund %v", o)
	}
	for i, c := range []struct{ at, read, recorded amendsv1.RefundStatus }{
		{stPending, stPending, stPending},
		{stAction, stAction, stAction},
		{stUnknown, stUnknown, stAction},
		{stSucceeded, stSucceeded, stSucceeded},
		{stPending, stPending, stSucceeded},
		{stAction, stAction, stSucceeded},
		{stUnknown, stUnknown, stSucceeded},
		{stFailed, stFailed, stFailed},
		{stCanceled, stCanceled, stCanceled},
		{stSucceeded, stSucceeded, stSucceeded},
	} {
		s.books.SetStatus("rf_5521", c.at)
		for range 2 {
			res := s.ask(confirms(a, hint, news("refund.updated", "rf_5521"), news("refund.created", "rf_nobodys"), news("capture.settled", "pay_8472_b")))
			s.want(fmt.Sprint("step ", i), res, acknowledged, "")
			if o := res.GetRefunds()[0]; o.GetOutcome().GetProviderStatus() != c.recorded || o.GetReadBack().GetStatus() != c.read {
				t.Errorf("step %d: %v", i, o)
			}
		}
	}
	h, err := s.store.History(firm, theirs)
	if err != nil {
		t.Fatal(err)
	}
	// intent, outcome, the first hint, then every status but the first, the
	// second hint with the first of them.
	if len(h) != 3+10 {
		t.Errorf("%d versions", len(h))
	}
	for i, e := range h {
		if e.GetRevision() != uint64(i+1) {
			t.Errorf("version %d has revision %d", i+1, e.GetRevision())
		}
		for _, sight := range e.GetSightings() {
			if sight.GetRefundId() != "rf_5521" {
				t.Errorf("a sighting of %s", sight.GetRefundId())
			}
		}
	}
	s.calls(1)
}

// A refund that failed later gives its room back, and takes it again if it
// comes back to life (MONEY-1, MONEY-4).
func TestARefundThatFailedLaterGivesItsRoomBack(t *testing.T) {
	t.Parallel()
	s := alone(t, keeps)
	a := s.made()
	sums := func() int64 {
		e, _, _, err := s.store.Entry(t.Context(), firm, theirs)
		if err != nil {
			t.Fatal(err)
		}
		return e.GetOrderSum().GetMinor()
	}
	for st, want := range map[amendsv1.RefundStatus]int64{stFailed: 0, stCanceled: 0, stSucceeded: 200000} {
		s.books.SetStatus("rf_5521", st)
		s.want("confirm", s.ask(confirms(a)), acknowledged, "")
		if sums() != want {
			t.Errorf("%v: sum %d", st, sums())
		}
	}
}

// One that failed at once was a refusal; come back to life it is a refund.
func TestARefusedRefundThatRevivesCounts(t *testing.T) {
	t.Parallel()
	s := alone(t, keeps)
	s.books.SetFirstStatus(stFailed)
	a := s.action(1)
	s.want("failed at once", s.ask(s.execute(a)), refused, ledger.ReasonProviderFailed)
	s.books.SetStatus("rf_5521", stSucceeded)
	s.want("revived", s.ask(confirms(a)), acknowledged, ledger.ReasonRevived)
	if in := s.intent(); in.GetOutcome().GetProviderStatus() != stSucceeded {
		t.Errorf("intent %v", in)
	}
}

// What the reading shows differently from what was asked for is a gap, and no
// status is taken from it.
func TestConfirmOfAnotherRefundIsAGap(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(r *amendsv1.Refund)
		reason string
	}{
		"another amount":    {func(r *amendsv1.Refund) { r.Amount = money.New(1, "INR") }, reasonReadBack},
		"another payment":   {func(r *amendsv1.Refund) { r.PaymentId = "pay_8472_a" }, reasonReadBack},
		"another reference": {func(r *amendsv1.Refund) { r.Reference = "" }, reasonReadBack},
		"gone":              {func(r *amendsv1.Refund) { r.RefundId = "rf_1" }, reasonNotShown},
	} {
		s := alone(t, keeps)
		a := s.made()
		o, err := s.books.ReadOrder(t.Context(), firm, theirs)
		if err != nil {
			t.Fatal(err)
		}
		c.change(o.Refunds[0])
		o.Refunds[0].Status = stSucceeded
		s.books.Load(firm, o)
		before := s.intent()
		s.want(name, s.ask(confirms(a)), evidenceGap, c.reason)
		if name != "another reference" && !proto.Equal(before, s.intent()) {
			t.Errorf("%s: recorded %v", name, s.intent())
		}
	}
}

// An answer that cannot be had is no answer; nothing begun is nothing to
// confirm; and a refund in doubt is found by the way.
func TestConfirmBesidesTheRule(t *testing.T) {
	t.Parallel()
	s := alone(t, keeps)
	s.want("nothing begun", s.ask(confirms(s.action(1))), undecidable, ledger.ReasonNothingBegun)
	task := s.doubt(providertest.LostAfter)
	s.books.SetOutage(func(string) error { return errors.New("down") })
	if res, err := s.try(confirms(task.GetExecute().GetAction())); !errors.Is(err, provider.ErrUnavailable) {
		t.Errorf("answered %v, %v", res, err)
	}
	s.books.SetOutage(nil)
	s.stop(true)
	s.want("in doubt", s.ask(confirms(task.GetExecute().GetAction())), acknowledged, "")
	s.calls(1)

	s = alone(t, keeps)
	task = s.doubt(providertest.LostBefore)
	s.want("in doubt, and not there yet", s.ask(confirms(task.GetExecute().GetAction())), unknown, "connection_lost")
	s.calls(0)
}

// A custodian's signed answer counts where it can be so: a refund that is named
// is the one, on this payment with this amount and nobody else's; one that is
// said not to exist is not there, and no call is under way.
func TestACustodiansAnswerSettlesADoubtMONEY3(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		refund  func(s *solo) string
		changes func(s *solo, d *amendsv1.CustodyDecision)
		early   bool
		want    amendsv1.EffectClass
		reason  string
	}{
		"made by hand":               {func(s *solo) string { return s.byHand("_b", "", 200000) }, nil, true, acknowledged, ""},
		"ours":                       {func(s *solo) string { return s.byHand("_b", ourKey, 200000) }, nil, true, acknowledged, ""},
		"by hand, and failed":        {func(s *solo) string { id := s.byHand("_b", "", 200000); s.books.SetStatus(id, stFailed); return id }, nil, true, refused, ledger.ReasonProviderFailed},
		"none":                       {nil, nil, false, refused, ledger.ReasonSettledAbsent},
		"none, an equal one by hand": {func(s *solo) string { s.byHand("_b", "", 200000); return "" }, nil, false, refused, ledger.ReasonSettledAbsent},
		"none, too early to say":     {nil, nil, true, undecidable, ledger.ReasonAbsenceOpen},
		"none, but it is there":      {func(s *solo) string { s.byHand("_b", ourKey, 200000); return "" }, nil, false, undecidable, ledger.ReasonSettleExists},
		"another, but ours is there": {func(s *solo) string { s.byHand("_b", ourKey, 150000); return s.byHand("_b", "", 50000) }, nil, false, undecidable, ledger.ReasonContradictory},
		"of another amount":          {func(s *solo) string { return s.byHand("_b", "", 199999) }, nil, false, undecidable, ledger.ReasonSettleDiffers},
		"of another payment":         {func(s *solo) string { return s.byHand("_a", "", 200000) }, nil, false, undecidable, ledger.ReasonSettleDiffers},
		"that does not exist":        {func(*solo) string { return "rf_99" }, nil, false, undecidable, ledger.ReasonSettleUnknown},
		"another key": {nil, func(_ *solo, d *amendsv1.CustodyDecision) {
			d.Settlements[0].IdempotencyKey = "refund:req-8472:pay_8472_a"
		}, false, undecidable, ledger.ReasonSettleOtherKey},
		"of another case": {nil, func(_ *solo, d *amendsv1.CustodyDecision) {
			d.CaseId, d.Settlements[0].IdempotencyKey = "req-1", "refund:req-1:pay_8472_b"
		}, false, undecidable, approval.ReasonOtherCase},
	} {
		s := alone(t, keeps)
		a := s.doubt(providertest.LostBefore).GetExecute().GetAction()
		if !c.early {
			s.provable()
		}
		id := ""
		if c.refund != nil {
			id = c.refund(s)
		}
		task := s.settles(a, id, func(d *amendsv1.CustodyDecision) {
			if c.changes != nil {
				c.changes(s, d)
			}
		})
		s.stop(true) // it moves no money, so no stop holds it
		for range 2 {
			res := s.ask(task)
			s.want(name, res, c.want, c.reason)
			o := s.intent().GetOutcome()
			switch c.want {
			case undecidable:
				if o.GetClass() != unknown || o.GetSettledBy() != "" {
					t.Errorf("%s: recorded %v", name, o)
				}
			default:
				if o.GetSettledBy() != "maya" || o.GetRefundId() != id || res.GetRefunds()[0].GetOutcome().GetSettledBy() != "maya" {
					t.Errorf("%s: recorded %v", name, o)
				}
			}
		}
		s.calls(0)
	}
}

// Nobody but a custodian of the tenant settles, with a key that is valid now:
// the orchestrator that hands the answer over cannot make one (AUTH-2).
func TestOnlyACustodianSettlesAUTH2(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(s *solo, task *amendsv1.TaskAssign)
		reason string
	}{
		"a changed answer": {func(_ *solo, task *amendsv1.TaskAssign) {
			task.GetSettle().GetDecision().Settlements[0].RefundId = "rf_1"
		}, approval.ReasonSignature},
		"not a custodian":    {func(s *solo, _ *amendsv1.TaskAssign) { s.registry.Approvers[0].Roles = []string{approval.RoleApprover} }, approval.ReasonRole},
		"of another tenant":  {func(s *solo, _ *amendsv1.TaskAssign) { s.registry.Approvers[0].Tenants = []string{"globex"} }, approval.ReasonTenant},
		"with a revoked key": {func(s *solo, _ *amendsv1.TaskAssign) { s.registry.Approvers[0].Keys[0].Revoked = true }, approval.ReasonKeyRetired},
		"unheard of":         {func(s *solo, _ *amendsv1.TaskAssign) { s.registry.Approvers = nil }, approval.ReasonUnknownApprover},
	} {
		s := alone(t, keeps)
		task := s.settles(s.doubt(providertest.LostBefore).GetExecute().GetAction(), s.byHand("_b", "", 200000))
		c.change(s, task)
		s.want(name, s.ask(task), undecidable, c.reason)
		if o := s.intent().GetOutcome(); o.GetClass() != unknown {
			t.Errorf("%s: recorded %v", name, o)
		}
	}
	s := alone(t, keeps)
	task := s.settles(s.doubt(providertest.LostBefore).GetExecute().GetAction(), "rf_1")
	down := errors.New("registry unreadable")
	s.approvers = func() (*approval.Registry, error) { return nil, down }
	if res, err := s.try(task); !errors.Is(err, down) {
		t.Errorf("answered %v, %v", res, err)
	}
}

// What a person settled is spent like what the provider answered: a refund by
// hand fills its room and counts once, and what does not exist may begin again.
func TestWhatWasSettledHoldsAfterwardsMONEY4(t *testing.T) {
	t.Parallel()
	s := alone(t, keeps)
	a := s.doubt(providertest.LostBefore).GetExecute().GetAction()
	s.want("by hand", s.ask(s.settles(a, s.byHand("_b", "", 200000))), acknowledged, "")
	s.want("executed again", s.ask(s.execute(a)), acknowledged, "")
	other := s.action(2)
	other.CaseId, other.Refunds[0].IdempotencyKey = "req-8472", "refund:req-8472:pay_8472_a"
	other.Refunds[0].PaymentId = "pay_8472_a"
	s.want("the other payment", s.ask(s.execute(other)), refused, ledger.ReasonNotOverpaid)
	s.calls(0)
	s.count(1)

	s = alone(t, keeps)
	a = s.doubt(providertest.LostBefore).GetExecute().GetAction()
	s.provable()
	s.want("none", s.ask(s.settles(a, "")), refused, ledger.ReasonSettledAbsent)
	s.clock = s.clock.Add(time.Hour)
	s.want("a new proposal", s.ask(s.execute(s.action(2))), acknowledged, "")
	s.calls(1)
	s.count(1)
	s.want("an answer of the past", s.ask(s.settles(a, "")), undecidable, ledger.ReasonKeyReused)
}
