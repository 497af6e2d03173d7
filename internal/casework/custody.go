package casework

import (
	"slices"

	"github.com/amends-dev/amends/internal/approval"
	"github.com/amends-dev/amends/internal/entitlement"
	"github.com/amends-dev/amends/internal/evidence"
	"github.com/amends-dev/amends/internal/ident"
	"github.com/amends-dev/amends/internal/money"
	amendsv1 "github.com/amends-dev/amends/proto/amends/v1"
)

// Queues a case can be in. A case that came back to the desk is in none.
const (
	QueueHandoff        = "handoff"
	QueueReconciliation = "reconciliation"
	QueueDesk           = "desk"
)

const (
	reasonByPerson         = "decided_by_person"
	reasonDeclinedByPerson = "declined_by_person"
)

// maxProposal is the highest number a proposal can have; it names its tasks
// and approvals.
const maxProposal = 16

// maxCustodyEvents is how many transfers a record shows; its log has all.
const maxCustodyEvents = 64

// Effects of custody.
var handOver = Effect{"custody to a person; reply: hand-off notice", func(s *step) {
	s.takeCustody(QueueHandoff)
	s.startReply(amendsv1.ReplyKind_REPLY_KIND_HANDOFF)
}}

// personWrites hands over without another text: the desk could not produce
// one that was verified.
var personWrites = Effect{"a person writes", func(s *step) {
	s.takeCustody(QueueHandoff)
	s.dropReply("person_writes")
	s.rec.Reply = nil
}}

func (s *step) takeCustody(queue string) {
	reason := s.custodyReason()
	if n := s.executeTask(); n != nil && running(n) != nil {
		s.rec.OutcomeUnknown = true // nobody waits for its answer any more
	}
	s.cancelTasks("handed_over", amendsv1.Slice_SLICE_PAYMENT, amendsv1.Slice_SLICE_POLICY, amendsv1.Slice_SLICE_EXECUTE, amendsv1.Slice_SLICE_CANCEL, amendsv1.Slice_SLICE_SETTLE)
	s.rec.Deadlines, s.rec.HeldSince = &amendsv1.Deadlines{}, nil
	author := s.author()
	s.transfer(queue, "", reason)
	if author != "" {
		s.transfer(queue, author, reason)
	}
	s.say("handed to people: %s", reason)
}

func (s *step) custodyReason() string {
	last := orDefault(s.failure, s.finding.Reason)
	switch p := s.in.Payload.(type) {
	case *amendsv1.EffectResult:
		last = orDefault(s.failure, orDefault(p.GetReason(), "effect_not_as_approved"))
	case *amendsv1.Verification:
		last = orDefault(s.failure, "reply_not_verified")
	case *amendsv1.ProviderEvent:
		last = orDefault(s.failure, p.GetKind())
	case *amendsv1.EffectFinding, *amendsv1.CaseFinding:
		last = findingOf(p).GetCode()
	case *amendsv1.CaseOpened, *amendsv1.CustomerMessage:
		last = orDefault(last, s.rec.GetTriage().GetReason())
	}
	return clip(orDefault(last, "deadline_passed"), 64)
}

// transfer moves the case from whoever has it to a queue or a custodian, as
// one custody event: there is one owner at any time.
func (s *step) transfer(queue, custodian, reason string) {
	from, to := holder(s.rec.GetCustody()), custodian
	if to == "" {
		to = queue
	}
	reason = clip(reason, 64)
	events := s.rec.GetCustody().GetEvents()
	c := &amendsv1.Custody{Queue: queue, Custodian: custodian, Reason: reason, Since: s.in.GetBrokerTime()}
	if custodian != "" {
		c.Reason, c.Until = s.rec.GetCustody().GetReason(), s.after(s.lim.CustodyLease)
	}
	s.rec.Custody = c
	c.Events = append(slices.Clone(events), &amendsv1.CustodyEvent{
		From: from, To: to, Reason: reason, PacketSha256: PacketSHA256(s.rec), At: s.in.GetBrokerTime(),
	})
	c.Events = c.Events[max(len(c.Events)-maxCustodyEvents, 0):]
}

// holder names who has the case.
func holder(c *amendsv1.Custody) string {
	switch {
	case c.GetCustodian() != "":
		return c.GetCustodian()
	case c.GetQueue() != "":
		return c.GetQueue()
	}
	return QueueDesk
}

// toDesk ends the custody of people, where they had it.
func (s *step) toDesk(reason string) {
	if holder(s.rec.GetCustody()) != QueueDesk {
		s.transfer(QueueDesk, "", reason)
	}
}

// custodyEvent judges what a custodian signed: only the one who has the case
// decides it, and only as it was shown.
func (s *step) custodyEvent(d *amendsv1.CustodyDecision) (Event, string) {
	check, c := s.in.GetApprover(), s.rec.GetCustody()
	mine := c.GetCustodian() == d.GetCustodianId()
	held := c.GetCustodian() != "" && s.at.Before(c.GetUntil().AsTime())
	switch {
	case s.rec.GetState() != handoff && (s.rec.GetState() != reconciling || d.GetStep() != amendsv1.CustodyStep_CUSTODY_STEP_TAKE):
		return EventRefused, "not_in_custody"
	case !check.GetValid():
		return EventRefused, orDefault(check.GetReason(), "custodian_unchecked")
	case s.at.Sub(d.GetSignedAt().AsTime()).Abs() > s.lim.SignatureAge:
		return EventRefused, "signature_stale"
	case d.GetStep() == amendsv1.CustodyStep_CUSTODY_STEP_TAKE && held && !mine:
		return EventRefused, "in_custody_of_another"
	case d.GetStep() == amendsv1.CustodyStep_CUSTODY_STEP_TAKE:
		return EventCustodyTaken, ""
	case !mine:
		return EventRefused, "not_the_custodian"
	case d.GetStep() == amendsv1.CustodyStep_CUSTODY_STEP_RELEASE:
		return EventCustodyReleased, ""
	case !held:
		return EventRefused, "custody_expired"
	case d.GetPacketSha256() != PacketSHA256(s.rec):
		return EventRefused, "record_changed"
	}
	if d.GetStep() == amendsv1.CustodyStep_CUSTODY_STEP_SETTLE {
		if reason := s.unsettleable(d); reason != "" {
			return EventRefused, reason
		}
		return EventSettles, ""
	}
	// Whatever people decide, it first has to be known whether money moved. Of
	// a refund that has an id and is not shown they know as much as there is.
	switch {
	case s.rec.GetOutcomeUnknown() && d.GetStep() == amendsv1.CustodyStep_CUSTODY_STEP_INVESTIGATE && s.executeTask() != nil:
		return EventReconcile, ""
	case len(inDoubt(s.rec)) > 0:
		return EventRefused, "outcome_unknown"
	}
	if s.rec.GetCustomerId() == ident.Desk && d.GetStep() != amendsv1.CustodyStep_CUSTODY_STEP_RESOLVE {
		return EventRefused, "no_customer"
	}
	switch d.GetStep() {
	case amendsv1.CustodyStep_CUSTODY_STEP_RESOLVE:
		if !s.quiet() {
			return EventRefused, "customer_waits"
		}
		return EventResolved, ""
	case amendsv1.CustodyStep_CUSTODY_STEP_PROPOSE:
		if reason := s.unproposable(d); reason != "" {
			return EventRefused, reason
		}
		return EventProposed, ""
	case amendsv1.CustodyStep_CUSTODY_STEP_DECLINE:
		return EventDeclined, ""
	case amendsv1.CustodyStep_CUSTODY_STEP_ASK:
		return EventAsked, ""
	case amendsv1.CustodyStep_CUSTODY_STEP_INVESTIGATE:
		if s.rec.GetTriage().GetOrderId() == "" {
			return EventRefused, "order_unknown"
		}
		return EventInvestigate, ""
	case amendsv1.CustodyStep_CUSTODY_STEP_CLOSE:
		return EventWritten, ""
	default:
		return EventRefused, "step_unknown"
	}
}

// unproposable says why the refunds a custodian names make no action. The
// executor judges them again, from the order as it is then.
func (s *step) unproposable(d *amendsv1.CustodyDecision) string {
	p := s.rec.GetPayment()
	switch {
	case !p.GetComplete() || p.GetOrder() == nil:
		return "evidence_missing"
	case s.rec.GetConsumption().GetProposals() >= maxProposal:
		return "proposals_spent"
	}
	for _, r := range d.GetRefunds() {
		i := slices.IndexFunc(p.GetCaptures(), func(c *amendsv1.Capture) bool { return c.GetPaymentId() == r.GetPaymentId() })
		switch {
		case withdrawnKey(s.rec, r.GetIdempotencyKey()):
			return reasonWithdrawn
		case i < 0:
			return "payment_unknown"
		case r.GetAmount().GetCurrency() != p.GetCaptures()[i].GetAmount().GetCurrency():
			return "currency_differs"
		case r.GetAmount().GetMinor() > p.GetCaptures()[i].GetAmount().GetMinor():
			return "exceeds_captured"
		}
	}
	if _, sum := s.action(d.GetRefunds(), d.GetCustodianId()); sum == "" {
		return "action_not_canonical"
	}
	return ""
}

// decision gives the custodian's decision the step is about.
func (s *step) custodyDecision() *amendsv1.CustodyDecision {
	d, _ := s.in.Payload.(*amendsv1.CustodyDecision) // the events are raised for no other payload
	return d
}

// Effects of a custodian's decision.
var (
	takeCase = Effect{"custody to the signer", func(s *step) {
		d := s.custodyDecision()
		s.transfer(s.rec.GetCustody().GetQueue(), d.GetCustodianId(), orDefault(d.GetReason(), "taken"))
		s.say("taken by %s until %s", d.GetCustodianId(), s.rec.GetCustody().GetUntil().AsTime().UTC().Format("2006-01-02T15:04:05Z"))
	}}
	releaseCase = Effect{"custody back to the queue", func(s *step) {
		d := s.custodyDecision()
		why := s.rec.GetCustody().GetReason()
		s.transfer(s.rec.GetCustody().GetQueue(), "", orDefault(d.GetReason(), "released"))
		s.rec.Custody.Reason = why // why people have it at all
		s.say("given back to the queue by %s", d.GetCustodianId())
	}}
	returnCase = Effect{"custody back to the desk", func(s *step) {
		d := s.custodyDecision()
		if d.GetStep() != amendsv1.CustodyStep_CUSTODY_STEP_INVESTIGATE && len(inDoubt(s.rec)) == 0 {
			s.rec.OutcomeUnknown = false
		}
		s.toDesk(approval.StepName(d.GetStep()))
		s.dropReply("superseded")
		s.rec.Reply = nil
		s.rec.Deadlines = &amendsv1.Deadlines{}
		s.rec.Consumption.Grants++
		s.say("%s decided: %s", d.GetCustodianId(), approval.StepName(d.GetStep()))
	}}
	decideByPerson = Effect{"record the decision", func(s *step) {
		d := s.custodyDecision()
		old := s.rec.GetDecision()
		next := &amendsv1.Decision{
			Refund: true, Reason: reasonByPerson, EvidenceComplete: true, NeedsApproval: true, ApproversNeeded: 1,
			Refunds: d.GetRefunds(), CallIds: old.GetCallIds(), PolicyCitation: old.GetPolicyCitation(), Rules: entitlement.RuleSet,
		}
		for _, c := range s.rec.GetPayment().GetCalls() {
			if !slices.Contains(next.GetCallIds(), c.GetCallId()) {
				next.CallIds = append(next.CallIds, c.GetCallId())
			}
		}
		next.Facts = established(old.GetFacts())
		s.rec.Decision = next
	}}
	proposeByPerson = Effect{"action record, proposed by the custodian", func(s *step) {
		d := s.custodyDecision()
		s.rec.Consumption.Proposals++
		s.setAction(s.action(d.GetRefunds(), d.GetCustodianId()))
		if total, err := approval.Total(s.rec.GetAction()); err == nil { // it was canonical when it was judged
			s.rec.Decision.ApproversNeeded = uint32(max(s.approversFor(total), 1))
		}
	}}
	declineByPerson = Effect{"record the decision", func(s *step) {
		old := s.rec.GetDecision()
		s.rec.Decision = &amendsv1.Decision{
			Reason: reasonDeclinedByPerson, EvidenceComplete: old.GetEvidenceComplete(), CallIds: old.GetCallIds(),
			PolicyCitation: old.GetPolicyCitation(), Facts: established(old.GetFacts()), Rules: entitlement.RuleSet,
		}
		s.setAction(nil, "")
	}}
	awaitAnswer = Effect{"deadline", func(s *step) { s.rec.Deadlines.CustomerReply = s.after(s.lim.ClarifyDeadline) }}
	sendWritten = Effect{"reply: the custodian's words, VERIFYING", func(s *step) {
		facts := s.facts(amendsv1.ReplyKind_REPLY_KIND_WRITTEN)
		sum := evidence.ClaimsSHA256(amendsv1.ReplyKind_REPLY_KIND_WRITTEN, facts)
		s.rec.Reply = &amendsv1.Reply{
			Kind: amendsv1.ReplyKind_REPLY_KIND_WRITTEN, Attempts: 1, Facts: facts, FactsSha256: sum,
			Status: amendsv1.ReplyStatus_REPLY_STATUS_VERIFYING,
		}
		s.rec.Draft = &amendsv1.Draft{Kind: s.rec.GetReply().GetKind(), Text: s.custodyDecision().GetText(), Claims: facts, FactsSha256: sum, Language: "en"}
		s.rec.Verification = nil
		s.dispatch(amendsv1.Slice_SLICE_VERIFY, "verify-"+s.count(amendsv1.Slice_SLICE_VERIFY))
	}}
	investigateAgain = Effect{"plan: payment and policy, once more", func(s *step) {
		s.setAction(nil, "")
		if s.dispatch(amendsv1.Slice_SLICE_PAYMENT, "pay") && !s.statusOnly() {
			s.dispatch(amendsv1.Slice_SLICE_POLICY, "pol")
		}
	}}
)

// askExecutorAgain brings a case back to where its outcome is looked for.
var askExecutorAgain = Effect{"execute task again, same key", func(s *step) {
	s.transfer(QueueReconciliation, "", "outcome_unknown")
	n := s.executeTask()
	makeRoom(n)
	s.dispatch(n.GetSlice(), taskName(s.rec.GetCaseId(), n.GetTaskId()))
}}

// author gives who wrote the words that were just not verified: they stay with
// that person.
func (s *step) author() string {
	_, judged := s.in.Payload.(*amendsv1.Verification)
	if !judged || s.rec.GetReply().GetKind() != amendsv1.ReplyKind_REPLY_KIND_WRITTEN {
		return ""
	}
	events := s.rec.GetCustody().GetEvents()
	if len(events) == 0 || events[len(events)-1].GetTo() != QueueDesk {
		return ""
	}
	return events[len(events)-1].GetFrom()
}

// approversFor gives how many people must approve a total, the order's refunds
// of the last 30 days counted in.
func (s *step) approversFor(total *amendsv1.Money) int {
	for _, r := range s.rec.GetPayment().GetRefunds() {
		if r.GetAmount().GetCurrency() != total.GetCurrency() || !moving(r.GetStatus()) {
			continue
		}
		sum, err := money.Add(total, r.GetAmount())
		if err != nil {
			return 2 // beyond what can be counted
		}
		total = sum
	}
	return entitlement.ApproversFor(s.rec.GetPolicy().GetRule(), total)
}

// established are the facts that stay true whatever people decide.
func established(facts []*amendsv1.Claim) []*amendsv1.Claim {
	var out []*amendsv1.Claim
	for _, f := range facts {
		switch f.GetKind() {
		case amendsv1.ClaimKind_CLAIM_KIND_PAYMENTS_FOUND, amendsv1.ClaimKind_CLAIM_KIND_DUPLICATE_FOUND, amendsv1.ClaimKind_CLAIM_KIND_REFUND_EXISTS,
			amendsv1.ClaimKind_CLAIM_KIND_SPLIT_PART, amendsv1.ClaimKind_CLAIM_KIND_ORDER_TOTAL, amendsv1.ClaimKind_CLAIM_KIND_OUTSIDE_WINDOW,
			amendsv1.ClaimKind_CLAIM_KIND_NO_REFUND_ON_RECORD:
			out = append(out, f)
		default: // about what comes next, which people change
		}
	}
	return out
}

// writtenFacts are what a custodian's own words may state: what the desk found
// and what is decided.
func (s *step) writtenFacts() []*amendsv1.Claim {
	out := established(s.rec.GetDecision().GetFacts())
	if s.rec.GetState() == awaitCustomer {
		return append(out, &amendsv1.Claim{Kind: amendsv1.ClaimKind_CLAIM_KIND_REPLY_BY, Time: s.rec.GetDeadlines().GetCustomerReply()})
	}
	return append(out, &amendsv1.Claim{Kind: amendsv1.ClaimKind_CLAIM_KIND_REVIEW_DECLINED})
}
