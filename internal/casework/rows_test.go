package casework_test

import (
	"slices"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/amends-dev/amends/internal/casework"
	amendsv1 "github.com/amends-dev/amends/proto/amends/v1"
)

// requested brings a world to REFUND_REQUESTED at v6.
func requested(t *testing.T) *world {
	t.Helper()
	w := newWorld(t, ledger8472(true))
	w.post(supported())
	w.settle()
	w.apply(w.decision(approve, "maya", "apr-8472-1", true))
	w.want("REFUND_REQUESTED", 6)
	return w
}

func (w *world) executorSays(class amendsv1.EffectClass) {
	w.tb.Helper()
	t, ok := w.task(amendsv1.Slice_SLICE_EXECUTE)
	if !ok {
		w.due()
		t, ok = w.task(amendsv1.Slice_SLICE_EXECUTE)
	}
	if !ok {
		w.tb.Fatalf("no execute task in %s", casework.StateName(w.rec.GetState()))
	}
	w.apply(w.reply(t, w.effect(class, t.Payload.GetExecute().GetAction())))
}

func (w *world) says(order string) {
	w.tb.Helper()
	in := w.input("gateway", &amendsv1.CustomerMessage{Channel: "web", Message: &amendsv1.UntrustedText{Text: "I mean another order", Origin: amendsv1.TextOrigin_TEXT_ORIGIN_CUSTOMER}, BodySha256: w.rec.GetBodySha256(), PostedBy: "k"}, nil)
	in.Triage = supported()
	in.Triage.OrderId = order
	w.apply(in)
}

func (w *world) lastRow() string {
	tl := w.rec.GetTimeline()
	return tl[len(tl)-1].GetRow()
}

// The rows that random schedules rarely reach, one by one.
func TestRareRows(t *testing.T) {
	t.Parallel()
	const (
		acknowledged = amendsv1.EffectClass_EFFECT_CLASS_ACKNOWLEDGED
		undecidable  = amendsv1.EffectClass_EFFECT_CLASS_UNDECIDABLE
	)
	for row, walk := range map[string]func(*testing.T) *world{
		"effect.found": func(t *testing.T) *world {
			w := requested(t)
			w.executorSays(undecidable)
			w.executorSays(acknowledged)
			return w
		},
		"effect.undecidable.again": func(t *testing.T) *world {
			w := requested(t)
			w.executorSays(undecidable)
			w.executorSays(undecidable)
			return w
		},
		"effect.absent": func(t *testing.T) *world {
			w := requested(t)
			w.executorSays(undecidable)
			w.executorSays(amendsv1.EffectClass_EFFECT_CLASS_NO_EFFECT)
			return w
		},
		"effect.refused.reconciling": func(t *testing.T) *world {
			w := requested(t)
			w.executorSays(undecidable)
			w.executorSays(amendsv1.EffectClass_EFFECT_CLASS_REFUSED)
			return w
		},
		"effect.overdue.none_left": func(t *testing.T) *world {
			w := requested(t)
			for range w.lim.EffectDispatches {
				w.due()
			}
			return w
		},
		"effect.reconcile.person": func(t *testing.T) *world {
			w := requested(t)
			for range 3*w.lim.EffectDispatches + 1 {
				w.due()
			}
			return w
		},
		"effect.differs": func(t *testing.T) *world {
			w := requested(t)
			task := w.mustTask(amendsv1.Slice_SLICE_EXECUTE)
			e := w.effect(acknowledged, task.Payload.GetExecute().GetAction())
			e.Refunds[0].PaymentId = "pay_8472_a"
			w.apply(w.reply(task, e))
			return w
		},
		"effect.late": func(t *testing.T) *world {
			w := requested(t)
			task := w.mustTask(amendsv1.Slice_SLICE_EXECUTE)
			answer := w.effect(acknowledged, task.Payload.GetExecute().GetAction())
			for range 3*w.lim.EffectDispatches + 1 {
				w.due()
			}
			w.apply(w.reply(task, answer)) // MONEY-3: the case says so, late as it is
			if w.rec.GetEffect().GetClass() != acknowledged {
				t.Error("MONEY-3: the late effect is not in the record")
			}
			return w
		},
		"effect.late.unknown":     lateDoubt(amendsv1.EffectClass_EFFECT_CLASS_UNKNOWN),
		"effect.late.undecidable": lateDoubt(amendsv1.EffectClass_EFFECT_CLASS_UNDECIDABLE),
		"effect.late.held":        lateDoubt(amendsv1.EffectClass_EFFECT_CLASS_HELD),
		"effect.late.none":        lateRefund(amendsv1.EffectClass_EFFECT_CLASS_NO_EFFECT),
		"effect.late.refused":     lateRefund(amendsv1.EffectClass_EFFECT_CLASS_REFUSED),
		"customer.answered.other_order": func(t *testing.T) *world {
			w := newWorld(t, ledger8472(true))
			unclear := supported()
			unclear.Outcome, unclear.OrderId = amendsv1.TriageOutcome_TRIAGE_OUTCOME_CLARIFY, "8472"
			w.post(unclear)
			w.says("9001")
			return w
		},
		"action.void.message": func(t *testing.T) *world {
			w := newWorld(t, ledger8472(true))
			w.post(supported())
			w.settle()
			w.says("9001")
			if w.rec.GetAction() != nil {
				t.Error("the action is still there")
			}
			return w
		},
		"message.recorded.other_order": func(t *testing.T) *world {
			w := newWorld(t, ledger8472(true))
			w.post(supported())
			w.says("9001")
			return w
		},
		"merge.person": func(t *testing.T) *world {
			w := newWorld(t, ledger8472(true))
			w.ledger.Disputes = []*amendsv1.Dispute{{DisputeId: "dp_1", PaymentId: "pay_8472_a", Status: amendsv1.DisputeStatus_DISPUTE_STATUS_OPEN}}
			w.post(supported())
			w.settle()
			return w
		},
		"recheck.none_left": func(t *testing.T) *world {
			w := newWorld(t, ledger8472(false))
			w.lim.Rechecks = 0
			w.post(supported())
			w.settle()
			w.due()
			return w
		},
		"budget.spent": func(t *testing.T) *world {
			w := newWorld(t, ledger8472(true))
			w.lim.Delegations = w.lim.Reserve + 1
			w.post(supported())
			w.settle()
			return w
		},
		"budget.spent.no_notice": func(t *testing.T) *world {
			w := newWorld(t, ledger8472(true))
			w.post(supported())
			w.settle()
			w.apply(w.decision(approve, "maya", "apr-8472-1", true))
			w.lim.Delegations = 2
			w.executorSays(acknowledged)
			if w.rec.GetState() != amendsv1.CaseState_CASE_STATE_HUMAN_HANDOFF || w.rec.GetEffect().GetClass() != acknowledged {
				t.Errorf("state %s", casework.StateName(w.rec.GetState()))
			}
			w.log = nil // the limit was changed on the way, so the log of this case does not replay
			return w
		},
	} {
		t.Run(row, func(t *testing.T) {
			t.Parallel()
			w := walk(t)
			if !slices.ContainsFunc(w.rec.GetTimeline(), func(e *amendsv1.TimelineEntry) bool { return e.GetRow() == row }) {
				t.Errorf("row not followed; last %s in %s", w.lastRow(), casework.StateName(w.rec.GetState()))
			}
			if w.log != nil {
				w.replays()
			}
			if _, waits := casework.Next(w.rec); !waits && w.rec.GetCustody() == nil && !casework.View(w.rec).GetClosed() {
				t.Error("LIVE-1: nothing will happen to the case")
			}
		})
	}
}

// The table itself: names once, no row that a row before it hides, every state
// reachable, every state but the closed ones left by some row.
func TestTableIsSound(t *testing.T) {
	t.Parallel()
	names := map[string]bool{}
	to := map[amendsv1.CaseState]bool{amendsv1.CaseState_CASE_STATE_UNSPECIFIED: true}
	left := map[amendsv1.CaseState]bool{}
	type key struct {
		st amendsv1.CaseState
		on casework.Event
	}
	final := map[key]string{}
	for _, r := range casework.Table {
		if names[r.Name] {
			t.Errorf("row %s is there twice", r.Name)
		}
		names[r.Name] = true
		if r.To != casework.Same {
			to[r.To] = true
		}
		for _, from := range r.From {
			k := key{from, r.On}
			if by := final[k]; by != "" {
				t.Errorf("row %s can never apply in %s: %s always does", r.Name, casework.StateName(from), by)
			}
			if len(r.When) == 0 {
				final[k] = r.Name
			}
			if r.To != casework.Same && r.To != from {
				left[from] = true
			}
		}
	}
	for n := range amendsv1.CaseState_name {
		st := amendsv1.CaseState(n)
		if !to[st] {
			t.Errorf("no row leads to %s", casework.StateName(st))
		}
		if !left[st] && st != amendsv1.CaseState_CASE_STATE_HUMAN_HANDOFF && st != amendsv1.CaseState_CASE_STATE_CANCELLED {
			t.Errorf("no row leaves %s", casework.StateName(st))
		}
	}
}

// Delta leaves out only what was sent for the record before.
func TestDeltaSendsWhatIsNew(t *testing.T) {
	t.Parallel()
	w := newWorld(t, ledger8472(true))
	w.post(supported())
	v2 := w.rec
	pay := w.mustTask(amendsv1.Slice_SLICE_PAYMENT)
	w.apply(w.reply(pay, w.work(pay)))
	d := casework.Delta(v2, w.rec, w.lim)
	if len(d.Tasks) != 0 || d.View != nil || !d.Wake.IsZero() || d.Disarm {
		t.Errorf("v3 wants %+v, want nothing new", d)
	}
	full := casework.Outgoing(w.rec, w.lim)
	if len(full.Tasks) != 1 || full.View == nil || full.Wake.IsZero() {
		t.Errorf("a resend of v3 gives %d tasks, view %v, wake %s", len(full.Tasks), full.View != nil, full.Wake)
	}
	w.settle()
	v5 := w.rec
	w.apply(w.decision(approve, "maya", "apr-8472-1", true))
	d = casework.Delta(v5, w.rec, w.lim)
	if len(d.Tasks) != 1 || d.View == nil || d.Wake.Sub(w.now) != 10*time.Second {
		t.Errorf("v6 wants %d tasks, view %v, wake in %s", len(d.Tasks), d.View != nil, d.Wake.Sub(w.now))
	}
	w.settle()
	if d = casework.Delta(v5, w.rec, w.lim); !d.Disarm || d.View == nil || !d.View.GetClosed() {
		t.Errorf("closing wants %+v", d)
	}
}

// A timer that fired must be armed again even when the next deadline is later
// than the one that passed.
func TestDeltaArmsAgainAfterATimerFired(t *testing.T) {
	t.Parallel()
	w := newWorld(t, ledger8472(true))
	w.post(supported())
	before := w.rec
	w.due()
	if d := casework.Delta(before, w.rec, w.lim); d.Wake.IsZero() {
		t.Error("LIVE-1: no timer after the last one fired")
	}
}

// lateNews: one attempt was refused by the executor's own checks, and another
// had begun. What comes of that one reaches people, late as it is (MONEY-3).
func lateNews(t *testing.T, class amendsv1.EffectClass, outcome *amendsv1.EffectOutcome) *world {
	t.Helper()
	w := requested(t)
	first := w.mustTask(amendsv1.Slice_SLICE_EXECUTE)
	w.due()
	second := w.mustTask(amendsv1.Slice_SLICE_EXECUTE)
	a := first.Payload.GetExecute().GetAction()
	w.apply(w.reply(second, w.effect(amendsv1.EffectClass_EFFECT_CLASS_REFUSED, a)))
	w.is("HUMAN_HANDOFF")
	if w.rec.GetOutcomeUnknown() {
		t.Error("a refusal leaves a doubt")
	}
	outcome.At = timestamppb.New(w.now)
	e := w.effect(class, a)
	e.Refunds = []*amendsv1.RefundResult{{
		IdempotencyKey: a.GetRefunds()[0].GetIdempotencyKey(), PaymentId: a.GetRefunds()[0].GetPaymentId(), Amount: a.GetRefunds()[0].GetAmount(), Outcome: outcome,
	}}
	w.apply(w.reply(first, e))
	return w
}

func lateDoubt(class amendsv1.EffectClass) func(t *testing.T) *world {
	return func(t *testing.T) *world {
		w := lateNews(t, class, &amendsv1.EffectOutcome{Class: amendsv1.EffectClass_EFFECT_CLASS_UNKNOWN})
		if !w.rec.GetOutcomeUnknown() {
			t.Error("MONEY-3: nobody is told that money may have moved")
		}
		return w
	}
}

func lateRefund(class amendsv1.EffectClass) func(t *testing.T) *world {
	return func(t *testing.T) *world {
		w := lateNews(t, class, &amendsv1.EffectOutcome{Class: amendsv1.EffectClass_EFFECT_CLASS_ACKNOWLEDGED, RefundId: "rf_5521", ProviderStatus: amendsv1.RefundStatus_REFUND_STATUS_PENDING})
		if r := w.rec.GetEffect().GetRefunds(); w.rec.GetOutcomeUnknown() || len(r) != 1 || r[0].GetOutcome().GetRefundId() != "rf_5521" {
			t.Errorf("MONEY-3: the record holds %v", w.rec.GetEffect())
		}
		return w
	}
}
