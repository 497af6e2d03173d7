package ledger

import (
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	amendsv1 "github.com/amends-dev/amends/proto/amends/v1"
)

// WriteTombstones gives the entry in which every key of an action is withdrawn
// of which provably nothing was done, whatever became of the others: Positions
// shows which they are. It gives nil when there is nothing to write.
func WriteTombstones(e *amendsv1.EffectEntry, a *amendsv1.ActionRecord, revision uint64, at time.Time) (*amendsv1.EffectEntry, error) {
	n, changed := reopen(e, a.GetTenant(), a.GetOrderId()), false
	for _, r := range a.GetRefunds() {
		key := r.GetIdempotencyKey()
		if in := find(n, key); in != nil && standing(in) != Idle || tombstone(n, key) != nil {
			continue
		}
		n.Tombstones = append(n.Tombstones, &amendsv1.Tombstone{IdempotencyKey: key, CaseId: a.GetCaseId(), CancelRevision: revision, At: timestamppb.New(at)})
		changed = true
	}
	if !changed {
		return nil, nil
	}
	if err := seal(n); err != nil {
		return nil, err
	}
	return n, nil
}

// outcome says of a withdrawn refund what became of it.
func (p Position) outcome() *amendsv1.EffectOutcome {
	if by := p.Tombstone.GetSettledBy(); by != "" {
		return &amendsv1.EffectOutcome{Class: amendsv1.EffectClass_EFFECT_CLASS_REFUSED, Reason: ReasonSettledAbsent, At: p.Tombstone.GetAt(), SettledBy: by}
	}
	return &amendsv1.EffectOutcome{Class: amendsv1.EffectClass_EFFECT_CLASS_NOT_BEGUN, Reason: ReasonCancelled, At: p.Tombstone.GetAt()}
}
