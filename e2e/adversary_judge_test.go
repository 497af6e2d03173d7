package e2e_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/amends-dev/amends/internal/allinone"
	"github.com/amends-dev/amends/internal/approval"
	"github.com/amends-dev/amends/internal/bus"
	"github.com/amends-dev/amends/internal/money"
	"github.com/amends-dev/amends/internal/roles"
	"github.com/amends-dev/amends/internal/sandbox"
	amendsv1 "github.com/amends-dev/amends/proto/amends/v1"
)

// The limits of 2-contracts.md section 10, in paise, written down again: the
// judge takes nothing from the code it judges.
const (
	approvalFrom    = 1_000_00
	secondFrom      = 50_000_00
	unapprovedHour  = 50_000_00
	unapprovedDay   = 200_000_00
	countedTogether = 30 * 24 * time.Hour
)

// judge looks at the provider's ledger alone, and knows which actions real
// approvers really signed.
type judge struct {
	approvals []approved
}

type approved struct {
	who, sha string
	action   *amendsv1.ActionRecord
}

func (j *judge) signed(who string, a *amendsv1.ActionRecord) {
	sha, err := approval.ActionSHA256(a)
	if err == nil {
		j.approvals = append(j.approvals, approved{who, sha, proto.CloneOf(a)})
	}
}

// without takes back that anybody signed an action.
func (j *judge) without(a *amendsv1.ActionRecord) judge {
	return judge{slices.DeleteFunc(j.approvals, func(s approved) bool { return proto.Equal(s.action, a) })}
}

// approvers gives the people who signed an action with exactly this refund,
// for the action that most did.
func (j *judge) approvers(r sandbox.Refund) (most []string, a *amendsv1.ActionRecord) {
	by := map[string][]string{}
	for _, s := range j.approvals {
		match := s.action.GetTenant() == r.Tenant && s.action.GetOrderId() == r.OrderID &&
			r.CreatedAt.Before(s.action.GetExpires().AsTime().Add(30*time.Second)) && // a call may start so long after its intent
			slices.ContainsFunc(s.action.GetRefunds(), func(x *amendsv1.ActionRefund) bool {
				return x.GetPaymentId() == r.PaymentID && money.Equal(x.GetAmount(), money.New(r.AmountMinor, r.Currency)) &&
					x.GetIdempotencyKey() == r.Reference && x.GetKind() == r.Reason
			})
		if match && !slices.Contains(by[s.sha], s.who) {
			by[s.sha] = append(by[s.sha], s.who)
			if len(by[s.sha]) > len(most) {
				most, a = by[s.sha], s.action
			}
		}
	}
	return most, a
}

// problems names what is wrong with a ledger. Refunds that were there before
// have no reference.
func (j *judge) problems(l sandbox.Ledger) (out []string) {
	wrong := func(format string, args ...any) { out = append(out, fmt.Sprintf(format, args...)) }
	var free []sandbox.Refund
	keys, onPayment := map[string]int{}, map[string]int64{}
	for _, r := range l.Refunds {
		if r.Status != "failed" && r.Status != "canceled" {
			onPayment[r.Tenant+" "+r.PaymentID] += r.AmountMinor
		}
		if r.Reference == "" {
			continue
		}
		if keys[r.Tenant+" "+r.Reference]++; keys[r.Tenant+" "+r.Reference] > 1 {
			wrong("MONEY-1: key %s made more than one refund", r.Reference)
		}
		people, a := j.approvers(r)
		if need := needed(l, r, a); len(people) < need {
			wrong("MONEY-2, AUTH-2: %s of %d on order %s has %d approvers, %d are needed", r.RefundID, r.AmountMinor, r.OrderID, len(people), need)
		}
		if len(people) == 0 {
			free = append(free, r)
		}
	}
	for _, c := range l.Captures {
		if n := onPayment[c.Tenant+" "+c.PaymentID]; n > c.AmountMinor {
			wrong("MONEY-1: %d refunded of %d on %s", n, c.AmountMinor, c.PaymentID)
		}
	}
	for _, o := range l.Orders {
		if kept := keptOn(l, o); kept < o.TotalMinor && !j.waived(l, o) {
			wrong("MONEY-4: order %s is left with %d of %d", o.OrderID, kept, o.TotalMinor)
		}
	}
	for _, r := range free {
		for span, limit := range map[time.Duration]int64{time.Hour: unapprovedHour, 24 * time.Hour: unapprovedDay} {
			if sum := within(free, r, span, func(x sandbox.Refund) bool { return x.Tenant == r.Tenant }); sum > limit {
				wrong("AUTH-2: %d of %s unapproved in %s, the cap is %d", sum, r.Tenant, span, limit)
			}
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// needed is how many people a refund needs: by all of its order that went back
// in the 30 days before it, and its own action.
func needed(l sandbox.Ledger, r sandbox.Refund, a *amendsv1.ActionRecord) int {
	sum := within(l.Refunds, r, countedTogether, func(x sandbox.Refund) bool { return x.Tenant == r.Tenant && x.OrderID == r.OrderID })
	if total, err := approval.Total(a); err == nil {
		sum = max(sum, total.GetMinor())
	}
	switch {
	case r.Currency != "INR":
		return 1
	case sum >= secondFrom:
		return 2
	case sum >= approvalFrom:
		return 1
	}
	return 0
}

// within adds up the refunds in the span that ends with last, which is in it.
func within(all []sandbox.Refund, last sandbox.Refund, span time.Duration, which func(sandbox.Refund) bool) (sum int64) {
	for _, r := range all {
		if which(r) && r.Status != "failed" && r.Status != "canceled" && !r.CreatedAt.After(last.CreatedAt) && last.CreatedAt.Sub(r.CreatedAt) < span {
			sum += r.AmountMinor
		}
	}
	return sum
}

func keptOn(l sandbox.Ledger, o sandbox.Order) (kept int64) {
	for _, c := range l.Captures {
		if c.Tenant == o.Tenant && c.OrderID == o.OrderID && c.Settled && c.Currency == o.Currency {
			kept += c.AmountMinor
		}
	}
	for _, r := range l.Refunds {
		if r.Tenant == o.Tenant && r.OrderID == o.OrderID && r.Status != "failed" && r.Status != "canceled" {
			kept -= r.AmountMinor
		}
	}
	return kept
}

// waived: the order was not paid in full before, or people approved goodwill.
func (j *judge) waived(l sandbox.Ledger, o sandbox.Order) bool {
	without := l
	without.Refunds = slices.DeleteFunc(slices.Clone(l.Refunds), func(r sandbox.Refund) bool { return r.Reference != "" && r.OrderID == o.OrderID })
	if len(without.Refunds) == len(l.Refunds) {
		return true
	}
	return slices.ContainsFunc(l.Refunds, func(r sandbox.Refund) bool {
		people, _ := j.approvers(r)
		return r.OrderID == o.OrderID && r.Tenant == o.Tenant && r.Reason == approval.KindGoodwill && len(people) > 0
	})
}

// unbegun names refunds of the ledger that no intent stood for when they were
// made (MONEY-2), from what the executor's stream has held.
func unbegun(l sandbox.Ledger, effects []bus.Stored) (out []string) {
	begun := map[string]time.Time{}
	for _, m := range effects {
		e := &amendsv1.EffectEntry{}
		if proto.Unmarshal(m.Data, e) != nil || strings.HasSuffix(m.Subject, ".cap") {
			continue
		}
		for _, in := range e.GetIntents() {
			if key := e.GetTenant() + " " + in.GetIdempotencyKey(); begun[key].IsZero() {
				begun[key] = m.Time
			}
		}
	}
	for _, r := range l.Refunds {
		if at := begun[r.Tenant+" "+r.Reference]; r.Reference != "" && (at.IsZero() || at.After(r.CreatedAt)) {
			out = append(out, fmt.Sprintf("MONEY-2: %s was made at %s, its intent is of %s", r.RefundID, r.CreatedAt, at))
		}
	}
	return out
}

// verdict is the judge's, over everything the provider and the broker hold.
func (s *siege) verdict() {
	s.t.Helper()
	l, err := s.Provider.Ledger(s.ctx)
	if err != nil {
		s.t.Fatal(err)
	}
	a, err := s.Auditor()
	if err != nil {
		s.t.Fatal(err)
	}
	defer a.Close()
	effects, err := a.Read(s.ctx, roles.StreamEffects, 0)
	if err != nil {
		s.t.Fatal(err)
	}
	for _, p := range append(s.judge.problems(l), unbegun(l, effects)...) {
		s.t.Error(p)
	}
	var free, signed int
	for _, r := range l.Refunds {
		if people, _ := s.judge.approvers(r); len(people) > 0 {
			signed++
		} else if r.Reference != "" {
			free++
		}
	}
	s.t.Logf("%d refunds that people signed for, %d under the caps", signed, free)
	if signed == 0 || free == 0 {
		s.t.Error("the siege saw no refund of one kind: it could not have found anything wrong")
	}
}

// The judge is worth something: a ledger with each kind of theft is condemned,
// by the invariant's name.
func TestTheAdversaryJudgeCondemns(t *testing.T) {
	t.Parallel()
	at := time.Now()
	refund := func(order, payment string, minor int64) sandbox.Refund {
		return sandbox.Refund{
			RefundID: "rf_" + order + payment, Tenant: allinone.Tenant, OrderID: order, PaymentID: payment, AmountMinor: minor, Currency: "INR",
			Status: "pending", Reference: approval.Key("req-"+order, payment), Reason: approval.KindDuplicate, CreatedAt: at,
		}
	}
	ledger := func(minor int64, payments int, refunds ...sandbox.Refund) sandbox.Ledger {
		amounts := make([]int64, payments)
		for i := range amounts {
			amounts[i] = minor
		}
		l := newBook("o", minor, "INR", 2, amounts...).Ledger
		l.Refunds = refunds
		return l
	}
	s := &siege{}
	sound := s.wantsAt(at, "o", 200000)
	many := ledger(99000, 1)
	for i := range 51 {
		order := fmt.Sprintf("m%d", i)
		many.Captures = append(many.Captures, newBook(order, 99000, "INR", 2, 99000, 99000).Captures...)
		many.Refunds = append(many.Refunds, refund(order, "pay_"+order+"_b", 99000))
	}
	yen := refund("o", "pay_o_b", 500)
	yen.Currency = "JPY"
	for name, c := range map[string]struct {
		ledger sandbox.Ledger
		signed []string
		want   string
	}{
		"signed by maya":            {ledger(200000, 2, refund("o", "pay_o_b", 200000)), []string{"maya"}, ""},
		"small and free":            {ledger(99999, 2, refund("o", "pay_o_b", 99999)), nil, ""},
		"unsigned at the threshold": {ledger(100000, 2, refund("o", "pay_o_b", 100000)), nil, "MONEY-2, AUTH-2"},
		"ten times the amount":      {ledger(2000000, 2, refund("o", "pay_o_b", 2000000)), []string{"maya"}, "MONEY-2, AUTH-2"},
		"another payment":           {ledger(200000, 2, refund("o", "pay_o_a", 200000)), []string{"maya"}, "MONEY-2, AUTH-2"},
		"slices":                    {ledger(60000, 3, refund("o", "pay_o_b", 60000), refund("o", "pay_o_c", 60000)), nil, "MONEY-2, AUTH-2"},
		"yen without a person":      {ledger(500, 2, yen), nil, "MONEY-2, AUTH-2"},
		"the hour's cap":            {many, nil, "AUTH-2: 5049000"},
		"twice on one payment":      {ledger(200000, 3, refund("o", "pay_o_b", 200000), refund("o", "pay_o_b", 200000)), []string{"maya"}, "MONEY-1"},
		"below its total":           {ledger(200000, 1, refund("o", "pay_o_a", 90000)), nil, "MONEY-4"},
	} {
		var j judge
		for _, who := range c.signed {
			j.signed(who, sound)
		}
		got := j.problems(c.ledger)
		if c.want == "" && len(got) > 0 || c.want != "" && !slices.ContainsFunc(got, func(p string) bool { return strings.HasPrefix(p, c.want) }) {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
	if p := unbegun(ledger(99999, 2, refund("o", "pay_o_b", 99999)), nil); len(p) != 1 {
		t.Errorf("a refund without an intent: %q", p)
	}
}
