package ledger

import (
	"fmt"
	"slices"

	amendsv1 "github.com/amends-dev/amends/proto/amends/v1"
)

// Standing is how far one refund of an action has come.
type Standing int

// The standings.
const (
	// Fresh: nothing is recorded.
	Fresh Standing = iota + 1
	// Idle: it was begun, and provably nothing was done.
	Idle
	// Doubtful: it was begun, and what came of it is not known.
	Doubtful
	// Settled: acknowledged or refused; final.
	Settled
	// Withdrawn: nothing was done, and nothing will be; final.
	Withdrawn
)

// Position is one refund of an action and what the entry says of it.
type Position struct {
	Refund *amendsv1.ActionRefund
	// Intent is nil when fresh.
	Intent *amendsv1.EffectIntent
	// Tombstone is nil unless the key is withdrawn.
	Tombstone *amendsv1.Tombstone
	Standing  Standing
}

// Open reports whether something may still become of the refund.
func (p Position) Open() bool { return p.Standing != Settled && p.Standing != Withdrawn }

// Positions looks an action up in an order's entry, which may be nil. It
// refuses an action of which a key was used with other parameters, and one that
// is withdrawn and of which nothing was ever done; with the word of a person
// that there is none come the positions. An intent that provably did nothing
// may be taken over by a newer action for the same payment and amount.
func Positions(e *amendsv1.EffectEntry, a *amendsv1.ActionRecord, sha string) ([]Position, error) {
	out := make([]Position, 0, len(a.GetRefunds()))
	for _, r := range a.GetRefunds() {
		key := r.GetIdempotencyKey()
		p := Position{Refund: r, Intent: find(e, key), Tombstone: tombstone(e, key), Standing: Fresh}
		if p.Intent != nil {
			p.Standing = standing(p.Intent)
			if !sameParameters(p.Intent, a, r) || p.Standing != Idle && p.Intent.GetActionSha256() != sha {
				return nil, Refuse(ReasonKeyReused, "key %s was begun for action %s", key, p.Intent.GetActionSha256())
			}
		}
		// What may have been done is never talked away, not even by
		// a tombstone that should not be there.
		if p.Tombstone != nil && (p.Standing == Fresh || p.Standing == Idle) {
			p.Standing = Withdrawn
		}
		out = append(out, p)
	}
	return whole(out)
}

// whole refuses an action that is withdrawn, unless something was done of it.
func whole(positions []Position) ([]Position, error) {
	if slices.ContainsFunc(positions, func(p Position) bool { return p.Standing == Settled || p.Standing == Doubtful }) {
		return positions, nil
	}
	var first *amendsv1.Tombstone
	for _, p := range positions {
		switch {
		case p.Tombstone.GetSettledBy() != "":
			return positions, Refuse(ReasonSettledAbsent, "%s settled that there is no refund of key %s", p.Tombstone.GetSettledBy(), p.Tombstone.GetIdempotencyKey())
		case p.Tombstone != nil && first == nil:
			first = p.Tombstone
		}
	}
	if first == nil {
		return positions, nil
	}
	return nil, &Refusal{
		Class: amendsv1.EffectClass_EFFECT_CLASS_NOT_BEGUN, Reason: ReasonCancelled,
		Err: fmt.Errorf("key %s was withdrawn", first.GetIdempotencyKey()), CancelRevision: first.GetCancelRevision(),
	}
}

// Over refuses to go on with an action that was ended in part: a person settled
// that there is no refund of one of its keys, or one is withdrawn. Nothing of it
// is begun any more, and nothing sent again.
func Over(positions []Position, sha string) error {
	for _, p := range positions {
		switch {
		case slices.Contains(p.Intent.GetOverSha256(), sha), p.Tombstone.GetSettledBy() != "":
			return Refuse(ReasonSettledAbsent, "a person settled that there is no refund of key %s", p.Refund.GetIdempotencyKey())
		case p.Tombstone != nil:
			return Refuse(ReasonWithdrawnInPart, "key %s was withdrawn", p.Refund.GetIdempotencyKey())
		}
	}
	return nil
}

// Unproven reports whether the provider may show of any refund of an action
// what the entry does not say: it is in doubt, or was begun and thought to have
// done nothing.
func Unproven(positions []Position) bool {
	return slices.ContainsFunc(positions, func(p Position) bool { return p.Standing == Doubtful || p.Standing == Idle })
}
