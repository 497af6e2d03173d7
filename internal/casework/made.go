package casework

import (
	"slices"

	"google.golang.org/protobuf/proto"

	amendsv1 "github.com/amends-dev/amends/proto/amends/v1"
)

// A refund that a case made stays in its record, with the action it was made by,
// whatever other actions come after it.

// maxPastEffects is what a record can hold.
const maxPastEffects = 16

// EffectAction gives the action that a record's effect is of, or nil.
func EffectAction(rec *amendsv1.CaseRecord) *amendsv1.ActionRecord {
	if rec.GetAction() != nil && rec.GetActionSha256() == rec.GetEffect().GetActionSha256() {
		return rec.GetAction()
	}
	return rec.GetEffectAction()
}

// Effects gives what became of every action of a case, oldest first.
func Effects(rec *amendsv1.CaseRecord) []*amendsv1.PastEffect {
	out := slices.Clone(rec.GetPastEffects())
	if rec.GetEffect() != nil {
		out = append(out, &amendsv1.PastEffect{Action: EffectAction(rec), Effect: rec.GetEffect()})
	}
	return out
}

// Made gives every refund of a case that has a refund id.
func Made(rec *amendsv1.CaseRecord) (out []*amendsv1.RefundResult) {
	for _, e := range Effects(rec) {
		for _, r := range e.GetEffect().GetRefunds() {
			if r.GetOutcome().GetRefundId() != "" {
				out = append(out, r)
			}
		}
	}
	return out
}

// madeBy gives the effect that a refund is of, or nil.
func madeBy(rec *amendsv1.CaseRecord, refundID string) *amendsv1.PastEffect {
	for _, e := range Effects(rec) {
		if slices.ContainsFunc(e.GetEffect().GetRefunds(), func(r *amendsv1.RefundResult) bool { return r.GetOutcome().GetRefundId() == refundID && refundID != "" }) {
			return e
		}
	}
	return nil
}

// refunded reports whether this case made a refund, by this action or another.
func (s *step) refunded() bool { return len(Made(s.rec)) > 0 }

// ownRefund reports whether a refund is one this case made.
func (s *step) ownRefund(id string) bool { return madeBy(s.rec, id) != nil }

// reasonWithdrawn says that a payment of the order can not be refunded any more by
// this case.
const reasonWithdrawn = "withdrawn"

// withdrawnKey reports whether the executor said that a key was withdrawn: to
// a withdrawal before anything was begun, or to a custodian's word that there is
// none where nothing was. It begins nothing under such a key, ever.
func withdrawnKey(rec *amendsv1.CaseRecord, key string) bool {
	for _, e := range Effects(rec) {
		named := false
		for _, r := range e.GetEffect().GetRefunds() {
			o := r.GetOutcome()
			if r.GetIdempotencyKey() != key {
				continue
			}
			named = true
			if o.GetClass() == amendsv1.EffectClass_EFFECT_CLASS_NOT_BEGUN || o.GetClass() == amendsv1.EffectClass_EFFECT_CLASS_REFUSED && o.GetReason() == reasonSettledAbsent {
				return true
			}
		}
		whole := e.GetEffect().GetClass() == amendsv1.EffectClass_EFFECT_CLASS_NOT_BEGUN && !named
		if whole && slices.ContainsFunc(e.GetAction().GetRefunds(), func(r *amendsv1.ActionRefund) bool { return r.GetIdempotencyKey() == key }) {
			return true
		}
	}
	return false
}

// setAction puts an action, or none, into the place of the current one. What
// the effect was of stays known.
func (s *step) setAction(a *amendsv1.ActionRecord, sum string) {
	if old := EffectAction(s.rec); old != nil {
		s.rec.EffectAction = old
	}
	s.rec.Action, s.rec.ActionSha256 = a, sum
}

// effectOf gives what became of one action, or nil.
func effectOf(rec *amendsv1.CaseRecord, sha string) *amendsv1.EffectResult {
	for _, e := range Effects(rec) {
		if e.GetEffect().GetActionSha256() == sha {
			return e.GetEffect()
		}
	}
	return nil
}

// setEffect records what the executor says of an action. Refunds that
// were made before stay: those of another action with it, those of this one
// where the answer does not name them.
func (s *step) setEffect(e *amendsv1.EffectResult) {
	next := proto.CloneOf(e)
	next.Refunds = keepMade(effectOf(s.rec, e.GetActionSha256()).GetRefunds(), next.GetRefunds())
	for _, p := range s.rec.GetPastEffects() {
		if p.GetEffect().GetActionSha256() == e.GetActionSha256() {
			p.Effect = next
			return
		}
	}
	old := s.rec.GetEffect()
	if old.GetActionSha256() == e.GetActionSha256() {
		s.rec.Effect = next
		return
	}
	if a := EffectAction(s.rec); a != nil {
		s.rec.PastEffects = append(s.rec.GetPastEffects(), &amendsv1.PastEffect{Action: a, Effect: old})
		if len(s.rec.GetPastEffects()) > maxPastEffects { // those that made nothing go first
			i := max(slices.IndexFunc(s.rec.GetPastEffects(), func(p *amendsv1.PastEffect) bool { return !hasRefund(p.GetEffect()) }), 0)
			s.rec.PastEffects = slices.Delete(s.rec.GetPastEffects(), i, i+1)
		}
	}
	s.rec.Effect, s.rec.EffectAction = next, nil
}

func hasRefund(e *amendsv1.EffectResult) bool {
	return slices.ContainsFunc(e.GetRefunds(), func(r *amendsv1.RefundResult) bool { return r.GetOutcome().GetRefundId() != "" })
}

// keepMade gives the refunds of a newer answer, after those of an older one that
// it does not have: of two ids under one key both stay, for people to look at.
func keepMade(old, next []*amendsv1.RefundResult) []*amendsv1.RefundResult {
	var kept []*amendsv1.RefundResult
	for _, o := range old {
		if o.GetOutcome().GetRefundId() == "" {
			continue
		}
		switch i := slices.IndexFunc(next, func(n *amendsv1.RefundResult) bool { return n.GetIdempotencyKey() == o.GetIdempotencyKey() }); {
		case i < 0:
			kept = append(kept, o)
		case next[i].GetOutcome().GetRefundId() == "":
			next[i] = o
		case next[i].GetOutcome().GetRefundId() != o.GetOutcome().GetRefundId():
			kept = append(kept, o)
		}
	}
	kept = append(kept, next...)
	return kept[max(len(kept)-maxActionRefunds, 0):]
}

// maxActionRefunds is how many refunds an action, and an answer to one, can have.
const maxActionRefunds = 16
