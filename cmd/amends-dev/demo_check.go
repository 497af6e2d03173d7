package main

import (
	"fmt"
	"strings"
	"time"

	"github.com/amends-dev/amends/internal/casework"
	amendsv1 "github.com/amends-dev/amends/proto/amends/v1"
)

// checks collects what is not as specified.
type checks []string

func (c *checks) want(ok bool, format string, args ...any) {
	if !ok {
		*c = append(*c, fmt.Sprintf(format, args...))
	}
}

// checkA: the duplicate is refunded once, approved, and told as pending.
func checkA(e ended) []string {
	var c checks
	c.want(e.view.State == "VERIFIED_CLOSED" && e.view.Version == 9, "case is %s at v%d, want VERIFIED_CLOSED at v9", e.view.State, e.view.Version)
	c.want(stateAt(e.record, 5) == "AWAITING_APPROVAL", "v5 is %s, want AWAITING_APPROVAL", stateAt(e.record, 5))
	c.want(stateAt(e.record, 6) == "REFUND_REQUESTED", "v6 is %s, want REFUND_REQUESTED", stateAt(e.record, 6))
	c.want(stateAt(e.record, 7) == "REFUNDED", "v7 is %s, want REFUNDED", stateAt(e.record, 7))
	c.want(len(e.record.GetApprovals()) == 1 && e.record.GetApprovals()[0].GetApprovalId() == "apr-8472-1", "approvals %v, want apr-8472-1", e.record.GetApprovals())
	c.want(len(e.ledger.Refunds) == 1, "%d refunds at the provider, want exactly one", len(e.ledger.Refunds))
	for _, r := range e.ledger.Refunds {
		c.want(r.PaymentID == "pay_8472_b" && r.AmountMinor == 200000 && r.Currency == "INR", "refund of %d %s on %s", r.AmountMinor, r.Currency, r.PaymentID)
		c.want(len(e.view.Replies) == 1 && strings.Contains(e.view.Replies[0].Text, r.RefundID) && strings.Contains(e.view.Replies[0].Text, "pending"),
			"the reply does not name %s as pending", r.RefundID)
	}
	return append(c, sound(e)...)
}

// checkB: a hold is no second payment: nothing refunded, looked at again.
func checkB(e ended) []string {
	var c checks
	c.want(e.view.State == "HOLD_FOR_EVIDENCE", "case is %s, want HOLD_FOR_EVIDENCE", e.view.State)
	c.want(stateAt(e.record, 5) == "HOLD_FOR_EVIDENCE", "v5 is %s, want HOLD_FOR_EVIDENCE", stateAt(e.record, 5))
	d := e.record.GetDecision()
	c.want(!d.GetRefund() && d.GetReason() == "no_duplicate_settled_capture" && !d.GetEvidenceComplete(), "decision refund=%t reason=%s evidence.complete=%t", d.GetRefund(), d.GetReason(), d.GetEvidenceComplete())
	c.want(len(d.GetCallIds()) == 1 && d.GetCallIds()[0] == "call-8472-p3", "decision cites %v, want call-8472-p3", d.GetCallIds())
	if len(e.record.GetTimeline()) >= 5 {
		c.want(d.GetRecheckAt().AsTime().Sub(e.record.GetTimeline()[4].GetAt().AsTime()) == 4*time.Hour, "recheck at %s, want 4 h after v5", d.GetRecheckAt().AsTime())
	}
	c.want(len(e.ledger.Refunds) == 0, "%d refunds at the provider, want none", len(e.ledger.Refunds))
	c.want(len(e.view.Replies) == 1 && e.view.Replies[0].Kind == "holding", "replies %v, want one holding reply", e.view.Replies)
	for _, r := range e.view.Replies {
		for _, word := range []string{"refunded", "refund issued", "refund approved", "approved"} {
			c.want(!strings.Contains(strings.ToLower(r.Text), word), "the holding reply says %q", word)
		}
	}
	return append(c, sound(e)...)
}

// sound checks that the versions follow the state table (STATE-1).
func sound(e ended) []string {
	var c checks
	err := casework.CheckTimeline(e.record)
	c.want(err == nil, "STATE-1: %v", err)
	return c
}

func stateAt(rec *amendsv1.CaseRecord, version int) string {
	if len(rec.GetTimeline()) < version {
		return "not there"
	}
	return casework.StateName(rec.GetTimeline()[version-1].GetState())
}
