package verifier

import (
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	amendsv1 "github.com/amends-dev/amends/proto/amends/v1"
)

// checkDate checks a date: it must be one that a record holds, and be said of
// what it is the date of. A date for the arrival of money is never a fact.
func (c *checker) checkDate(d date, i, end int, s *sentence) {
	words := c.words(i, end)
	if d.day > 0 && c.dateOf(d, s) {
		s.dates = append(s.dates, d)
		c.add("date", words, "", c.seen.stateCall)
		return
	}
	c.add("date", words, reasonDate, "")
}

func (c *checker) dateOf(d date, s *sentence) bool {
	is := func(t *timestamppb.Timestamp) bool { return t != nil && d.is(t.AsTime()) }
	switch {
	case s.has(look | again):
		return c.timeStated(d, amendsv1.ClaimKind_CLAIM_KIND_RECHECK_AT)
	case s.any(will | promise):
		return false
	case s.any(refund):
		for _, id := range s.refunds {
			if r := c.seen.refunds[id]; r != nil && is(r.GetCreatedAt()) && !s.any(done&^paid) {
				return true
			}
		}
		return false
	case s.any(reply):
		return c.timeStated(d, amendsv1.ClaimKind_CLAIM_KIND_REPLY_BY) || is(c.records.GetReceivedAt())
	case s.any(taken | paid | payment):
		for _, p := range c.captures() {
			if is(p.GetCapturedAt()) || is(p.GetSettledAt()) {
				return true
			}
		}
	}
	return false
}

func (c *checker) timeStated(d date, kind amendsv1.ClaimKind) bool {
	for _, f := range c.records.GetFacts() {
		if f.GetKind() == kind && f.GetTime() != nil && d.is(f.GetTime().AsTime()) && c.recorded(kind, f.GetTime().AsTime()) {
			return true
		}
	}
	return false
}

// recorded checks that a time a fact states is the record's own deadline.
func (c *checker) recorded(kind amendsv1.ClaimKind, t time.Time) bool {
	deadline := c.records.GetRecheckAt()
	if kind == amendsv1.ClaimKind_CLAIM_KIND_REPLY_BY {
		deadline = c.records.GetReplyBy()
	}
	return deadline != nil && deadline.AsTime().Equal(t)
}
