package casework

import (
	"slices"
	"strings"

	amendsv1 "github.com/amends-dev/amends/proto/amends/v1"
)

// Short names of the states, for the table only.
const (
	received      = amendsv1.CaseState_CASE_STATE_RECEIVED
	investigating = amendsv1.CaseState_CASE_STATE_INVESTIGATING
	awaitCustomer = amendsv1.CaseState_CASE_STATE_AWAITING_CUSTOMER
	holding       = amendsv1.CaseState_CASE_STATE_HOLD_FOR_EVIDENCE
	awaitApproval = amendsv1.CaseState_CASE_STATE_AWAITING_APPROVAL
	requested     = amendsv1.CaseState_CASE_STATE_REFUND_REQUESTED
	reconciling   = amendsv1.CaseState_CASE_STATE_RECONCILING
	refunded      = amendsv1.CaseState_CASE_STATE_REFUNDED
	declined      = amendsv1.CaseState_CASE_STATE_DECLINED
	cancelled     = amendsv1.CaseState_CASE_STATE_CANCELLED
	handoff       = amendsv1.CaseState_CASE_STATE_HUMAN_HANDOFF
	closed        = amendsv1.CaseState_CASE_STATE_VERIFIED_CLOSED

	// none is the state of a case that does not exist yet.
	none = amendsv1.CaseState_CASE_STATE_UNSPECIFIED
)

// Same marks a row that leaves the state as it is.
const Same = amendsv1.CaseState(-1)

// Guard decides, from the record and the input alone, whether a row applies.
type Guard struct {
	Name  string
	Holds func(*step) bool
}

// Effect changes the record when its row is followed. Effects never assign the
// state.
type Effect struct {
	Name  string
	Apply func(*step)
}

// Row is one line of the state machine.
type Row struct {
	// Name is written into every version that followed the row.
	Name string
	From []amendsv1.CaseState
	On   Event
	// When must hold, all of it. Rows of the same state and event are tried in
	// the order of the table.
	When []Guard
	// To is the one destination, or Same.
	To   amendsv1.CaseState
	Then []Effect
}

var (
	open6  = []amendsv1.CaseState{received, investigating, awaitApproval, holding, awaitCustomer}
	live   = []amendsv1.CaseState{received, investigating, awaitCustomer, holding, awaitApproval, requested, reconciling, refunded, declined, cancelled, handoff}
	always = append([]amendsv1.CaseState{none, closed}, live...)
	// known are those of a case that exists.
	known = always[1:]
	// attended are those in which people have the case, or the executor is about
	// to say what became of it; unattended are the others.
	attended   = []amendsv1.CaseState{requested, reconciling, handoff}
	unattended = []amendsv1.CaseState{received, investigating, awaitCustomer, holding, awaitApproval, refunded, declined, cancelled, closed}
)

// Table is the state machine.
var Table = []Row{
	{"opened", []amendsv1.CaseState{none}, EventOpened, nil, received, effects(recordMessage, pinVersions, triageInput)},

	{"triaged.supported", []amendsv1.CaseState{received}, EventTriaged, guards(isSupported), investigating, effects(planRefund)},
	{"triaged.status", []amendsv1.CaseState{received}, EventTriaged, guards(isStatusOnly), investigating, effects(planStatus)},
	{"triaged.clarify", []amendsv1.CaseState{received}, EventTriaged, guards(isUnclear, clarificationsLeft), awaitCustomer, effects(askCustomer)},
	{"triaged.clarify.none_left", []amendsv1.CaseState{received}, EventTriaged, guards(isUnclear), handoff, effects(handOver)},
	{"triaged.cancel", []amendsv1.CaseState{received}, EventTriaged, guards(isCancel, nothingMoved), cancelled, effects(withdraw)},
	{"triaged.person", []amendsv1.CaseState{received}, EventTriaged, nil, handoff, effects(handOver)},

	{"customer.answered", []amendsv1.CaseState{awaitCustomer}, EventMessage, nil, received, effects(recordMessage, triageInput)},
	{"customer.answered.other_order", []amendsv1.CaseState{awaitCustomer}, EventFactChanged, nil, received, effects(recordMessage, triageInput)},
	{"customer.silent", []amendsv1.CaseState{awaitCustomer}, EventCustomerOverdue, nil, handoff, effects(handOver)},

	{"result.recorded", []amendsv1.CaseState{investigating}, EventResult, nil, Same, effects(recordResult, mergeWhenPlanned)},
	{"merge.refund", []amendsv1.CaseState{investigating}, EventMerge, guards(findsRefund, belowThreshold), requested, effects(decide, proposeAction, execute)},
	{"merge.approval", []amendsv1.CaseState{investigating}, EventMerge, guards(findsRefund, proposalsLeft), awaitApproval, effects(decide, proposeAction, awaitApprover)},
	{"merge.approval.none_left", []amendsv1.CaseState{investigating}, EventMerge, guards(findsRefund), handoff, effects(decide, handOver)},
	{"merge.hold", []amendsv1.CaseState{investigating}, EventMerge, guards(findsHold), holding, effects(decide, scheduleRecheck, holdingReply)},
	{"merge.nothing_due", []amendsv1.CaseState{investigating}, EventMerge, guards(findsNothingDue), declined, effects(decide, explain)},
	{"merge.person", []amendsv1.CaseState{investigating}, EventMerge, guards(findsPerson), handoff, effects(decide, handOver)},

	{"attempt.retried", []amendsv1.CaseState{investigating}, EventAttemptFailed, guards(isInvestigation, attemptsLeft), Same, effects(retry)},
	{"attempt.none_left", []amendsv1.CaseState{investigating}, EventAttemptFailed, guards(isInvestigation), handoff, effects(giveUp, handOver)},
	{"reply.attempt.retried", live, EventAttemptFailed, guards(isReplyWork, attemptsLeft), Same, effects(retry)},
	{"reply.attempt.none_left", live, EventAttemptFailed, guards(isReplyWork), handoff, effects(giveUp, personWrites)},
	{"effect.attempt.failed", []amendsv1.CaseState{requested, reconciling}, EventAttemptFailed, nil, Same, effects(outcomeUnknown)},

	{"recheck", []amendsv1.CaseState{holding}, EventRecheckDue, guards(rechecksLeft), investigating, effects(lookAgain)},
	{"recheck.provider", []amendsv1.CaseState{holding}, EventProvider, guards(rechecksLeft), investigating, effects(lookAgain)},
	{"recheck.message", []amendsv1.CaseState{holding}, EventMessage, guards(rechecksLeft), investigating, effects(recordMessage, lookAgain)},
	{"recheck.none_left", []amendsv1.CaseState{holding}, EventRecheckDue, nil, handoff, effects(handOver)},
	{"recheck.provider.none_left", []amendsv1.CaseState{holding}, EventProvider, nil, handoff, effects(handOver)},
	{"recheck.message.none_left", []amendsv1.CaseState{holding}, EventMessage, nil, handoff, effects(recordMessage, handOver)},

	{"approved", []amendsv1.CaseState{awaitApproval}, EventApproval, guards(enoughApprovers), requested, effects(recordApproval, execute)},
	{"approved.one_more", []amendsv1.CaseState{awaitApproval}, EventApproval, nil, Same, effects(recordApproval)},
	{"denied", []amendsv1.CaseState{awaitApproval}, EventDenial, nil, declined, effects(recordDenial, explainDenial)},
	{"approval.expired", []amendsv1.CaseState{awaitApproval}, EventApprovalExpired, guards(proposalsLeft), investigating, effects(voidAction, lookAgain)},
	{"approval.expired.none_left", []amendsv1.CaseState{awaitApproval}, EventApprovalExpired, nil, handoff, effects(voidAction, handOver)},
	{"action.void.message", []amendsv1.CaseState{awaitApproval}, EventFactChanged, nil, investigating, effects(recordMessage, voidAction, proposalBack, lookAgain)},
	{"action.void.provider", []amendsv1.CaseState{awaitApproval}, EventProvider, nil, investigating, effects(voidAction, proposalBack, lookAgain)},

	{"effect.acknowledged", []amendsv1.CaseState{requested}, EventAcknowledged, guards(matchesAction), refunded, effects(recordEffect, tellRefund, confirmFailed)},
	{"effect.differs", []amendsv1.CaseState{requested, reconciling}, EventAcknowledged, guards(differsFromAction), handoff, effects(recordEffect, handOver, confirmFailed)},
	{"effect.refused", []amendsv1.CaseState{requested}, EventEffectRefused, nil, handoff, effects(recordEffect, handOver, confirmFailed)},
	{"effect.none.withdrawn", []amendsv1.CaseState{requested, reconciling}, EventNoEffect, guards(isWithdrawal, newestAnswer), handoff, effects(recordEffect, handOver, confirmFailed)},
	{"effect.none", []amendsv1.CaseState{requested}, EventNoEffect, guards(newestAnswer), Same, effects(recordEffect, askAgainLater)},
	{"effect.unknown", []amendsv1.CaseState{requested, reconciling}, EventEffectUnknown, nil, Same, effects(recordEffect, outcomeUnknown)},
	{"effect.held", []amendsv1.CaseState{requested, reconciling}, EventEffectHeld, nil, Same, effects(recordEffect, waitForResume)},
	{"effect.stop_lifted", []amendsv1.CaseState{requested, reconciling}, EventStopLifted, guards(attemptsEverLeft), Same, effects(executeAgain, sayLifted)},
	{"effect.overdue", []amendsv1.CaseState{requested}, EventEffectOverdue, guards(dispatchesLeft), Same, effects(outcomeUnknown, executeAgain)},
	{"effect.overdue.none_left", []amendsv1.CaseState{requested}, EventEffectOverdue, nil, reconciling, effects(outcomeUnknown, reconcileLater)},
	{"effect.undecidable", []amendsv1.CaseState{requested}, EventUndecidable, nil, reconciling, effects(recordEffect, reconcileLater)},
	{"effect.not_begun", []amendsv1.CaseState{requested, reconciling}, EventNotBegun, guards(cancelRaised, neverRefunded), cancelled, effects(recordEffect, withdraw)},
	{"effect.not_begun.person", []amendsv1.CaseState{requested, reconciling}, EventNotBegun, guards(cancelRaised), handoff, effects(recordEffect, handOver, confirmFailed)},
	{"effect.found", []amendsv1.CaseState{reconciling}, EventAcknowledged, nil, refunded, effects(recordEffect, tellRefund, confirmFailed)},
	{"effect.absent", []amendsv1.CaseState{reconciling}, EventNoEffect, guards(newestAnswer), requested, effects(recordEffect, settledByItself, askAgainLater)},
	{"effect.refused.reconciling", []amendsv1.CaseState{reconciling}, EventEffectRefused, nil, handoff, effects(recordEffect, handOver, confirmFailed)},
	{"effect.reconcile_again", []amendsv1.CaseState{reconciling}, EventEffectOverdue, guards(dispatchesEverLeft), Same, effects(executeAgain)},
	{"effect.reconcile.person", []amendsv1.CaseState{reconciling}, EventEffectOverdue, nil, handoff, effects(handOver, confirmFailed)},
	{"effect.undecidable.again", []amendsv1.CaseState{reconciling}, EventUndecidable, nil, Same, effects(recordEffect, reconcileLater)},
	{"effect.provider_failed", []amendsv1.CaseState{requested, reconciling}, EventProvider, guards(saysRefundFailed), Same, effects(noteFailedRefund)},
	{"effect.late", []amendsv1.CaseState{handoff}, EventAcknowledged, nil, Same, effects(recordEffect, confirmFailed)},
	{"effect.refused.late", []amendsv1.CaseState{handoff}, EventEffectRefused, guards(newestAnswer), Same, effects(recordEffect, confirmFailed)},
	{"effect.late.unknown", []amendsv1.CaseState{handoff}, EventEffectUnknown, guards(isNews), Same, effects(recordEffect, confirmFailed)},
	{"effect.late.undecidable", []amendsv1.CaseState{handoff}, EventUndecidable, guards(isNews), Same, effects(recordEffect, confirmFailed)},
	{"effect.late.held", []amendsv1.CaseState{handoff}, EventEffectHeld, guards(isNews), Same, effects(recordEffect, confirmFailed)},
	{"effect.late.none", []amendsv1.CaseState{handoff}, EventNoEffect, guards(isNews), Same, effects(recordEffect, confirmFailed)},
	{"effect.late.refused", []amendsv1.CaseState{handoff}, EventEffectRefused, guards(isNews), Same, effects(recordEffect, confirmFailed)},
	{"effect.after_all", unattended, EventAfterAll, nil, handoff, effects(recordAfterAll, handOverQuietly, confirmFailed)},
	{rowAfterAllNoted, attended, EventAfterAll, nil, Same, effects(recordAfterAll, confirmFailed)},
	{"executor.not_known_yet", known, EventUnsettled, nil, Same, effects(waitForAnswer)},

	{"refund.news.void", []amendsv1.CaseState{awaitApproval}, EventRefundNews, nil, investigating, effects(voidAction, proposalBack, lookAgain, noteNews)},
	{"refund.news", []amendsv1.CaseState{received, investigating, awaitCustomer, holding, requested, reconciling, refunded, declined, cancelled, handoff, closed}, EventRefundNews, nil, Same, effects(noteNews)},
	{rowFailureFound + ".void", []amendsv1.CaseState{awaitApproval}, EventFailureFound, nil, investigating, effects(voidAction, proposalBack, lookAgain, noteFinding, askAboutFailure)},
	{rowFailureFound, []amendsv1.CaseState{received, investigating, awaitCustomer, holding, requested, reconciling, refunded, declined, cancelled, handoff, closed}, EventFailureFound, nil, Same, effects(noteFinding, askAboutFailure)},
	{rowConfirmed, known, EventConfirmed, nil, Same, effects(recordStatuses, confirmNext)},
	{rowFailedLater, unattended, EventRefundFailed, nil, handoff, effects(recordStatuses, handOver, confirmNext)},
	{rowFailedNoted, attended, EventRefundFailed, nil, Same, effects(recordStatuses, confirmNext)},
	{"confirm.again", known, EventUnconfirmed, guards(confirmsLeft), Same, effects(confirmAgain)},
	{rowConfirmLost, unattended, EventUnconfirmed, nil, handoff, effects(giveConfirmationUp, handOverQuietly)},
	{rowConfirmLostNoted, attended, EventUnconfirmed, nil, Same, effects(giveConfirmationUp)},

	{"settle.failed", []amendsv1.CaseState{reconciling}, EventSettleFailed, guards(newestAnswer), Same, effects(settleFailed)},

	{"finding.opened", []amendsv1.CaseState{none}, EventFinding, nil, handoff, effects(pinVersions, noteFinding, openFinding)},
	{rowFindingReopens, []amendsv1.CaseState{refunded, declined, cancelled, closed}, EventFinding, nil, handoff, effects(noteFinding, handOverQuietly)},
	{rowFindingVoid, []amendsv1.CaseState{awaitApproval}, EventFinding, nil, investigating, effects(voidAction, proposalBack, lookAgain, noteFinding)},
	{rowFindingRecheck, []amendsv1.CaseState{holding}, EventFinding, guards(rechecksLeft), investigating, effects(lookAgain, noteFinding)},
	{rowFindingNoted, []amendsv1.CaseState{received, investigating, awaitCustomer, holding, requested, reconciling, handoff}, EventFinding, nil, Same, effects(noteFinding)},

	{"draft.returned", live, EventDraft, guards(isDrafting), Same, effects(recordDraft, verifyDraft)},
	{rowUnseen, []amendsv1.CaseState{refunded, declined, cancelled}, EventReplyVerified, guards(unseenNews), handoff, effects(sendReply, handOverUnseen)},
	{"reply.verified.closed", []amendsv1.CaseState{refunded, declined}, EventReplyVerified, nil, closed, effects(sendReply, closeCase)},
	{"reply.verified", []amendsv1.CaseState{cancelled, holding, awaitCustomer, handoff}, EventReplyVerified, nil, Same, effects(sendReply)},
	{"reply.rejected", live, EventReplyRejected, guards(redraftsLeft), Same, effects(recordRejection, redraft)},
	{"reply.rejected.none_left", live, EventReplyRejected, nil, handoff, effects(recordRejection, personWrites)},

	{"cancelled", open6, EventCancel, guards(nothingMoved), cancelled, effects(recordMessage, raiseCancel, withdraw)},
	{"cancel.person", open6, EventCancel, nil, handoff, effects(recordMessage, raiseCancel, handOver)},
	{"cancel.recorded", []amendsv1.CaseState{handoff, reconciling}, EventCancel, nil, Same, effects(recordMessage, raiseCancel)},
	{"cancel.requested", []amendsv1.CaseState{requested}, EventCancel, nil, Same, effects(recordMessage, raiseCancel, askToCancel)},

	{"budget.spent", []amendsv1.CaseState{received, investigating, awaitCustomer, holding, awaitApproval, refunded, declined, cancelled}, EventBudgetSpent, nil, handoff, effects(dropFurther, handOver)},
	{"budget.spent.effect", []amendsv1.CaseState{requested, reconciling}, EventBudgetSpent, nil, handoff, effects(dropFurther, handOver, confirmFailed)},
	{"budget.spent.no_notice", []amendsv1.CaseState{handoff}, EventBudgetSpent, nil, Same, effects(dropFurther, personWrites)},

	{"custody.taken", []amendsv1.CaseState{handoff}, EventCustodyTaken, nil, Same, effects(takeCase)},
	{"custody.taken.reconciling", []amendsv1.CaseState{reconciling}, EventCustodyTaken, nil, handoff, effects(handOver, takeCase, confirmFailed)},
	{"custody.released", []amendsv1.CaseState{handoff}, EventCustodyReleased, nil, Same, effects(releaseCase)},
	{"custody.proposes", []amendsv1.CaseState{handoff}, EventProposed, nil, awaitApproval, effects(returnCase, decideByPerson, proposeByPerson, awaitApprover)},
	{"custody.declines", []amendsv1.CaseState{handoff}, EventDeclined, nil, declined, effects(returnCase, declineByPerson, explainDenial)},
	{"custody.asks", []amendsv1.CaseState{handoff}, EventAsked, nil, awaitCustomer, effects(returnCase, awaitAnswer, sendWritten)},
	{"custody.investigates", []amendsv1.CaseState{handoff}, EventInvestigate, nil, investigating, effects(returnCase, investigateAgain)},
	{"custody.reconciles", []amendsv1.CaseState{handoff}, EventReconcile, nil, reconciling, effects(returnCase, askExecutorAgain)},
	{"custody.closes", []amendsv1.CaseState{handoff}, EventWritten, nil, declined, effects(returnCase, declineByPerson, sendWritten)},

	{"custody.settles", []amendsv1.CaseState{handoff}, EventSettles, nil, reconciling, effects(returnCase, askToSettle)},
	{"custody.resolves", []amendsv1.CaseState{handoff}, EventResolved, nil, closed, effects(returnCase, noteResolution)},

	{"message.recorded", []amendsv1.CaseState{received, investigating, awaitApproval, requested, reconciling, refunded, declined, cancelled, handoff}, EventMessage, nil, Same, effects(recordMessage)},
	{"message.recorded.other_order", []amendsv1.CaseState{received, investigating, holding, requested, reconciling, refunded, declined, cancelled, handoff}, EventFactChanged, nil, Same, effects(recordMessage)},
	{"message.after_close", []amendsv1.CaseState{closed, cancelled}, EventContinued, nil, Same, effects(noteContinuation)},
	{"input.refused", always, EventRefused, nil, Same, effects(noteRefusal)},
}

func effects(e ...Effect) []Effect { return e }
func guards(g ...Guard) []Guard    { return g }

// find gives the first row that applies.
func find(s *step, ev Event) (Row, bool) {
	for _, r := range Table {
		if r.On != ev || !slices.Contains(r.From, s.rec.GetState()) {
			continue
		}
		if !slices.ContainsFunc(r.When, func(g Guard) bool { return !g.Holds(s) }) {
			return r, true
		}
	}
	return Row{}, false
}

// Closed reports whether nothing but the rows of STATE-3 leaves the case.
func Closed(rec *amendsv1.CaseRecord) bool {
	switch rec.GetState() {
	case closed:
		return true
	case cancelled:
		return rec.GetReply().GetStatus() == amendsv1.ReplyStatus_REPLY_STATUS_SENT
	default:
		return false
	}
}

// StateName gives a state's name as the documents write it: AWAITING_APPROVAL.
func StateName(st amendsv1.CaseState) string {
	return strings.TrimPrefix(st.String(), "CASE_STATE_")
}
