package casework

import (
	"slices"
	"strings"

	"github.com/amends-dev/amends/internal/ident"
	amendsv1 "github.com/amends-dev/amends/proto/amends/v1"
)

// Rows that take a case to people without a word to the customer, who was told
// how it ended or is about to be.
const (
	rowFindingReopens = "finding.reopens"
	rowConfirmLost    = "confirm.lost"
	rowUnseen         = "reply.verified.unseen"
)

// Rows of a case's own refunds.
const (
	rowFailedLater  = "refund.failed_later"
	rowConfirmed    = "refund.confirmed"
	rowFailureFound = "refund.found_failed"
)

// Rows of news for people that leave the case where it is.
const (
	rowFindingNoted     = "finding.recorded"
	rowFindingVoid      = "finding.void"
	rowFindingRecheck   = "finding.recheck"
	rowConfirmLostNoted = "confirm.lost.noted"
	rowFailedNoted      = "refund.failed_later.noted"
)

// newsRow reports whether a row has news that people must see before the case
// may end.
func newsRow(name string) bool {
	switch name {
	case rowFindingNoted, rowFindingVoid, rowFindingRecheck, rowConfirmLostNoted, rowFailedNoted, rowAfterAllNoted:
		return true
	}
	return false
}

// decisionRow reports whether a person decided by it, who was shown all the case
// had (a decision names the packet). Taking a case decides nothing.
func decisionRow(name string) bool {
	return strings.HasPrefix(name, "custody.") && !strings.HasPrefix(name, "custody.taken") && name != "custody.released"
}

// sinceDecision gives the part of the timeline that nobody has decided on.
func sinceDecision(tl []*amendsv1.TimelineEntry) []*amendsv1.TimelineEntry {
	for i := len(tl) - 1; i >= 0; i-- {
		if decisionRow(tl[i].GetRow()) {
			return tl[i+1:]
		}
	}
	return tl
}

var unseenNews = Guard{"news that nobody has seen", func(s *step) bool {
	return slices.ContainsFunc(sinceDecision(s.rec.GetTimeline()), func(e *amendsv1.TimelineEntry) bool { return newsRow(e.GetRow()) })
}}

// handOverUnseen comes after the reply was sent.
var handOverUnseen = Effect{"custody to a person, by the queue of reconciliation", func(s *step) {
	said := s.note
	for _, e := range sinceDecision(s.rec.GetTimeline()) {
		switch row := e.GetRow(); {
		case strings.HasPrefix(row, "finding."):
			f := s.rec.GetFindings()
			s.failure = f[len(f)-1].GetCode()
		case row == rowFailedNoted:
			s.failure = reasonFailedLater
		case row == rowAfterAllNoted:
			s.failure = reasonAfterAll
		case row == rowConfirmLostNoted:
			s.failure = reasonUnconfirmed
		}
	}
	s.rec.Reply = nil // it is sent, and no writer's to take back
	s.takeCustody(QueueReconciliation)
	s.say("%s; handed to people: %s", said, s.rec.GetCustody().GetReason())
}}

// quiet reports whether only people know that they have the case: it may end
// as quietly. A case of a customer may when it was answered for good before and
// nothing came since that the customer would want an answer to.
func (s *step) quiet() bool {
	if s.rec.GetCustomerId() == ident.Desk {
		return true
	}
	tl := s.rec.GetTimeline()
	from := len(tl)
	for from > 0 && tl[from-1].GetState() == handoff {
		from--
	}
	if from == 0 || from == len(tl) {
		return false
	}
	switch row := tl[from].GetRow(); {
	case row == rowUnseen:
	case tl[from-1].GetState() == closed && (row == rowFindingReopens || row == rowConfirmLost):
	default:
		return false
	}
	return !slices.ContainsFunc(tl[from:], func(e *amendsv1.TimelineEntry) bool {
		return strings.HasPrefix(e.GetRow(), "message.") || strings.HasPrefix(e.GetRow(), "cancel.")
	}) && !slices.ContainsFunc(sinceDecision(tl), func(e *amendsv1.TimelineEntry) bool {
		return e.GetRow() == rowFailedNoted || e.GetRow() == rowAfterAllNoted
	}) && !s.failureOpen()
}

// failureOpen reports whether a finding says that a refund failed which nobody
// has decided on, and no reading has contradicted since. The customer was told
// otherwise.
func (s *step) failureOpen() bool {
	since, findings := sinceDecision(s.rec.GetTimeline()), s.rec.GetFindings()
	read, lost := false, false
	for i := len(since) - 1; i >= 0 && len(findings) > 0; i-- {
		asked := false
		switch row := since[i].GetRow(); {
		case row == rowConfirmed:
			read = true
			continue
		case row == rowConfirmLost, row == rowConfirmLostNoted:
			lost = true
			continue
		case strings.HasPrefix(row, rowFailureFound):
			asked = true
		case !strings.HasPrefix(row, "finding."):
			continue
		}
		f := findings[len(findings)-1] // each of these rows recorded one
		findings = findings[:len(findings)-1]
		if ofFailure(f) && (!asked || !read || lost) {
			return true
		}
	}
	return false
}
