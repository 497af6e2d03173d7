package casework_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"
	"pgregory.net/rapid"

	"github.com/amends-dev/amends/internal/casework"
	amendsv1 "github.com/amends-dev/amends/proto/amends/v1"
)

// Whatever arrives, in whatever order, late, twice or not at all: versions are
// consecutive and follow rows of the table (STATE-1), fields come from their
// authors (STATE-2), nothing leaves a terminal state (STATE-3), every open case
// has something that will happen (LIVE-1), an input counts once (LOSS-1), no
// state says refunded before the executor acknowledged (TRUTH-2), and the log
// replays to the same record.
func TestAnyScheduleKeepsTheInvariants(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t, ledger8472(rapid.Bool().Draw(t, "settled")))
		if rapid.Bool().Draw(t, "small") {
			w.ledger.GetOrder().GetTotal().Minor = 5000
			for _, c := range w.ledger.GetCaptures() {
				c.Amount.Minor = 5000
			}
		}
		if rapid.IntRange(0, 3).Draw(t, "picky") == 0 {
			w.verdict = func(*amendsv1.Draft) []*amendsv1.ClaimCheck {
				return []*amendsv1.ClaimCheck{{What: "amount", Reason: "unsupported_amount"}}
			}
		}
		w.post(draftTriage(t, "first"))
		switch rapid.IntRange(0, 3).Draw(t, "begins") { // half of them where money is
		case 0:
			w.settle()
			if w.rec.GetState() == amendsv1.CaseState_CASE_STATE_AWAITING_APPROVAL {
				w.apply(w.decision(approve, "maya", "apr-8472-1", true))
				w.settle()
			}
		case 1:
			w.settle()
			if w.rec.GetState() == amendsv1.CaseState_CASE_STATE_AWAITING_APPROVAL {
				w.apply(w.decision(approve, "maya", "apr-8472-1", true))
				w.executorSays(amendsv1.EffectClass_EFFECT_CLASS_UNDECIDABLE)
				w.apply(w.custody(take, "sam", true))
			}
		default:
		}
		var old []casework.Input
		for range rapid.IntRange(1, 40).Draw(t, "steps") {
			in, ok := w.draw(t, old)
			if !ok {
				continue
			}
			old = append(old, in)
			w.offer(t, in)
		}
		w.replays()
	})
}

func draftTriage(t *rapid.T, label string) *amendsv1.Triage {
	tr := supported()
	tr.Outcome = rapid.SampledFrom([]amendsv1.TriageOutcome{
		amendsv1.TriageOutcome_TRIAGE_OUTCOME_SUPPORTED, amendsv1.TriageOutcome_TRIAGE_OUTCOME_SUPPORTED, amendsv1.TriageOutcome_TRIAGE_OUTCOME_STATUS_ONLY,
		amendsv1.TriageOutcome_TRIAGE_OUTCOME_CLARIFY, amendsv1.TriageOutcome_TRIAGE_OUTCOME_NEEDS_PERSON, amendsv1.TriageOutcome_TRIAGE_OUTCOME_CANCEL,
	}).Draw(t, label)
	if tr.GetOutcome() == amendsv1.TriageOutcome_TRIAGE_OUTCOME_CLARIFY {
		tr.OrderId, tr.Reason = "", "order_not_found"
	}
	return tr
}

// draw makes the next input: mostly honest work, sometimes anything else.
func (w *world) draw(t *rapid.T, old []casework.Input) (casework.Input, bool) {
	open := w.tasks()
	for _, task := range open {
		if a := actionOf(task.Payload); a != nil && !slices.ContainsFunc(w.handed, func(o casework.Task) bool { return o.Envelope.GetMessageId() == task.Envelope.GetMessageId() }) {
			w.handed = append(w.handed, task)
		}
	}
	w.status = rapid.SampledFrom([]amendsv1.RefundStatus{statusSucceeded, statusSucceeded, amendsv1.RefundStatus_REFUND_STATUS_PENDING, statusFailed, statusCanceled}).Draw(t, "status")
	switch rapid.SampledFrom([]string{
		"work", "work", "work", "work", "due", "again", "message", "cancel", "decision", "provider", "news", "finding", "lifted", "error", "effect", "late", "late", "custody", "custody", "settle",
	}).Draw(t, "kind") {
	case "work":
		if len(open) == 0 {
			return casework.Input{}, false
		}
		task := rapid.SampledFrom(open).Draw(t, "task")
		return w.reply(task, w.work(task)), true
	case "error":
		if len(open) == 0 {
			return casework.Input{}, false
		}
		task := rapid.SampledFrom(open).Draw(t, "task")
		return w.reply(task, &amendsv1.TaskError{Reason: "engine_failed", Retryable: rapid.Bool().Draw(t, "retryable")}), true
	case "effect":
		task, ok := w.task(rapid.SampledFrom([]amendsv1.Slice{amendsv1.Slice_SLICE_EXECUTE, amendsv1.Slice_SLICE_CANCEL, confirms, settle}).Draw(t, "slice"))
		if !ok {
			return casework.Input{}, false
		}
		class := amendsv1.EffectClass(rapid.Int32Range(1, 8).Draw(t, "class"))
		return w.reply(task, w.effect(class, w.rec.GetAction())), true
	case "late":
		if len(w.handed) == 0 {
			return casework.Input{}, false
		}
		return w.lateAnswer(t, rapid.SampledFrom(w.handed).Draw(t, "old task")), true
	case "due":
		next, ok := casework.Next(w.rec)
		if !ok {
			return casework.Input{}, false
		}
		w.now = next.Add(time.Duration(rapid.Int64Range(-1, 1).Draw(t, "early")) * time.Second)
		return w.input("orchestrator", &amendsv1.TimerDue{}, nil), true
	case "again":
		if len(old) == 0 {
			return casework.Input{}, false
		}
		return rapid.SampledFrom(old).Draw(t, "old"), true
	case "message":
		in := w.input("gateway", &amendsv1.CustomerMessage{Channel: "web", Message: &amendsv1.UntrustedText{Text: "and?", Origin: amendsv1.TextOrigin_TEXT_ORIGIN_CUSTOMER}, BodySha256: w.rec.GetBodySha256(), PostedBy: "k"}, nil)
		in.Triage = draftTriage(t, "later")
		return in, true
	case "cancel":
		return w.input("gateway", &amendsv1.CaseCancel{Channel: "web", PostedBy: "k"}, nil), true
	case "provider":
		kind := rapid.SampledFrom([]string{"capture.settled", "refund.failed"}).Draw(t, "event")
		return w.input("gateway", &amendsv1.ProviderEvent{OrderId: "8472", Kind: kind, ObjectId: "x"}, nil), true
	case "news":
		kind := rapid.SampledFrom([]string{"refund.updated", "refund.failed"}).Draw(t, "event")
		return w.input("gateway", &amendsv1.ProviderEvent{OrderId: "8472", Kind: kind, ObjectId: "rf_5521"}, nil), true
	case "finding":
		code := rapid.SampledFrom([]string{"refund_missing", "amount_differs"}).Draw(t, "code")
		if rapid.IntRange(0, 3).Draw(t, "failure") == 0 {
			return w.foundFailed(rapid.SampledFrom(failureCodes).Draw(t, "failure code"), rapid.SampledFrom([]string{"rf_5521", "rf_9"}).Draw(t, "refund")), true
		}
		if rapid.Bool().Draw(t, "own") {
			return w.input("orchestrator", &amendsv1.CaseFinding{Finding: findingWith(code)}, nil), true
		}
		return w.finding(code, "req-8472"), true
	case "lifted":
		return w.lifted(), true
	case "settle":
		return w.custody(settles, "sam", true, func(d *amendsv1.CustodyDecision) {
			if len(d.GetSettlements()) > 0 && rapid.Bool().Draw(t, "none") {
				d.Settlements[0].RefundId = ""
			}
		}), true
	case "custody":
		who := rapid.SampledFrom([]string{"sam", "sam", "lee"}).Draw(t, "custodian")
		step := amendsv1.CustodyStep(rapid.Int32Range(1, 9).Draw(t, "step"))
		stale := rapid.IntRange(0, 4).Draw(t, "stale") == 0
		return w.custody(step, who, rapid.IntRange(0, 4).Draw(t, "valid") > 0, func(d *amendsv1.CustodyDecision) {
			if stale {
				d.PacketSha256 = strings.Repeat("0", 64)
			}
		}), true
	default:
		if w.rec.GetAction() == nil {
			return casework.Input{}, false
		}
		verdict := rapid.SampledFrom([]amendsv1.Verdict{approve, approve, deny}).Draw(t, "verdict")
		return w.decision(verdict, "maya", "apr-8472-1", rapid.Bool().Draw(t, "valid")), true
	}
}

// offer applies an input as the orchestrator would, and checks the record.
func (w *world) offer(t *rapid.T, in casework.Input) {
	before := proto.CloneOf(w.rec)
	c, err := casework.Decide(w.rec, in, w.lim)
	if !proto.Equal(before, w.rec) {
		t.Fatal("deciding changed the record it decided on")
	}
	switch {
	case errors.Is(err, casework.ErrHandled):
		if !casework.Handled(w.rec, in.GetEnvelope().GetSender(), in.GetEnvelope().GetMessageId()) {
			t.Fatal("LOSS-1: an input was called handled that the record does not hold")
		}
		return
	case errors.Is(err, casework.ErrNothingDue), errors.Is(err, casework.ErrNothingNew), errors.Is(err, casework.ErrFull):
		return
	case err != nil:
		t.Fatalf("%T in %s: %v", in.Payload, casework.StateName(w.rec.GetState()), err)
	}
	w.log, w.rec = append(w.log, c), c.GetRecord()
	w.check(t, before)
}

func (w *world) check(t *rapid.T, before *amendsv1.CaseRecord) {
	rec := w.rec
	if err := casework.CheckTimeline(rec); err != nil {
		t.Fatalf("STATE-1: %v", err)
	}
	if rec.GetVersion() <= before.GetVersion() {
		t.Fatal("STATE-1: a commit without a new version")
	}
	if before.GetState() == amendsv1.CaseState_CASE_STATE_VERIFIED_CLOSED && rec.GetState() != before.GetState() && rec.GetState() != amendsv1.CaseState_CASE_STATE_HUMAN_HANDOFF {
		t.Fatalf("STATE-3: a closed case became %s", casework.StateName(rec.GetState()))
	}
	switch rec.GetState() {
	case amendsv1.CaseState_CASE_STATE_REFUNDED:
		if rec.GetEffect().GetClass() != amendsv1.EffectClass_EFFECT_CLASS_ACKNOWLEDGED {
			t.Fatal("TRUTH-2: refunded without an acknowledgement")
		}
	case amendsv1.CaseState_CASE_STATE_REFUND_REQUESTED:
		if rec.GetAction() == nil {
			t.Fatal("MONEY-2: a refund is requested without an action record")
		}
		if rec.GetDecision().GetNeedsApproval() && len(rec.GetApprovals()) == 0 {
			t.Fatal("MONEY-2: a refund that needs a person is requested without one")
		}
	default: // the other states promise nothing about money
	}
	made := rec.GetOutcomeUnknown()
	for _, r := range rec.GetEffect().GetRefunds() {
		made = made || r.GetOutcome().GetRefundId() != ""
	}
	for _, f := range rec.GetReply().GetFacts() {
		if f.GetKind() == amendsv1.ClaimKind_CLAIM_KIND_CANCELLED_NOTHING_REFUNDED && made && rec.GetState() == amendsv1.CaseState_CASE_STATE_CANCELLED {
			t.Fatal("TRUTH-1: a case that may have refunded says that nothing was refunded")
		}
	}
	if rec.GetOutcomeUnknown() && casework.Closed(rec) {
		t.Fatalf("MONEY-3: %s with an outcome that nobody knows", casework.StateName(rec.GetState()))
	}
	inQueue := rec.GetCustody().GetQueue() == casework.QueueHandoff || rec.GetCustody().GetQueue() == casework.QueueReconciliation
	withPeople := rec.GetState() == amendsv1.CaseState_CASE_STATE_HUMAN_HANDOFF || rec.GetState() == amendsv1.CaseState_CASE_STATE_RECONCILING
	if inQueue && !withPeople || !inQueue && rec.GetState() == amendsv1.CaseState_CASE_STATE_HUMAN_HANDOFF {
		t.Fatalf("LIVE-1: %s with the case in queue %q", casework.StateName(rec.GetState()), rec.GetCustody().GetQueue())
	}
	_, waits := casework.Next(rec)
	queue := rec.GetCustody().GetQueue() == casework.QueueHandoff || rec.GetCustody().GetQueue() == casework.QueueReconciliation
	done := casework.View(rec).GetClosed()
	if !waits && !queue && !done {
		t.Fatalf("LIVE-1: %s at v%d waits for nothing", casework.StateName(rec.GetState()), rec.GetVersion())
	}
	if len(rec.GetUnconfirmed()) > 0 && casework.Closed(rec) && !waits {
		t.Fatalf("LIVE-1: nobody asks about %v", rec.GetUnconfirmed())
	}
	known := map[string]bool{}
	for _, f := range rec.GetFindings() {
		if known[f.GetFindingId()] {
			t.Fatalf("finding %s is there twice", f.GetFindingId())
		}
		known[f.GetFindingId()] = true
	}
	if casework.Closed(rec) {
		w.everybodySaw(t)
	}
	if int(rec.GetConsumption().GetDelegations()) > w.lim.DelegationsOf(rec) {
		t.Fatalf("BUDGET-1: %d delegations", rec.GetConsumption().GetDelegations())
	}
	for _, task := range w.tasks() {
		if err := casework.Admit(rec, task.Payload.GetContract(), task.Envelope.GetSentAt().AsTime(), w.lim); err != nil {
			t.Fatalf("outgoing task %s is not admissible: %v", task.Envelope.GetTaskId(), err)
		}
	}
}

// everybodySaw checks that people had the case after each of its findings, late
// refunds, failures and lost confirmations, before it ended (MONEY-3).
func (w *world) everybodySaw(t *rapid.T) {
	tl := w.rec.GetTimeline()
	for i, e := range tl {
		news := slices.ContainsFunc([]string{"finding.", "effect.after_all", "refund.failed_later", "confirm.lost"}, func(p string) bool { return strings.HasPrefix(e.GetRow(), p) })
		seen := slices.ContainsFunc(tl[i:], func(l *amendsv1.TimelineEntry) bool {
			return l.GetState() == amendsv1.CaseState_CASE_STATE_HUMAN_HANDOFF
		})
		if news && !seen {
			t.Fatalf("MONEY-3: it ended with %s of version %d, which no person had", e.GetRow(), e.GetVersion())
		}
	}
}

// actionOf gives the action that a task asks the executor to make or to look for.
func actionOf(a *amendsv1.TaskAssign) *amendsv1.ActionRecord {
	switch in := a.GetInput().(type) {
	case *amendsv1.TaskAssign_Execute:
		return in.Execute.GetAction()
	case *amendsv1.TaskAssign_Cancel:
		return in.Cancel.GetAction()
	case *amendsv1.TaskAssign_Settle:
		return in.Settle.GetAction()
	}
	return nil
}

// lateAnswer is one to any task the executor ever had, whatever came of the
// case: its refunds made, in doubt, not made or not named.
func (w *world) lateAnswer(t *rapid.T, task casework.Task) casework.Input {
	e := w.readAgain(actionOf(task.Payload), statusSucceeded)
	e.Class = amendsv1.EffectClass(rapid.Int32Range(1, 8).Draw(t, "late class"))
	for _, r := range e.GetRefunds() {
		r.ReadBack = nil
		if rapid.Bool().Draw(t, "made") {
			r.Outcome.RefundId = "rf_" + e.GetActionSha256()[:4]
			continue
		}
		r.Outcome.RefundId, r.Outcome.Class = "", amendsv1.EffectClass(rapid.Int32Range(1, 8).Draw(t, "refund's class"))
	}
	if rapid.IntRange(0, 3).Draw(t, "bare") == 0 {
		e.Refunds = nil
	}
	in := w.reply(task, e)
	in.Envelope.MessageId = w.input("orchestrator", &amendsv1.TimerDue{}, nil).Envelope.GetMessageId()
	return in
}
