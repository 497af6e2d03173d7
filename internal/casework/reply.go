package casework

import (
	"strconv"
	"strings"

	"google.golang.org/protobuf/proto"

	"github.com/amends-dev/amends/internal/entitlement"
	"github.com/amends-dev/amends/internal/evidence"
	amendsv1 "github.com/amends-dev/amends/proto/amends/v1"
)

// startReply opens the reply track for a new text: the facts it may state are
// fixed here, from the record, and every draft is bound to their hash.
func (s *step) startReply(kind amendsv1.ReplyKind) {
	s.dropReply("superseded")
	facts := s.facts(kind)
	s.rec.Reply = &amendsv1.Reply{
		Kind: kind, Status: amendsv1.ReplyStatus_REPLY_STATUS_DRAFTING, Facts: facts, FactsSha256: evidence.ClaimsSHA256(kind, facts),
	}
	s.rec.Draft, s.rec.Verification = nil, nil
	s.draft()
}

func (s *step) draft() {
	r := s.rec.GetReply()
	r.Attempts++
	r.Status = amendsv1.ReplyStatus_REPLY_STATUS_DRAFTING
	s.dispatch(amendsv1.Slice_SLICE_COMPOSE, "draft-"+s.count(amendsv1.Slice_SLICE_COMPOSE))
}

// count numbers the tasks of a slice, from 1.
func (s *step) count(slice amendsv1.Slice) string {
	n := 1
	for _, t := range s.rec.GetTasks() {
		if t.GetSlice() == slice {
			n++
		}
	}
	return strconv.Itoa(n)
}

// dropReply ends a text that has not been sent.
func (s *step) dropReply(reason string) {
	s.cancelTasks(reason, amendsv1.Slice_SLICE_COMPOSE, amendsv1.Slice_SLICE_VERIFY)
}

// maxRefundsTold is how many refunds one text names.
const maxRefundsTold = 12

// facts gives what a reply of a kind may say, from the record alone (TRUTH-1).
func (s *step) facts(kind amendsv1.ReplyKind) []*amendsv1.Claim {
	var out []*amendsv1.Claim
	add := func(c ...*amendsv1.Claim) { out = append(out, c...) }
	is := func(k amendsv1.ClaimKind) *amendsv1.Claim { return &amendsv1.Claim{Kind: k} }
	switch kind {
	case amendsv1.ReplyKind_REPLY_KIND_CLARIFY:
		if s.rec.GetTriage().GetReason() == "order_not_found" {
			add(is(amendsv1.ClaimKind_CLAIM_KIND_ORDER_NOT_FOUND))
		}
		add(is(amendsv1.ClaimKind_CLAIM_KIND_ASK_ORDER_NUMBER), &amendsv1.Claim{Kind: amendsv1.ClaimKind_CLAIM_KIND_REPLY_BY, Time: s.rec.GetDeadlines().GetCustomerReply()})
	case amendsv1.ReplyKind_REPLY_KIND_HOLDING:
		add(s.rec.GetDecision().GetFacts()...)
		add(&amendsv1.Claim{Kind: amendsv1.ClaimKind_CLAIM_KIND_RECHECK_AT, Time: s.rec.GetDeadlines().GetRecheck()})
	case amendsv1.ReplyKind_REPLY_KIND_REFUNDED:
		add(s.rec.GetDecision().GetFacts()...)
		e, _ := s.in.Payload.(*amendsv1.EffectResult) // what was acknowledged just now
		for _, r := range e.GetRefunds() {
			add(entitlement.RefundClaim(r.GetOutcome().GetRefundId(), r.GetAmount(), readStatus(r)))
		}
	case amendsv1.ReplyKind_REPLY_KIND_EXPLAIN:
		if s.rec.GetState() == declined && (s.denied() || s.rec.GetDecision().GetReason() == reasonDeclinedByPerson) {
			add(is(amendsv1.ClaimKind_CLAIM_KIND_REVIEW_DECLINED))
			break
		}
		add(s.rec.GetDecision().GetFacts()...)
	case amendsv1.ReplyKind_REPLY_KIND_CANCELLED:
		add(is(amendsv1.ClaimKind_CLAIM_KIND_CANCELLED_NOTHING_REFUNDED))
		for _, r := range s.rec.GetPayment().GetRefunds() { // made before, by others
			if moving(r.GetStatus()) && len(out) <= maxRefundsTold {
				add(entitlement.RefundClaim(r.GetRefundId(), r.GetAmount(), r.GetStatus()))
			}
		}
	case amendsv1.ReplyKind_REPLY_KIND_HANDOFF:
		for _, c := range s.rec.GetDecision().GetFacts() {
			if c.GetKind() == amendsv1.ClaimKind_CLAIM_KIND_REFUND_EXISTS {
				add(c)
			}
		}
		add(is(amendsv1.ClaimKind_CLAIM_KIND_HANDED_TO_PERSON))
	case amendsv1.ReplyKind_REPLY_KIND_WRITTEN:
		add(s.writtenFacts()...)
	default: // no such kind: a reply without facts is refused by its contract
	}
	if s.masked() {
		add(is(amendsv1.ClaimKind_CLAIM_KIND_SENSITIVE_DATA_MASKED))
	}
	return out
}

func (s *step) denied() bool {
	for _, a := range s.rec.GetApprovals() {
		if a.GetVerdict() == amendsv1.Verdict_VERDICT_DENY && a.GetActionSha256() == s.rec.GetActionSha256() {
			return true
		}
	}
	return false
}

func (s *step) masked() bool {
	for _, m := range s.rec.GetMessages() {
		for _, f := range m.GetText().GetFlags() {
			if f == amendsv1.TextFlag_TEXT_FLAG_MASKED {
				return true
			}
		}
	}
	return false
}

// Effects of the reply track.
var (
	holdingReply = Effect{"reply: holding", func(s *step) {
		for _, r := range s.rec.GetReplies() {
			if r.GetKind() == amendsv1.ReplyKind_REPLY_KIND_HOLDING {
				return // told once; a recheck with the same answer is not news
			}
		}
		s.startReply(amendsv1.ReplyKind_REPLY_KIND_HOLDING)
	}}
	explain       = Effect{"reply: explain or status", func(s *step) { s.startReply(amendsv1.ReplyKind_REPLY_KIND_EXPLAIN) }}
	explainDenial = Effect{"reply", func(s *step) { s.startReply(amendsv1.ReplyKind_REPLY_KIND_EXPLAIN) }}
	recordDraft   = Effect{"record the draft", func(s *step) {
		s.succeed()
		d, _ := s.in.Payload.(*amendsv1.Draft) // the event is raised for no other payload
		s.rec.Draft = proto.CloneOf(d)
		s.say("drafted: %d claims", len(d.GetClaims()))
	}}
	verifyDraft = Effect{"reply VERIFYING", func(s *step) {
		s.rec.Reply.Status = amendsv1.ReplyStatus_REPLY_STATUS_VERIFYING
		s.dispatch(amendsv1.Slice_SLICE_VERIFY, "verify-"+s.count(amendsv1.Slice_SLICE_VERIFY))
	}}
	sendReply = Effect{"reply SENT", func(s *step) {
		s.succeed()
		v, _ := s.in.Payload.(*amendsv1.Verification) // the event is raised for no other payload
		s.rec.Verification = proto.CloneOf(v)
		s.rec.Reply.Status = amendsv1.ReplyStatus_REPLY_STATUS_SENT
		s.rec.Replies = append(s.rec.Replies, &amendsv1.SentReply{
			Kind: s.rec.GetReply().GetKind(), Text: s.rec.GetDraft().GetText(), Version: s.rec.GetVersion(), SentAt: s.in.GetBrokerTime(),
		})
		s.say("verified: %d claims checked against records; reply sent", len(v.GetChecks()))
	}}
	closeCase       = Effect{"closed", func(s *step) { s.rec.Deadlines = &amendsv1.Deadlines{} }}
	recordRejection = Effect{"record the rejection", func(s *step) {
		s.succeed()
		v, _ := s.in.Payload.(*amendsv1.Verification) // the event is raised for no other payload
		s.rec.Verification = proto.CloneOf(v)
		var reasons []string
		for _, c := range v.GetChecks() {
			if !c.GetSupported() {
				reasons = append(reasons, c.GetReason())
			}
		}
		s.rec.Reply.Rejections = reasons
		s.say("draft rejected: %s", strings.Join(reasons, ", "))
	}}
	redraft = Effect{"redraft with the reasons", func(s *step) {
		s.rec.Consumption.Redrafts++
		s.draft()
	}}
)
