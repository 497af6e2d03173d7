package executor

import (
	"time"

	"github.com/amends-dev/amends/internal/money"
	"github.com/amends-dev/amends/internal/roles"
	"github.com/amends-dev/amends/internal/subject"
	amendsv1 "github.com/amends-dev/amends/proto/amends/v1"
	"github.com/amends-dev/amends/services/refund-executor/provider"
)

// step is something that can happen next. It reports false when it cannot.
type step struct {
	weight int
	name   string
	happen func(*world) bool
}

var steps = []step{
	{48, "go on", (*world).goOn},
	{12, "task", (*world).hand},
	{10, "letter", (*world).deliver},
	{14, "people", (*world).actPeople},
	{4, "crash", (*world).crash},
	{5, "time", (*world).passTime},
	{2, "redelivery", (*world).redeliver},
	{2, "cancel", (*world).cancel},
	{3, "stop", (*world).stop},
	{2, "refund moves on", (*world).moveRefund},
	{2, "late call", (*world).lateCall},
	{1, "by hand", (*world).byHand},
}

// next lets one thing happen.
func (w *world) next() {
	total := 0
	for _, s := range steps {
		total += s.weight
	}
	n := w.pick(total, "what happens")
	for _, s := range steps {
		if n -= s.weight; n < 0 {
			if !s.happen(w) {
				w.goOn()
			}
			return
		}
	}
}

func (w *world) working() []*process {
	return w.processesThat(func(p *process) bool { return p.work != nil })
}

func (w *world) idle() []*process {
	return w.processesThat(func(p *process) bool { return p.work == nil })
}

func (w *world) processesThat(are func(*process) bool) []*process {
	var out []*process
	for _, p := range w.processes {
		if are(p) {
			out = append(out, p)
		}
	}
	return out
}

// goOn lets somebody at work do the next step; when nobody works, whatever is
// waiting comes, and at last time passes.
func (w *world) goOn() bool {
	if at := w.working(); len(at) > 0 {
		at[w.pick(len(at), "who goes on")].resume()
		return true
	}
	if w.hand() || w.deliver() || w.choose("people first", 3, 1) == 0 && w.actPeople() {
		return true
	}
	if next, waits := w.nextDeadline(func(*matter) bool { return false }); waits && next.Sub(w.clock) < 2*time.Hour {
		w.pass(max(next.Sub(w.clock), 0) + time.Second)
		w.wake()
	}
	return true
}

// hand gives a task to an executor that has none in hand.
func (w *world) hand() bool {
	free := w.idle()
	if len(w.tasks) == 0 || len(free) == 0 {
		return false
	}
	d, twice := take(w, &w.tasks, "task", 6)
	if twice {
		w.saw[sawDuplicate] = true
		d = &delivery{message: d.message, count: d.count}
	}
	p := free[w.pick(len(free), "who takes it")]
	for _, other := range w.working() {
		if other.work.message.Envelope.GetCaseId() == d.message.Envelope.GetCaseId() {
			w.saw[sawTwoAtOnce] = true
		} else {
			w.saw[sawCompeting] = true
		}
	}
	p.begin(d)
	return true
}

// deliver gives a case one of the inputs that wait for it.
func (w *world) deliver() bool {
	if len(w.letters) == 0 {
		return false
	}
	l, _ := take(w, &w.letters, "letter", 6)
	l.read()
	return true
}

func (w *world) passTime() bool {
	d := []time.Duration{time.Second, 8 * time.Second, 31 * time.Second, 70 * time.Second, 6 * time.Minute, 31 * time.Minute, 2 * time.Hour, 25 * time.Hour}[w.choose("how long", 16, 20, 20, 12, 12, 10, 4, 6)]
	if d > 30*time.Second && len(w.working()) > 0 {
		w.saw[sawPaused] = true
	}
	w.pass(d)
	w.wake()
	return true
}

func (w *world) crash() bool {
	at := w.working()
	if len(at) == 0 {
		return false
	}
	at[w.pick(len(at), "who is killed")].crash()
	return true
}

// redeliver hands out again what somebody works on and has not acknowledged.
func (w *world) redeliver() bool {
	at := w.working()
	if len(at) == 0 {
		return false
	}
	d := at[w.pick(len(at), "whose task")].work
	w.saw[sawDuplicate] = true
	w.tell("%s of %s is handed out again", d.message.Envelope.GetTaskId(), d.message.Envelope.GetCaseId())
	w.tasks = append(w.tasks, &delivery{message: d.message, count: d.count})
	return true
}

func (w *world) cancel() bool {
	m := w.matters[w.pick(len(w.matters), "whose")]
	w.tell("%s is withdrawn", m.id)
	m.post(roles.Gateway, &amendsv1.CaseCancel{Channel: "web", PostedBy: "web-key"})
	return true
}

// stop throws a switch, or releases it.
func (w *world) stop() bool {
	scope := []string{theTenant, subject.StopAll, "other-tenant"}[w.choose("scope", 4, 2, 1)]
	w.setStop(scope, !w.stopped[scope])
	return true
}

// moveRefund lets a refund succeed or fail at the provider, who says so later.
func (w *world) moveRefund() bool {
	all := w.read().Refunds
	if len(all) == 0 {
		return false
	}
	r := all[w.pick(len(all), "refund")]
	if r.GetStatus() != amendsv1.RefundStatus_REFUND_STATUS_PENDING {
		return false
	}
	if w.choose("which way", 1, 1) == 0 {
		w.bank.SetStatus(r.GetRefundId(), amendsv1.RefundStatus_REFUND_STATUS_SUCCEEDED)
		w.tell("%s succeeds", r.GetRefundId())
		w.webhook("refund.updated", r.GetRefundId())
		return true
	}
	w.bank.SetStatus(r.GetRefundId(), amendsv1.RefundStatus_REFUND_STATUS_FAILED)
	w.note(fact{kind: refundFailed, refund: r})
	w.saw[sawFailedLater] = true
	w.tell("%s fails", r.GetRefundId())
	w.webhook("refund.failed", r.GetRefundId())
	return true
}

func (w *world) lateCall() bool {
	if len(w.flying) == 0 {
		return false
	}
	w.arrive()
	return true
}

// byHand makes a refund in the provider's dashboard, often of an amount that
// a case asks for.
func (w *world) byHand() bool {
	if w.choose("really", 1, 1) == 0 {
		return false
	}
	c := w.order.order.Captures[w.pick(len(w.order.order.Captures), "capture")]
	minor := c.GetAmount().GetMinor() / []int64{1, 2, 10}[w.choose("part", 3, 1, 1)]
	id, err := w.bank.ByHand(provider.Request{Tenant: theTenant, OrderID: theOrder, PaymentID: c.GetPaymentId(), Amount: money.New(minor, c.GetAmount().GetCurrency())})
	if err != nil {
		return false
	}
	w.saw[sawByHand] = true
	w.tell("somebody refunds %d on %s by hand", minor, c.GetPaymentId())
	w.observe(true)
	if w.choose("webhook", 2, 1) == 1 {
		w.webhook("refund.updated", id)
	}
	return true
}

// actPeople lets the next customer write, or people do what a case waits for.
func (w *world) actPeople() bool {
	if len(w.unopened) > 0 && w.choose("a customer writes", 1, 1) == 0 {
		return w.openNext()
	}
	wait := w.withPeople()
	if len(wait) == 0 {
		return false
	}
	m := wait[w.pick(len(wait), "whose")]
	switch m.rec.GetState() {
	case amendsv1.CaseState_CASE_STATE_AWAITING_APPROVAL:
		verdict := amendsv1.Verdict_VERDICT_APPROVE
		if w.choose("verdict", 14, 1) == 1 {
			verdict = amendsv1.Verdict_VERDICT_DENY
		}
		m.sign(m.approver(), verdict)
	default:
		m.custodian()
	}
	return true
}

// withPeople gives the cases that people can do something about.
func (w *world) withPeople() []*matter {
	var out []*matter
	for _, m := range w.matters {
		switch m.rec.GetState() {
		case amendsv1.CaseState_CASE_STATE_AWAITING_APPROVAL, amendsv1.CaseState_CASE_STATE_HUMAN_HANDOFF, amendsv1.CaseState_CASE_STATE_RECONCILING:
			out = append(out, m)
		default: // the desk's own
		}
	}
	return out
}
