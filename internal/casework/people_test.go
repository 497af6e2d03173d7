package casework_test

import (
	"slices"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/amends-dev/amends/internal/casework"
	amendsv1 "github.com/amends-dev/amends/proto/amends/v1"
)

// fail answers the open task of a slice with an error that no retry mends.
func (w *world) fail(slice amendsv1.Slice) {
	w.tb.Helper()
	w.apply(w.reply(w.mustTask(slice), &amendsv1.TaskError{Reason: "engine_failed"}))
}

func (w *world) is(state string) {
	w.tb.Helper()
	if got := casework.StateName(w.rec.GetState()); got != state {
		for _, t := range w.rec.GetTimeline() {
			w.tb.Logf("v%d %s %s: %s", t.GetVersion(), casework.StateName(t.GetState()), t.GetRow(), t.GetNote())
		}
		w.tb.Fatalf("case is %s, want %s", got, state)
	}
	w.replays()
}

func (w *world) cancel() {
	w.tb.Helper()
	w.apply(w.input("gateway", &amendsv1.CaseCancel{Channel: "web", PostedBy: "k"}, nil))
}

// doubtful brings a case to people while nobody knows whether money moved.
func doubtful(t *testing.T) *world {
	t.Helper()
	w := requested(t)
	for range 400 {
		if w.rec.GetState() == amendsv1.CaseState_CASE_STATE_HUMAN_HANDOFF {
			break
		}
		w.due()
	}
	w.is("HUMAN_HANDOFF")
	w.settle()
	return w
}

// LIVE-1: what an earlier plan left undone does not hold up the one that counts.
func TestAPlanAfterPeopleComesToItsMerge(t *testing.T) {
	t.Parallel()
	w := newWorld(t, ledger8472(true))
	w.post(supported())
	w.fail(amendsv1.Slice_SLICE_POLICY)
	w.settle()
	w.apply(w.custody(take, "sam", true))
	w.apply(w.custody(asks, "sam", true))
	w.settle()
	in := w.input("gateway", &amendsv1.CustomerMessage{Channel: "web", Message: &amendsv1.UntrustedText{Text: "where is my refund?", Origin: amendsv1.TextOrigin_TEXT_ORIGIN_CUSTOMER}, BodySha256: w.rec.GetBodySha256(), PostedBy: "k"}, nil)
	in.Triage = supported()
	in.Triage.Outcome = amendsv1.TriageOutcome_TRIAGE_OUTCOME_STATUS_ONLY
	w.apply(in)
	w.settle()
	w.is("VERIFIED_CLOSED")

	w = disputed(t)
	w.apply(w.custody(take, "sam", true))
	w.apply(w.custody(investigate, "sam", true))
	w.fail(amendsv1.Slice_SLICE_PAYMENT) // policy is still looked up
	w.settle()
	w.apply(w.custody(take, "sam", true))
	w.apply(w.custody(proposes, "sam", true))
	w.ledger.Disputes = nil
	w.due() // the approval expires
	w.settle()
	if _, waits := casework.Next(w.rec); !waits && w.rec.GetCustody().GetQueue() != casework.QueueHandoff && !casework.Closed(w.rec) {
		t.Fatalf("LIVE-1: %s waits for nothing", casework.StateName(w.rec.GetState()))
	}
}

// MONEY-3, TRUTH-1: while it is not known whether money moved people can only
// have that found out.
func TestNothingIsDecidedInDoubt(t *testing.T) {
	t.Parallel()
	for _, step := range []amendsv1.CustodyStep{proposes, declines, asks, closes} {
		w := doubtful(t)
		w.apply(w.custody(take, "sam", true))
		w.apply(w.custody(step, "sam", true))
		if got := w.refusedWith(); got != "outcome_unknown" {
			t.Errorf("%s in doubt: refused with %q", step, got)
		}
	}
	w := doubtful(t)
	w.apply(w.custody(take, "sam", true))
	w.apply(w.custody(investigate, "sam", true))
	w.is("RECONCILING")
	w.executorSays(amendsv1.EffectClass_EFFECT_CLASS_ACKNOWLEDGED)
	w.settle()
	w.is("VERIFIED_CLOSED")
}

// TRUTH-1: a withdrawal does not say that nothing was refunded when something
// was, or may have been.
func TestAWithdrawalAfterARefundIsForPeople(t *testing.T) {
	t.Parallel()
	w := requested(t)
	w.executorSays(amendsv1.EffectClass_EFFECT_CLASS_ACKNOWLEDGED)
	w.settle()
	w.is("VERIFIED_CLOSED")
	w.apply(w.input("gateway", &amendsv1.ProviderEvent{OrderId: "8472", Kind: "refund.failed", ObjectId: "rf_5521"}, nil))
	w.status = amendsv1.RefundStatus_REFUND_STATUS_FAILED
	w.settle()
	w.apply(w.custody(take, "sam", true))
	w.apply(w.custody(asks, "sam", true))
	w.settle()
	w.is("AWAITING_CUSTOMER")
	w.cancel()
	w.is("HUMAN_HANDOFF")
}

// A withdrawal while people have the case reaches them: the packet says so, and
// what was signed before counts no more.
func TestAWithdrawalReachesTheCustodian(t *testing.T) {
	t.Parallel()
	w := disputed(t)
	w.apply(w.custody(take, "sam", true))
	signed := w.custody(proposes, "sam", true)
	w.cancel()
	if got := w.lastRow(); got != "cancel.recorded" || !slices.Contains(casework.Packet(w.rec).GetCorrections(), "the customer withdrew") {
		t.Fatalf("%s, packet %v", got, casework.Packet(w.rec))
	}
	w.apply(signed)
	if got := w.refusedWith(); got != "record_changed" {
		t.Errorf("a proposal signed before: refused with %q", got)
	}
}

// A custodian always has the work a decision needs, also where the case had none
// left (BUDGET-1), and what people ask for starts its own count of attempts.
func TestDecisionsOfPeopleHaveTheirOwnBudget(t *testing.T) {
	t.Parallel()
	w := disputed(t)
	for range 20 {
		w.apply(w.custody(take, "sam", true))
		w.apply(w.custody(investigate, "sam", true))
		w.settle()
		w.is("HUMAN_HANDOFF")
	}
	w.apply(w.custody(take, "sam", true))
	w.apply(w.custody(declines, "sam", true))
	w.settle()
	w.is("VERIFIED_CLOSED")

	w = newWorld(t, ledger8472(true))
	w.post(supported())
	for range 3 {
		w.apply(w.reply(w.mustTask(amendsv1.Slice_SLICE_PAYMENT), &amendsv1.TaskError{Reason: "lookup_failed", Retryable: true}))
	}
	w.settle()
	w.apply(w.custody(take, "sam", true))
	w.apply(w.custody(investigate, "sam", true))
	w.apply(w.reply(w.mustTask(amendsv1.Slice_SLICE_PAYMENT), &amendsv1.TaskError{Reason: "lookup_failed", Retryable: true}))
	w.is("INVESTIGATING")
}

// A refund that is said to have failed before its acknowledgement was recorded
// is read again; when it is so, it is none.
func TestARefundThatFailedBeforeItsAcknowledgement(t *testing.T) {
	t.Parallel()
	w := requested(t)
	w.apply(w.input("gateway", &amendsv1.ProviderEvent{OrderId: "8472", Kind: "refund.failed", ObjectId: "rf_5521"}, nil))
	w.executorSays(amendsv1.EffectClass_EFFECT_CLASS_ACKNOWLEDGED)
	w.is("REFUNDED")
	w.status = amendsv1.RefundStatus_REFUND_STATUS_FAILED
	confirm := w.mustTask(amendsv1.Slice_SLICE_CONFIRM)
	w.apply(w.reply(confirm, w.work(confirm)))
	w.is("HUMAN_HANDOFF")
}

// RECONCILING is a queue that people can take a case out of.
func TestACaseInReconciliationIsTaken(t *testing.T) {
	t.Parallel()
	w := requested(t)
	w.executorSays(amendsv1.EffectClass_EFFECT_CLASS_UNDECIDABLE)
	w.is("RECONCILING")
	w.apply(w.custody(declines, "sam", true))
	if got := w.refusedWith(); got != "not_in_custody" {
		t.Errorf("decided without being taken: %q", got)
	}
	w.apply(w.custody(take, "sam", true))
	w.is("HUMAN_HANDOFF")
	if c := w.rec.GetCustody(); c.GetCustodian() != "sam" {
		t.Errorf("custody is %v", c)
	}
}

// A signature is of now: an old one handed in again moves nothing.
func TestOldSignaturesOfCustodiansAreStale(t *testing.T) {
	t.Parallel()
	w := disputed(t)
	w.apply(w.custody(take, "sam", true, func(d *amendsv1.CustodyDecision) {
		d.SignedAt = timestamppb.New(w.now.Add(-11 * time.Minute))
	}))
	if got := w.refusedWith(); got != "signature_stale" {
		t.Errorf("refused with %q", got)
	}
}

// TENANT-1: a message of another customer opens no linked case.
func TestNobodyElseContinuesACase(t *testing.T) {
	t.Parallel()
	w := disputed(t)
	w.apply(w.custody(take, "sam", true))
	w.apply(w.custody(declines, "sam", true))
	w.settle()
	w.is("VERIFIED_CLOSED")
	in := w.input("gateway", &amendsv1.CustomerMessage{Channel: "web", Message: &amendsv1.UntrustedText{Text: "and?", Origin: amendsv1.TextOrigin_TEXT_ORIGIN_CUSTOMER}, BodySha256: w.rec.GetBodySha256(), PostedBy: "k"}, func(e *amendsv1.Envelope) { e.CustomerId = "cust_7001" })
	if casework.Continues(w.rec, in) {
		t.Error("another customer's message continues the case")
	}
	w.apply(in)
	if got := w.refusedWith(); got != "customer_mismatch" {
		t.Errorf("refused with %q", got)
	}
}
