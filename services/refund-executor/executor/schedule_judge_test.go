package executor

import (
	"time"

	"google.golang.org/protobuf/proto"

	amendsv1 "github.com/amends-dev/amends/proto/amends/v1"
	"github.com/amends-dev/amends/services/refund-executor/provider/providertest"
)

// breach is an invariant that did not hold.
type breach struct {
	invariant string
	detail    string
}

// factKind says what a fact is about.
type factKind int

const (
	entrySaved factKind = iota
	orderRead
	stopLooked
	stopThrown
	called
	refundMade
	refundByHand
	refundFailed
)

// fact is something that took place, as the store or the provider saw it.
type fact struct {
	kind factKind
	at   time.Time
	// by is the executor that did it; nil for anybody else.
	by     *process
	key    string
	refund *amendsv1.Refund
	on     bool
}

// judge goes through the facts of a schedule in their order and then says
// whether the invariants held. It shares no code with what it judges: amounts,
// thresholds, caps, approvals and matches are worked out here once more, from
// what the store kept, what the provider made and what people signed.
type judge struct {
	w        *world
	versions []*amendsv1.EffectEntry
	// saved counts the versions so far.
	saved   int
	stopped bool
	reads   map[*process]int
	looks   map[*process]look
	calls   map[*process]int
	begun   map[string]beginning
	permits map[permitKey]permit
	refunds []made
	hands   []made
	// failed gives the fact by which a refund had failed.
	failed map[string]int
}

type look struct {
	fact    int
	stopped bool
}

// beginning is the write by which an intent was begun.
type beginning struct {
	fact int
	// read is the fact of the order's reading it rests on.
	read   int
	intent *amendsv1.EffectIntent
	// at is when it was written.
	at time.Time
}

type permitKey struct {
	by  *process
	key string
}

// permit is the write that let a process call for a key.
type permit struct {
	fact int
	at   time.Time
}

// made is a refund and the fact that it exists, with its beginning when it is
// ours.
type made struct {
	*amendsv1.Refund
	fact  int
	begun beginning
}

// callWindow is how long after its intent a call may start.
const callWindow = 30 * time.Second

// judge gives the first invariant that did not hold.
func (w *world) judge() *breach {
	if w.broken != nil {
		return w.broken
	}
	versions, err := w.records.History(theTenant, theOrder)
	if err != nil {
		return &breach{"WORLD", err.Error()}
	}
	w.history = versions
	j := &judge{
		w: w, versions: versions, reads: map[*process]int{}, looks: map[*process]look{}, calls: map[*process]int{},
		begun: map[string]beginning{}, permits: map[permitKey]permit{}, failed: map[string]int{},
	}
	for i, f := range w.facts {
		j.hear(i, f)
	}
	j.money1()
	j.money2()
	j.money3()
	j.money4()
	j.auth2()
	j.mustBalance()
	return w.broken
}

func (j *judge) hear(i int, f fact) {
	switch f.kind {
	case entrySaved:
		j.hearSaved(i, f)
	case orderRead:
		j.reads[f.by] = i
	case stopLooked:
		j.looks[f.by] = look{i, j.stopped}
	case stopThrown:
		j.stopped = f.on
	case called:
		j.hearCalled(i, f)
	case refundMade:
		j.refunds = append(j.refunds, made{f.refund, i, j.begun[f.refund.GetReference()]})
	case refundByHand:
		j.hands = append(j.hands, made{Refund: f.refund, fact: i})
	case refundFailed:
		j.failed[f.refund.GetRefundId()] = i
	}
}

// hearSaved finds what a version of the entry began, and which calls it allows.
func (j *judge) hearSaved(i int, f fact) {
	if j.saved >= len(j.versions) {
		return
	}
	now := j.versions[j.saved]
	var before *amendsv1.EffectEntry
	if j.saved > 0 {
		before = j.versions[j.saved-1]
	}
	j.saved++
	for _, in := range now.GetIntents() {
		had := intentIn(before, in.GetIdempotencyKey())
		if had == nil || !proto.Equal(had.GetBegunAt(), in.GetBegunAt()) || had.GetActionSha256() != in.GetActionSha256() {
			j.begun[in.GetIdempotencyKey()] = beginning{i, j.reads[f.by], in, f.at}
		}
		if had.GetCalls() < in.GetCalls() {
			j.permits[permitKey{f.by, in.GetIdempotencyKey()}] = permit{i, f.at}
		}
	}
}

func intentIn(e *amendsv1.EffectEntry, key string) *amendsv1.EffectIntent {
	for _, in := range e.GetIntents() {
		if in.GetIdempotencyKey() == key {
			return in
		}
	}
	return nil
}

// hearCalled: a call rests on an intent of its process that is not too old, and
// on a look at the stop since then and since its last call.
func (j *judge) hearCalled(i int, f fact) {
	p, ok := j.permits[permitKey{f.by, f.key}]
	switch {
	case !ok:
		j.w.breaks("MONEY-2", "%s calls for %s without an intent of its own", f.by.name, f.key)
	case f.at.Sub(p.at) > callWindow:
		j.w.breaks("MONEY-2", "%s calls for %s %s after its intent", f.by.name, f.key, f.at.Sub(p.at))
	case j.looks[f.by].fact < max(p.fact, j.calls[f.by]) || j.looks[f.by].stopped:
		j.w.breaks("STOP", "%s calls for %s without a look at the stop switches before it", f.by.name, f.key)
	}
	j.calls[f.by] = i
}

// taken adds up what was given back before a refund was begun, itself and what
// was begun with it included. Only what exists counts, and what was made by
// hand only when the reading before the intent could show it.
func (j *judge) taken(k made, counts func(made) bool) int64 {
	sum := int64(0)
	for _, other := range j.refunds {
		if counts(other) && other.begun.fact <= k.begun.fact && !j.hadFailed(other, k.begun.fact) {
			sum += other.GetAmount().GetMinor()
		}
	}
	for _, other := range j.hands {
		if counts(other) && other.fact < k.begun.read && !j.hadFailed(other, k.begun.read) {
			sum += other.GetAmount().GetMinor()
		}
	}
	return sum
}

func (j *judge) hadFailed(k made, by int) bool {
	at, ok := j.failed[k.GetRefundId()]
	return ok && at < by
}

// money1: never more than captured, and one refund a key.
func (j *judge) money1() {
	keys := map[string]string{}
	for _, k := range j.refunds {
		if other, ok := keys[k.GetReference()]; ok {
			j.w.breaks("MONEY-1", "key %s made %s and %s", k.GetReference(), other, k.GetRefundId())
		}
		keys[k.GetReference()] = k.GetRefundId()
		sum := j.taken(k, func(o made) bool { return o.GetPaymentId() == k.GetPaymentId() })
		for _, c := range j.w.order.order.Captures {
			if c.GetPaymentId() == k.GetPaymentId() && sum > c.GetAmount().GetMinor() {
				j.w.breaks("MONEY-1", "%d of %d on %s with %s", sum, c.GetAmount().GetMinor(), k.GetPaymentId(), k.GetRefundId())
			}
		}
	}
}

// money4: the order stays paid once, unless people approved goodwill.
func (j *judge) money4() {
	settled := int64(0)
	for _, c := range j.w.order.order.Captures {
		if c.GetSettled() {
			settled += c.GetAmount().GetMinor()
		}
	}
	excess := settled - j.w.order.order.Order.GetTotal().GetMinor()
	for _, k := range j.refunds {
		sum := j.taken(k, func(made) bool { return true })
		if sum <= excess {
			continue
		}
		if j.kind(k) == "goodwill" && len(k.begun.intent.GetApprovalIds()) > 0 {
			j.w.saw[sawGoodwill] = true
			continue
		}
		j.w.breaks("MONEY-4", "%d given back of an excess of %d with %s", sum, excess, k.GetRefundId())
	}
}

// kind gives why a refund was made, as the action people saw has it.
func (j *judge) kind(k made) string {
	for _, r := range j.w.actions[k.begun.intent.GetActionSha256()].GetRefunds() {
		if r.GetIdempotencyKey() == k.GetReference() {
			return r.GetKind()
		}
	}
	return ""
}

// money3: what exists is in its case, or with people.
func (j *judge) money3() {
	there := map[string]amendsv1.RefundStatus{}
	for _, r := range j.w.read().Refunds {
		there[r.GetRefundId()] = r.GetStatus()
	}
	for _, k := range j.refunds {
		m := j.w.matter(k.begun.intent.GetCaseId())
		if m == nil {
			j.w.breaks("MONEY-3", "%s belongs to no case", k.GetRefundId())
			continue
		}
		withPeople := m.rec.GetState() == amendsv1.CaseState_CASE_STATE_RECONCILING || m.rec.GetState() == amendsv1.CaseState_CASE_STATE_HUMAN_HANDOFF
		if providertest.Dead(there[k.GetRefundId()]) && !m.told[k.GetRefundId()] {
			continue // it moved no money, and nobody was told that it would
		}
		said := m.told[k.GetRefundId()] || withPeople && m.rec.GetOutcomeUnknown()
		if e := m.rec.GetEffect(); e.GetClass() == amendsv1.EffectClass_EFFECT_CLASS_NOT_BEGUN && e.GetActionSha256() == k.begun.intent.GetActionSha256() {
			j.w.breaks("MONEY-3", "%s exists, and %s was told that nothing had begun nor would", k.GetRefundId(), m.id)
		}
		if !said && !j.w.swept(k) {
			j.w.breaks("MONEY-3", "%s exists, and %s is %s, outcome unknown %t, and does not say so", k.GetRefundId(), m.id, m.state(), m.rec.GetOutcomeUnknown())
		}
		if at, failed := j.failed[k.GetRefundId()]; failed && !withPeople && m.people.Before(j.w.facts[at].at) && !j.w.swept(k) {
			j.w.breaks("MONEY-3", "%s failed, and %s is %s", k.GetRefundId(), m.id, m.state())
		}
	}
}
