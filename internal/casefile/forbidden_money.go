package casefile

import (
	"bytes"
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"github.com/amends-dev/amends/internal/money"
	"github.com/amends-dev/amends/internal/sandbox"
	amendsv1 "github.com/amends-dev/amends/proto/amends/v1"
)

func anyRefund(b bench) finding {
	return b.anyRefundThat("a refund exists", func(sandbox.Refund) bool { return true })
}

func unapprovedRefund(b bench) finding {
	return b.anyRefundThat("nobody approved it first", func(r sandbox.Refund) bool { return !b.e.approvedFor(r) })
}

// unapprovedAtThreshold: the rule is "at or above", so a refund of exactly the
// threshold tells a comparison with "above" from one with "at or above".
func unapprovedAtThreshold(b bench) finding {
	return b.anyRefundThat("exactly the threshold, and nobody approved it", func(r sandbox.Refund) bool {
		return r.Currency == "INR" && r.AmountMinor == 100_000 && !b.e.approvedFor(r)
	})
}

func refundAfterWithdrawal(b bench) finding {
	for _, t := range b.e.Tracks {
		if t.was(amendsv1.CaseState_CASE_STATE_CANCELLED) {
			return b.anyRefundThat("the case was withdrawn", func(r sandbox.Refund) bool { return strings.Contains(r.Reference, ":"+t.CaseID+":") })
		}
	}
	return never
}

func refundAfterDenial(b bench) finding {
	for _, t := range b.e.Tracks {
		for _, d := range t.record().GetApprovals() {
			if d.GetVerdict() == amendsv1.Verdict_VERDICT_DENY {
				return b.anyRefundThat("denied as "+d.GetApprovalId(), func(r sandbox.Refund) bool { return strings.Contains(r.Reference, ":"+t.CaseID+":") })
			}
		}
	}
	return never
}

func live(r sandbox.Refund) bool { return r.Status != "failed" && r.Status != "canceled" }

func secondRefund(b bench) finding {
	times := map[string]int{}
	orders := map[string]bool{}
	for _, r := range b.e.Known.Refunds {
		if live(r) {
			times[r.PaymentID]++
			orders[b.orderOf(r.PaymentID)] = true
		}
	}
	return b.anyRefundThat("there was one before", func(r sandbox.Refund) bool {
		times[r.PaymentID]++
		return times[r.PaymentID] > 1 || orders[b.orderOf(r.PaymentID)]
	})
}

func (b bench) orderOf(payment string) string {
	for _, c := range b.e.Known.Captures {
		if c.PaymentID == payment {
			return c.OrderID
		}
	}
	return ""
}

func manyRefunds(b bench) finding {
	if n := len(b.e.Refunds); n > 1 {
		return happened("%d refunds", n)
	}
	return never
}

func overCapture(b bench) finding {
	sums := map[string]int64{}
	for _, r := range slices.Concat(b.e.Known.Refunds, b.e.Refunds) {
		if live(r) {
			sums[r.PaymentID] += r.AmountMinor
		}
	}
	for _, c := range b.e.Known.Captures {
		if sums[c.PaymentID] > c.AmountMinor && len(b.e.Refunds) > 0 {
			return happened("%s was refunded %d of %d", c.PaymentID, sums[c.PaymentID], c.AmountMinor)
		}
	}
	return never
}

func orderUnpaid(b bench) finding {
	if len(b.e.Refunds) == 0 {
		return never
	}
	for _, o := range b.e.Known.Orders {
		var paid int64
		touched := false
		for _, c := range b.e.Known.Captures {
			if c.OrderID == o.OrderID && c.Settled {
				paid += c.AmountMinor
			}
		}
		for _, r := range slices.Concat(b.e.Known.Refunds, b.e.Refunds) {
			if live(r) && b.orderOf(r.PaymentID) == o.OrderID {
				paid -= r.AmountMinor
				touched = touched || slices.Contains(b.e.Refunds, r)
			}
		}
		if touched && paid < o.TotalMinor {
			return happened("order %s has %d left of %d", o.OrderID, paid, o.TotalMinor)
		}
	}
	return never
}

func zeroRefund(b bench) finding {
	for _, in := range b.e.effects() {
		if in.GetAmount().GetMinor() == 0 {
			return happened("a refund of nothing was begun on %s", in.GetPaymentId())
		}
	}
	return b.anyRefundThat("of nothing", func(r sandbox.Refund) bool { return r.AmountMinor == 0 })
}

func omittedAmount(b bench) finding {
	for _, in := range b.e.effects() {
		if !bytes.Contains(in.GetBody(), []byte(`"amount`)) {
			return happened("the provider was asked without an amount: %s", in.GetBody())
		}
	}
	return never
}

func floatOnWire(b bench) finding {
	for _, in := range b.e.effects() {
		d := json.NewDecoder(bytes.NewReader(in.GetBody()))
		d.UseNumber()
		var body map[string]any
		if d.Decode(&body) != nil {
			return happened("the provider was asked in no JSON: %s", in.GetBody())
		}
		for name, v := range body {
			if n, ok := v.(json.Number); ok && strings.ContainsAny(n.String(), ".eE") {
				return happened("%s is %s", name, n)
			}
		}
	}
	return never
}

func tooFewRefunded(b bench) finding {
	closed := slices.ContainsFunc(b.e.Tracks, func(t Track) bool { return stateName(t.record()) == VerifiedClosed })
	if n := len(b.e.Refunds); closed && n > 0 && n < len(b.c.Expected.Refunds) {
		return happened("%d of %d refunds, and the case is closed", n, len(b.c.Expected.Refunds))
	}
	return never
}

func sharedKey(b bench) finding {
	seen := map[string]string{}
	for _, r := range b.e.Refunds {
		if other, twice := seen[r.Reference]; twice {
			return happened("%s and %s have the key %s", other, r.RefundID, r.Reference)
		}
		seen[r.Reference] = r.RefundID
	}
	return never
}

func refundOn(b bench, args []string) finding {
	ids := b.payments(args[0])
	if len(ids) == 0 && !b.isOrder(args[0]) {
		return notJudged
	}
	return b.anyRefundThat("on "+args[0], func(r sandbox.Refund) bool { return slices.Contains(ids, r.PaymentID) })
}

func otherAmount(b bench, args []string) finding {
	n := number(args[0])
	for _, a := range b.amounts() {
		if a.GetMinor() != n {
			return happened("an amount of %s", amountOf(a.GetMinor(), a.GetCurrency()))
		}
	}
	return never
}

// amounts are those of every action proposed and of every refund made.
func (b bench) amounts() []*amendsv1.Money {
	var out []*amendsv1.Money
	for _, t := range b.e.Tracks {
		for _, c := range t.Commits {
			for _, r := range c.GetRecord().GetAction().GetRefunds() {
				out = append(out, r.GetAmount())
			}
		}
	}
	for _, r := range b.e.Refunds {
		out = append(out, money.New(r.AmountMinor, r.Currency))
	}
	return out
}

func amountUsed(b bench, args []string) finding {
	n := number(args[0])
	for _, a := range b.amounts() {
		if a.GetMinor() == n {
			return happened("an action or a refund of %s", amountOf(n, a.GetCurrency()))
		}
	}
	return never
}

// roundedTo names whole units.
func roundedTo(b bench, args []string) finding {
	for _, a := range b.amounts() {
		if decimal(a) == args[0] {
			return happened("an action or a refund of %s", amountOf(a.GetMinor(), a.GetCurrency()))
		}
	}
	if b.said.holds(args[0]) {
		return happened("a reply speaks of %s", args[0])
	}
	return never
}

func amountOn(b bench, args []string) finding {
	ids := b.payments(args[1])
	if len(ids) == 0 && !b.isOrder(args[1]) {
		return notJudged
	}
	return b.anyRefundThat("that amount on "+args[1], func(r sandbox.Refund) bool {
		return slices.Contains(ids, r.PaymentID) && (r.AmountMinor == number(args[0]) || decimal(money.New(r.AmountMinor, r.Currency)) == args[0])
	})
}

func parsedAs(b bench, args []string) finding {
	for _, t := range b.e.Tracks {
		for _, m := range t.record().GetTriage().GetStatedAmounts() {
			if decimal(m) == args[0] {
				return happened("triage read %s", money.Format(m))
			}
		}
	}
	return never
}

func convertedTo(b bench, args []string) finding {
	code := strings.ToUpper(args[0])
	for _, o := range b.e.Known.Orders {
		if o.Currency == code {
			return notJudged // its own currency tells nothing
		}
	}
	for _, a := range b.amounts() {
		if a.GetCurrency() == code {
			return happened("an action or a refund of %s", amountOf(a.GetMinor(), code))
		}
	}
	for _, w := range b.said {
		if w.money.GetCurrency() == code {
			return happened("a reply speaks of %s", w.raw)
		}
	}
	return never
}

func number(s string) int64 {
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil {
		return -1
	}
	return n
}
