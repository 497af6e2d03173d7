package executor

import (
	"context"
	"errors"
	"time"

	"github.com/amends-dev/amends/internal/subject"
	amendsv1 "github.com/amends-dev/amends/proto/amends/v1"
	"github.com/amends-dev/amends/services/refund-executor/effectstore"
	"github.com/amends-dev/amends/services/refund-executor/provider"
	"github.com/amends-dev/amends/services/refund-executor/provider/providertest"
)

// seam is a place where an executor gives way to the schedule.
type seam string

// The seams: before each step outside the process, and after those that leave
// something behind.
const (
	seamRead        = seam(effectstore.OpRead)
	seamStop        = seam(effectstore.OpStop)
	seamAudit       = seam(effectstore.OpAudit)
	seamWrite       = seam(effectstore.OpWrite)
	seamWritten     = seam(effectstore.OpAck)
	seamReadOrder   = seam("read of the order")
	seamReadRefund  = seam("read of a refund")
	seamAsk         = seam("call")
	seamAnswered    = seam("answer")
	seamWait        = seam("wait")
	seamSend        = seam("result")
	seamAcknowledge = seam("acknowledgement")
)

// verdict is what happens to one step.
type verdict string

// The verdicts.
const (
	fine     verdict = "fine"
	fails    verdict = "fails"
	unsure   verdict = "done, answer lost"
	vanishes verdict = "vanishes"
	strange  verdict = "a strange record"
	lostWay  verdict = "lost on the way"
	late     verdict = "late"
	unsent   verdict = "not sent"
	busy     verdict = "turned away"
	declined verdict = "declined"
	dies     verdict = "the process is killed"
)

// chance is how often a verdict falls.
type chance struct {
	verdict verdict
	weight  int
}

var chances = map[seam][]chance{
	seamRead:        {{fine, 96}, {fails, 4}},
	seamStop:        {{fine, 96}, {fails, 4}},
	seamAudit:       {{fine, 92}, {fails, 8}},
	seamWrite:       {{fine, 95}, {fails, 5}},
	seamWritten:     {{fine, 84}, {unsure, 12}, {dies, 4}},
	seamReadOrder:   {{fine, 90}, {fails, 7}, {strange, 3}},
	seamReadRefund:  {{fine, 88}, {fails, 12}},
	seamAsk:         {{fine, 60}, {unsure, 14}, {lostWay, 6}, {late, 10}, {unsent, 5}, {busy, 4}, {declined, 5}, {dies, 5}},
	seamAnswered:    {{fine, 88}, {dies, 12}},
	seamWait:        {{fine, 1}},
	seamSend:        {{fine, 86}, {fails, 5}, {unsure, 4}, {vanishes, 5}},
	seamAcknowledge: {{fine, 88}, {unsure, 12}},
}

// decide draws what happens at a seam.
func (w *world) decide(at seam) verdict {
	all := chances[at]
	if w.calm || len(all) < 2 {
		return fine
	}
	sum := 0
	for _, c := range all {
		sum += c.weight
	}
	n := w.pick(sum, string(at))
	for _, c := range all {
		if n -= c.weight; n < 0 {
			return c.verdict
		}
	}
	return fine
}

var errUnreachable = errors.New("unreachable")

// strike is where the running executor gives way at each operation of the
// store.
func (w *world) strike(op effectstore.Op, subj string) error {
	p := w.running
	if p == nil {
		return nil
	}
	if op == effectstore.OpAck && subj == subject.Effect(theTenant, theOrder) {
		w.note(fact{kind: entrySaved})
	}
	v := p.give(seam(op))
	if op == effectstore.OpStop && v == fine {
		w.note(fact{kind: stopLooked})
	}
	switch v {
	case fine:
		return nil
	case unsure:
		w.saw[sawLostAck] = true
	default: // the operation does not take place
	}
	return errUnreachable
}

// wire is a process's way to the provider.
type wire struct {
	provider.Provider
	p *process
}

func (l wire) ReadOrder(ctx context.Context, tenant, order string) (provider.Order, error) {
	v := l.p.give(seamReadOrder)
	if v == fails {
		return provider.Order{}, provider.ErrUnavailable
	}
	o, err := l.Provider.ReadOrder(ctx, tenant, order)
	l.p.w.note(fact{kind: orderRead})
	if v == strange && err == nil {
		o.Captures[0].Status = amendsv1.CaptureStatus_CAPTURE_STATUS_UNKNOWN
	}
	return o, err
}

func (l wire) GetRefund(ctx context.Context, tenant, id string) (*amendsv1.Refund, error) {
	if l.p.give(seamReadRefund) == fails {
		return nil, provider.ErrUnavailable
	}
	return l.Provider.GetRefund(ctx, tenant, id)
}

var fates = map[verdict]providertest.Fault{
	fine: providertest.None, unsure: providertest.LostAfter, lostWay: providertest.LostBefore,
	late: providertest.Late, unsent: providertest.NotSent, busy: providertest.Busy,
}

// Create is one call: it may not leave, not arrive, arrive later, be declined,
// or be made and its answer lost.
func (l wire) Create(ctx context.Context, key string, body []byte, notAfter time.Time) provider.Outcome {
	w, p := l.p.w, l.p
	v := p.give(seamAsk)
	if v == declined && w.clock.Before(notAfter) {
		w.note(fact{kind: called, key: key})
		return provider.Outcome{Class: amendsv1.EffectClass_EFFECT_CLASS_REFUSED, Reason: "card_closed"}
	}
	before, under := len(w.known), w.bank.UnderWay()
	w.fate = fates[v]
	out := l.Provider.Create(ctx, key, body, notAfter)
	w.fate = providertest.None
	if out.Reason != provider.ReasonWithdrawn && v != unsent {
		w.note(fact{kind: called, key: key})
	}
	if w.bank.UnderWay() > under {
		w.saw[sawLate] = true
		w.flying = append(w.flying, w.clock.Add(w.order.promises.CallTimeout))
	}
	w.observe(false)
	p.made = len(w.known) > before
	if p.made && v == unsure {
		w.saw[sawLostAnswer] = true
	}
	p.give(seamAnswered)
	return out
}
