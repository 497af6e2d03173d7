package casework

import (
	"slices"
	"strings"

	"google.golang.org/protobuf/proto"

	"github.com/amends-dev/amends/internal/money"
	amendsv1 "github.com/amends-dev/amends/proto/amends/v1"
)

// What the provider's webhooks say of a refund this case made is a hint. The
// case keeps the hint and has the executor read the refund again; only what was
// read moves it (TRUTH-2). One question is open at a time: news that come
// meanwhile are kept and make the next.

const (
	// maxUnconfirmed is what a record can hold; the last place is kept free while
	// a question is open, so that news always find one.
	maxUnconfirmed = 16
	maxAsked       = maxUnconfirmed - 1
	// maxConfirms bounds the questions of a case about its refunds.
	maxConfirms = 48
)

const (
	confirmTask = "confirm"
	// Why people have a case whose refund did not last, or is not known to.
	reasonFailedLater = "refund_failed_later"
	reasonUnconfirmed = "confirmation_failed"
)

// refundFamily is what kinds of events about refunds begin with.
const refundFamily = "refund."

// newsOf reports whether an event is about a refund this case made.
func (s *step) newsOf(e *amendsv1.ProviderEvent) bool {
	return strings.HasPrefix(e.GetKind(), refundFamily) && s.ownRefund(e.GetObjectId())
}

// doubted gives the effect whose refunds the next question, or the open one, is
// about: that of the first hint.
func doubted(rec *amendsv1.CaseRecord) *amendsv1.PastEffect {
	all := Effects(rec)
	if len(rec.GetUnconfirmed()) == 0 || len(all) == 0 {
		return nil
	}
	if made := madeBy(rec, rec.GetUnconfirmed()[0].GetObjectId()); made != nil {
		return made
	}
	return all[len(all)-1]
}

// together is how many of the first hints are about refunds of one action.
func together(rec *amendsv1.CaseRecord) int {
	sum, n := doubted(rec).GetEffect().GetActionSha256(), 0
	for _, e := range first(rec.GetUnconfirmed(), maxAsked) {
		if madeBy(rec, e.GetObjectId()).GetEffect().GetActionSha256() != sum {
			break
		}
		n++
	}
	return max(n, 1)
}

// keepNews keeps a hint for the next question, once.
func (s *step) keepNews(e *amendsv1.ProviderEvent) {
	have := s.rec.GetUnconfirmed()
	waiting := have[min(int(s.rec.GetConfirming()), len(have)):]
	if len(have) < maxUnconfirmed && !slices.ContainsFunc(waiting, func(w *amendsv1.ProviderEvent) bool { return proto.Equal(w, e) }) {
		s.rec.Unconfirmed = append(s.rec.Unconfirmed, proto.CloneOf(e))
	}
}

// askConfirmation asks the executor about what is kept, unless it is being
// asked.
func (s *step) askConfirmation() {
	n := s.node(TaskID(s.rec.GetCaseId(), confirmTask))
	switch {
	case len(s.rec.GetUnconfirmed()) == 0 || n != nil && running(n) != nil:
	case doubted(s.rec).GetAction() == nil || n != nil && len(n.GetAttempts()) >= maxConfirms:
		s.task, s.attempt, s.failure, s.retryable = n, nil, "confirmations_spent", false
		s.raise(EventUnconfirmed)
	default:
		s.rec.Confirming = uint32(together(s.rec)) //nolint:gosec // at most maxAsked
		s.dispatch(amendsv1.Slice_SLICE_CONFIRM, confirmTask)
	}
}

// confirmEvent says what the executor's read of the case's refunds came to. Only
// a refund that was read, and reads as it was asked for, counts; one that is not
// shown, or shown as something else, is known by nobody until it is (TRUTH-2).
func (s *step) confirmEvent(m *amendsv1.EffectResult) Event {
	all := m.GetClass() != amendsv1.EffectClass_EFFECT_CLASS_EVIDENCE_GAP
	for _, made := range doubted(s.rec).GetEffect().GetRefunds() {
		if made.GetOutcome().GetRefundId() == "" {
			continue
		}
		switch st := readBack(m, made).GetStatus(); {
		case failed(st):
			s.failure = reasonFailedLater
			return EventRefundFailed
		case !moving(st):
			all = false
		}
	}
	switch {
	case all:
		return EventConfirmed
	case m.GetClass() == amendsv1.EffectClass_EFFECT_CLASS_REFUSED:
		s.failure = orDefault(m.GetReason(), "refused")
		return EventUnconfirmed // for good: asking again would change nothing
	}
	return EventUnsettled
}

// sameRefund gives what an answer says of a refund the case made: the same key,
// payment, amount and refund, or nothing.
func sameRefund(m *amendsv1.EffectResult, made *amendsv1.RefundResult) *amendsv1.RefundResult {
	for _, r := range m.GetRefunds() {
		if r.GetIdempotencyKey() == made.GetIdempotencyKey() && r.GetPaymentId() == made.GetPaymentId() && money.Equal(r.GetAmount(), made.GetAmount()) &&
			r.GetOutcome().GetRefundId() == made.GetOutcome().GetRefundId() {
			return r
		}
	}
	return nil
}

// readBack gives a refund the case made as an answer has it read: nothing when
// it was not read, or is not what was asked for.
func readBack(m *amendsv1.EffectResult, made *amendsv1.RefundResult) *amendsv1.Refund {
	r := sameRefund(m, made).GetReadBack()
	if r.GetRefundId() != made.GetOutcome().GetRefundId() || r.GetPaymentId() != made.GetPaymentId() || !money.Equal(r.GetAmount(), made.GetAmount()) {
		return nil
	}
	return r
}

// readStatus is how a refund stands: as it was read back, where it was.
func readStatus(r *amendsv1.RefundResult) amendsv1.RefundStatus {
	if r.GetReadBack() != nil {
		return r.GetReadBack().GetStatus()
	}
	return r.GetOutcome().GetProviderStatus()
}

func failed(st amendsv1.RefundStatus) bool {
	return st == amendsv1.RefundStatus_REFUND_STATUS_FAILED || st == amendsv1.RefundStatus_REFUND_STATUS_CANCELED
}

// Guards and effects of confirmation.
var (
	confirmsLeft = Guard{"confirmations left", func(s *step) bool {
		tried := 0
		for _, a := range s.task.GetAttempts() {
			tried++
			if a.GetStatus() == amendsv1.AttemptStatus_ATTEMPT_STATUS_ACCEPTED {
				tried = 0 // each question has its own count
			}
		}
		return s.retryable && tried < s.lim.Confirmations && len(s.task.GetAttempts()) < maxConfirms
	}}

	noteNews = Effect{"keep the hint; confirm task", func(s *step) {
		e, _ := s.in.Payload.(*amendsv1.ProviderEvent) // the event is raised for no other payload
		s.say("the provider reports %s of %s; the executor is asked to read it", e.GetKind(), e.GetObjectId())
		s.keepNews(e)
		s.askConfirmation()
	}}
	confirmFailed = Effect{"confirm task for a refund said to have failed before", func(s *step) {
		said := s.rec.GetFailedRefunds()
		s.rec.FailedRefunds = nil
		for _, id := range said {
			e := madeBy(s.rec, id)
			switch {
			case e == nil && s.rec.GetOutcomeUnknown(): // it may be the one in doubt
				s.rec.FailedRefunds = append(s.rec.GetFailedRefunds(), id)
			case e != nil:
				s.keepNews(&amendsv1.ProviderEvent{OrderId: e.GetAction().GetOrderId(), Kind: refundFailed, ObjectId: id})
			}
		}
		s.askConfirmation()
	}}
	recordStatuses = Effect{"record how the refunds stand", func(s *step) {
		m, _ := s.in.Payload.(*amendsv1.EffectResult) // the event is raised for no other payload
		for _, made := range doubted(s.rec).GetEffect().GetRefunds() {
			r := readBack(m, made)
			if st := r.GetStatus(); made.GetOutcome().GetRefundId() != "" && (moving(st) || failed(st)) {
				made.Outcome.ProviderStatus, made.ReadBack = st, proto.CloneOf(r)
			}
		}
		s.say("executor: read again%s", refundNames(doubted(s.rec).GetEffect()))
	}}
	confirmNext = Effect{"confirm task for what came meanwhile", func(s *step) {
		s.succeed()
		s.rec.Unconfirmed = slices.Clone(s.rec.GetUnconfirmed()[min(int(s.rec.GetConfirming()), len(s.rec.GetUnconfirmed())):])
		s.rec.Confirming = 0
		s.askConfirmation()
	}}
	confirmAgain = Effect{"confirm task again", func(s *step) {
		s.failure = orDefault(s.attempt.GetReason(), s.failure)
		s.failAttempt()
		s.askConfirmation()
		s.say("whether the provider's news are so is not known (%s); the executor is asked again", s.failure)
	}}
	giveConfirmationUp = Effect{"the confirmation failed", func(s *step) {
		read := s.attempt.GetReason()
		s.failure = orDefault(read, s.failure)
		if s.attempt != nil {
			s.failAttempt()
		}
		if s.task != nil {
			s.task.Status, s.task.Reason = amendsv1.TaskStatus_TASK_STATUS_FAILED, clip(s.failure, 64)
		}
		s.rec.Confirming = 0
		s.say("what the provider reported could not be confirmed: %s", s.failure)
		s.failure = orDefault(read, reasonUnconfirmed)
	}}
	waitForAnswer = Effect{"the question stays open until its deadline", func(s *step) {
		if m, ok := s.in.Payload.(*amendsv1.EffectResult); ok {
			s.failure = orDefault(m.GetReason(), effectWord(m.GetClass()))
			if s.task.GetSlice() == amendsv1.Slice_SLICE_CONFIRM && m.GetClass() == amendsv1.EffectClass_EFFECT_CLASS_EVIDENCE_GAP {
				s.attempt.Reason = clip(s.failure, 64) // what people are told when it stays like that
			}
		}
		s.say("executor: not known yet: %s", s.failure)
	}}
)
