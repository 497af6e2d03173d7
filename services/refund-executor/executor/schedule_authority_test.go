package executor

import (
	"time"

	"google.golang.org/protobuf/proto"

	amendsv1 "github.com/amends-dev/amends/proto/amends/v1"
)

// proposed remembers the action that a case asks for.
func (w *world) proposed(a *amendsv1.ActionRecord, sha string) {
	if a == nil {
		return
	}
	if have, ok := w.actions[sha]; ok && !proto.Equal(have, a) {
		w.breaks("MONEY-2", "two actions under the hash %s", sha)
	}
	w.actions[sha] = a
}

// money2: a refund has an intent before it, for exactly what an action of its
// case asks for, and as many people approved that action as it needs.
func (j *judge) money2() {
	spent := map[string]string{}
	for _, k := range j.refunds {
		in := k.begun.intent
		if in == nil {
			j.w.breaks("MONEY-2", "%s exists without an intent for %q before it", k.GetRefundId(), k.GetReference())
			return
		}
		a := j.w.actions[in.GetActionSha256()]
		if in.GetPaymentId() != k.GetPaymentId() || !proto.Equal(in.GetAmount(), k.GetAmount()) || !asksFor(a, k) {
			j.w.breaks("MONEY-2", "%s is not what its intent and action are for", k.GetRefundId())
		}
		for _, id := range in.GetApprovalIds() {
			if other, ok := spent[id]; ok && other != in.GetActionSha256() {
				j.w.breaks("MONEY-2", "approval %s is spent twice", id)
			}
			spent[id] = in.GetActionSha256()
		}
		if late := k.begun.at.Sub(in.GetBegunAt().AsTime()); late > callWindow {
			j.w.breaks("MONEY-2", "%s rests on what was judged %s before its intent was written", k.GetRefundId(), late)
		}
		sum := j.taken(k, func(o made) bool { return o.CreatedAt.AsTime().After(in.GetBegunAt().AsTime().AddDate(0, 0, -30)) })
		if have, need := j.approvers(in, a), j.needed(sum, a); have < need {
			j.w.breaks("MONEY-2", "%s was made for %d approvers, and %d in all on the order needs %d", k.GetRefundId(), have, sum, need)
		}
	}
}

func asksFor(a *amendsv1.ActionRecord, k made) bool {
	if a.GetOrderId() != theOrder || a.GetTenant() != theTenant || a.GetCaseId() != k.begun.intent.GetCaseId() {
		return false
	}
	for _, r := range a.GetRefunds() {
		if r.GetIdempotencyKey() == k.GetReference() {
			return r.GetPaymentId() == k.GetPaymentId() && proto.Equal(r.GetAmount(), k.GetAmount())
		}
	}
	return false
}

func (j *judge) needed(sum int64, a *amendsv1.ActionRecord) int {
	l := j.w.order.limits
	switch {
	case l.Currency != "" && sum >= l.SecondThreshold:
		return 2
	case l.Currency == "" || sum >= l.ApprovalThreshold || a.GetProposedBy() != "":
		return 1
	}
	return 0
}

// approvers counts the different people whose approvals an intent names and
// who could give them for that action at that moment.
func (j *judge) approvers(in *amendsv1.EffectIntent, a *amendsv1.ActionRecord) int {
	total := int64(0)
	for _, r := range a.GetRefunds() {
		total += r.GetAmount().GetMinor()
	}
	at, who := in.GetBegunAt().AsTime(), map[string]bool{}
	for _, id := range in.GetApprovalIds() {
		for _, s := range j.w.signed {
			if s.id == id && s.approve && proto.Equal(s.action, a) && s.by.id != a.GetProposedBy() && total <= s.by.limit &&
				at.Before(a.GetExpires().AsTime()) && (s.by.until.IsZero() || at.Before(s.by.until)) {
				who[s.by.id] = true
			}
		}
	}
	return len(who)
}

// auth2: what nobody approved stays below the caps, each refund and all that
// were begun within an hour and a day.
func (j *judge) auth2() {
	l := j.w.order.limits
	most := l.ApprovalThreshold - 1
	if l.CapRefund > 0 {
		most = min(most, l.CapRefund)
	}
	for _, k := range j.refunds {
		if len(k.begun.intent.GetApprovalIds()) > 0 {
			continue
		}
		j.w.saw[sawUnapproved] = true
		if k.GetAmount().GetMinor() > most {
			j.w.breaks("AUTH-2", "%s of %d was approved by nobody", k.GetRefundId(), k.GetAmount().GetMinor())
		}
		begun := k.begun.intent.GetBegunAt().AsTime()
		if hour := j.unapproved(begun, time.Hour); hour > l.CapTenantHour {
			j.w.breaks("AUTH-2", "%d in an hour was approved by nobody", hour)
		}
		if day := j.unapproved(begun, 24*time.Hour); day > l.CapTenantDay {
			j.w.breaks("AUTH-2", "%d in a day was approved by nobody", day)
		}
	}
}

func (j *judge) unapproved(until time.Time, d time.Duration) int64 {
	sum := int64(0)
	for _, k := range j.refunds {
		begun := k.begun.intent.GetBegunAt().AsTime()
		if len(k.begun.intent.GetApprovalIds()) == 0 && !begun.After(until) && begun.After(until.Add(-d)) {
			sum += k.GetAmount().GetMinor()
		}
	}
	return sum
}
