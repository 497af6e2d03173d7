package ledger

import (
	"fmt"
	"slices"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	amendsv1 "github.com/amends-dev/amends/proto/amends/v1"
)

// Begin says how an action is begun.
type Begin struct {
	Action *amendsv1.ActionRecord
	SHA256 string
	// Positions are those of the entry the intents are written to.
	Positions []Position
	// ApprovalIDs are spent by the intents; none below the executor's caps.
	ApprovalIDs []string
	// Body gives the request bytes of a refund begun for the first time.
	Body func(*amendsv1.ActionRefund) ([]byte, error)
	At   time.Time
	// Clock is a moment, by the broker's clock, that is not later than now; At
	// when it is zero.
	Clock time.Time
	// Window is how long a call may still start.
	Window time.Duration
}

// WriteIntent gives the entry in which every open refund of the action is
// begun, in one step: the action is spent as a whole. A refund begun before
// keeps its key, its bytes and the time of its first beginning, and gets the next
// call number; one in doubt also keeps the beginning and the approvals it was
// begun under.
func WriteIntent(e *amendsv1.EffectEntry, b Begin) (*amendsv1.EffectEntry, error) {
	if err := Over(b.Positions, b.SHA256); err != nil {
		return nil, err
	}
	for _, in := range e.GetIntents() {
		for _, id := range b.ApprovalIDs {
			if slices.Contains(in.GetApprovalIds(), id) && in.GetActionSha256() != b.SHA256 {
				return nil, Refuse(ReasonApprovalSpent, "approval %s was spent by action %s", id, in.GetActionSha256())
			}
		}
	}
	n := reopen(e, b.Action.GetTenant(), b.Action.GetOrderId())
	for _, p := range b.Positions {
		if !p.Open() {
			continue
		}
		in := find(n, p.Refund.GetIdempotencyKey())
		if in == nil {
			body, err := b.Body(p.Refund)
			if err != nil {
				return nil, fmt.Errorf("refund %s: request body: %w", p.Refund.GetIdempotencyKey(), err)
			}
			in = &amendsv1.EffectIntent{
				IdempotencyKey: p.Refund.GetIdempotencyKey(), CaseId: b.Action.GetCaseId(), PaymentId: p.Refund.GetPaymentId(),
				Amount: p.Refund.GetAmount(), Body: body, FirstBegunAt: timestamppb.New(b.first()),
			}
			n.Intents = append(n.Intents, in)
		}
		if in.GetCalls() >= MaxCalls {
			return nil, Undecidable(ReasonCallsSpent, "key %s was called %d times", in.GetIdempotencyKey(), in.GetCalls())
		}
		if in.FirstBegunAt == nil {
			in.FirstBegunAt = in.GetBegunAt() // written before there was such a field
		}
		if p.Standing != Doubtful {
			in.ActionSha256, in.ApprovalIds = b.SHA256, b.ApprovalIDs
			in.BegunAt, in.Outcome = timestamppb.New(b.At), nil
		}
		in.CallBefore = timestamppb.New(b.At.Add(b.Window))
		in.Calls++
	}
	if err := seal(n); err != nil {
		return nil, err
	}
	return n, nil
}

// first dates a key's first beginning: a clock that is ahead makes it no later.
func (b Begin) first() time.Time {
	if !b.Clock.IsZero() && b.Clock.Before(b.At) {
		return b.Clock
	}
	return b.At
}

// FirstBegun is not later than the first call ever made under an intent's key.
func FirstBegun(in *amendsv1.EffectIntent) time.Time {
	if in.GetFirstBegunAt() == nil {
		return in.GetBegunAt().AsTime()
	}
	return in.GetFirstBegunAt().AsTime()
}
