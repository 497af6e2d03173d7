package ledger

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/amends-dev/amends/internal/money"
	amendsv1 "github.com/amends-dev/amends/proto/amends/v1"
)

// Sources, kinds and statuses of a finding's records.
const (
	sourceProvider = "provider"
	sourceLedger   = "ledger"
	sourceWebhook  = "webhook"

	kindCapture = "capture"
	kindRefund  = "refund"
	kindIntent  = "intent"
	kindEvent   = "event"
	kindOrder   = "order"
	kindSum     = "sum"

	statusAbsent = "absent"
)

// keyPrefix begins every reference of ours.
const keyPrefix = "refund:"

func ours(reference string) bool { return strings.HasPrefix(reference, keyPrefix) }

// ledgerItself looks for what the ledger's own writers never do.
func (c *balancing) ledgerItself() {
	contra := func(in, other *amendsv1.EffectIntent, why string) {
		d := disagreement{code: CodeLedgerContra, payment: in.GetPaymentId(), refund: in.GetOutcome().GetRefundId(), intent: in, apart: why, records: []*amendsv1.FindingRecord{intentRecord(in)}}
		if other != nil {
			d.records = append(d.records, intentRecord(other))
		}
		d.records = append(d.records, &amendsv1.FindingRecord{Source: sourceLedger, Kind: kindOrder, Id: clip(c.OrderID, 160), Status: why})
		c.add(d)
	}
	keys := map[string]*amendsv1.EffectIntent{}
	for _, in := range c.Entry.GetIntents() {
		if other := keys[in.GetIdempotencyKey()]; other != nil {
			contra(in, other, "key_begun_twice")
		}
		keys[in.GetIdempotencyKey()] = in
		if live(in) && tombstone(c.Entry, in.GetIdempotencyKey()) != nil {
			contra(in, nil, "begun_and_withdrawn")
		}
		id := in.GetOutcome().GetRefundId()
		if id == "" {
			continue
		}
		if other := c.acknowledged[id]; other != nil {
			contra(in, other, "one_refund_acknowledged_twice")
			continue
		}
		c.acknowledged[id] = in
	}
	if c.Entry == nil {
		return
	}
	again := &amendsv1.EffectEntry{Intents: c.Entry.GetIntents()}
	if err := Sum(again); err != nil || !sameSums(again, c.Entry) {
		c.add(disagreement{code: CodeLedgerContra, apart: "sums_differ", records: []*amendsv1.FindingRecord{
			{Source: sourceLedger, Kind: kindSum, Id: clip(c.OrderID, 160), Amount: c.Entry.GetOrderSum(), Status: "recorded"},
			{Source: sourceLedger, Kind: kindSum, Id: clip(c.OrderID, 160), Amount: again.GetOrderSum(), Status: "counted"},
		}})
	}
}

func sameSums(a, b *amendsv1.EffectEntry) bool {
	if !money.Equal(a.GetOrderSum(), b.GetOrderSum()) || len(a.GetSums()) != len(b.GetSums()) {
		return false
	}
	for i, s := range a.GetSums() {
		if s.GetPaymentId() != b.GetSums()[i].GetPaymentId() || !money.Equal(s.GetRefunded(), b.GetSums()[i].GetRefunded()) {
			return false
		}
	}
	return true
}

// orderMissing is an order the provider does not have though money of it may
// have moved.
func (c *balancing) orderMissing() {
	d := disagreement{code: CodeOrderMissing, records: []*amendsv1.FindingRecord{{Source: sourceProvider, Kind: kindOrder, Id: clip(c.OrderID, 160), Status: statusAbsent}}}
	for _, in := range c.Entry.GetIntents() {
		if live(in) && !c.young(in.GetBegunAt(), c.Grace) {
			d.records, d.about = append(d.records, intentRecord(in)), in.GetCaseId()
		}
	}
	for _, r := range c.Listed {
		d.records = append(d.records, refundRecord(r))
	}
	if len(d.records) > 1 {
		c.add(d)
	}
}

// contradictions tells how the provider contradicts itself, if it does; then
// no sum is made of what it says.
func (c *balancing) contradictions() bool {
	before := len(c.out.Findings)
	if f := unsound(c.View, len(c.Entry.GetIntents())); f != nil {
		c.add(disagreement{code: CodeOrderContra, apart: f.code, records: []*amendsv1.FindingRecord{{Source: sourceProvider, Kind: f.kind, Id: clip(f.id, 160), Status: f.code}}})
	}
	shown := map[string]bool{}
	for _, r := range c.View.Refunds {
		shown[r.GetRefundId()] = true
	}
	for _, r := range c.Listed {
		if !shown[r.GetRefundId()] {
			c.add(disagreement{
				code: CodeOrderContra, payment: r.GetPaymentId(), refund: r.GetRefundId(), apart: "listed_for_the_tenant_only",
				records: []*amendsv1.FindingRecord{refundRecord(r), {Source: sourceProvider, Kind: kindOrder, Id: clip(c.OrderID, 160), Status: "without_this_refund"}},
			})
		}
	}
	return len(c.out.Findings) > before
}

// events compares what webhooks said with what a read shows.
func (c *balancing) events() {
	for _, s := range c.Entry.GetSightings() {
		if s.GetStatus() != amendsv1.RefundStatus_REFUND_STATUS_UNSPECIFIED || c.young(s.GetAt(), c.Grace) {
			continue // a read, or news that the next read may bear out
		}
		r, in := c.refunds[s.GetRefundId()], c.acknowledged[s.GetRefundId()]
		event := &amendsv1.FindingRecord{Source: sourceWebhook, Kind: kindEvent, Id: s.GetRefundId(), Status: s.GetKind()}
		d := disagreement{payment: r.GetPaymentId(), refund: s.GetRefundId(), intent: in, apart: s.GetKind()}
		switch {
		case r == nil && in == nil:
			d.code = CodeEventAlone
			d.records = []*amendsv1.FindingRecord{event, {Source: sourceProvider, Kind: kindRefund, Id: s.GetRefundId(), Status: statusAbsent}}
		case r != nil && s.GetKind() == EventFailed && standsFor(r.GetStatus()):
			d.code = CodeEventContra
			d.records = []*amendsv1.FindingRecord{event, refundRecord(r)}
		default:
			continue
		}
		c.addOnce(d)
	}
}

// addOnce adds a finding that is not there yet.
func (c *balancing) addOnce(d disagreement) {
	c.add(d)
	all := c.out.Findings
	last := all[len(all)-1]
	for _, f := range all[:len(all)-1] {
		if f.GetFindingId() == last.GetFindingId() {
			c.out.Findings = all[:len(all)-1]
			return
		}
	}
}

// sums checks MONEY-1 and MONEY-4 on what is: no payment gave back more than
// it took, and the order stays paid once, but for what people approved. What is
// nobody's is a finding by itself and does not make the order one too.
func (c *balancing) sums() {
	taken, on, refunded, code := map[string]int64{}, map[string][]*amendsv1.FindingRecord{}, int64(0), c.View.Order.GetTotal().GetCurrency()
	oneCurrency := true
	var everything []*amendsv1.FindingRecord
	names := map[string][]string{} // of what was counted, by payment
	count := func(payment string, m *amendsv1.Money, rec *amendsv1.FindingRecord) {
		taken[payment] += m.GetMinor()
		refunded += m.GetMinor()
		on[payment], everything = append(on[payment], rec), append(everything, rec)
		names[payment] = append(names[payment], c.nameOf(rec))
		oneCurrency = oneCurrency && m.GetCurrency() == code
	}
	for _, r := range c.View.Refunds {
		if !dead(r.GetStatus()) {
			count(r.GetPaymentId(), r.GetAmount(), refundRecord(r))
		}
	}
	approved := int64(0)
	for _, in := range c.Entry.GetIntents() {
		if live(in) && len(c.matched[in.GetIdempotencyKey()]) == 0 {
			count(in.GetPaymentId(), in.GetAmount(), intentRecord(in))
		}
		if live(in) && len(in.GetApprovalIds()) > 0 && kindOf(in) == KindGoodwill {
			approved += in.GetAmount().GetMinor()
		}
	}
	charged := map[string]bool{}
	for _, d := range c.View.Disputes {
		charged[d.GetPaymentId()] = charged[d.GetPaymentId()] || d.GetStatus() == amendsv1.DisputeStatus_DISPUTE_STATUS_LOST
	}
	settled := int64(0)
	for _, p := range c.View.Captures {
		id := p.GetPaymentId()
		if taken[id] > p.GetAmount().GetMinor() {
			mine := captureRecord(p, charged[id])
			c.add(disagreement{
				code: CodeCaptureOver, payment: id, about: c.only(on[id]), records: append([]*amendsv1.FindingRecord{mine}, on[id]...),
				named: []*amendsv1.FindingRecord{mine}, apart: together(names[id]),
			})
		}
		oneCurrency = oneCurrency && p.GetAmount().GetCurrency() == code
		if p.GetSettled() && !charged[id] {
			settled += p.GetAmount().GetMinor()
		}
	}
	total := c.View.Order.GetTotal().GetMinor()
	if !oneCurrency || refunded == 0 || total-(settled-refunded) <= c.strangers+approved {
		return
	}
	d := disagreement{code: CodeOrderOver, about: c.only(everything), apart: together(slices.Concat(slices.Collect(maps.Values(names))...)), records: []*amendsv1.FindingRecord{
		{Source: sourceProvider, Kind: kindOrder, Id: clip(c.OrderID, 160), Amount: c.View.Order.GetTotal(), Status: "total"},
		{Source: sourceProvider, Kind: kindSum, Id: clip(c.OrderID, 160), Amount: money.New(settled, code), Status: "settled"},
		{Source: sourceProvider, Kind: kindSum, Id: clip(c.OrderID, 160), Amount: money.New(refunded, code), Status: "refunded"},
	}}
	d.named = d.records[:1:1]
	d.records = append(d.records, everything...)
	c.add(d)
}

// nameOf names what a record counts by what stays: the key of the intent it is
// of, whether the provider shows its refund yet or not, else the refund itself.
func (c *balancing) nameOf(rec *amendsv1.FindingRecord) string {
	if in := c.intentOf(rec); in != nil {
		return in.GetIdempotencyKey()
	}
	return rec.GetId()
}

// together joins names, in whatever order they come.
func together(names []string) string {
	return strings.Join(slices.Sorted(slices.Values(names)), "\x00")
}

// only gives the one case whose refunds these are, or nothing.
func (c *balancing) only(records []*amendsv1.FindingRecord) string {
	about := ""
	for _, rec := range records {
		in := c.intentOf(rec)
		if in == nil {
			continue
		}
		if about != "" && about != in.GetCaseId() {
			return ""
		}
		about = in.GetCaseId()
	}
	return about
}

// intentOf gives the intent that a record of an intent or of a refund is of, or
// nil.
func (c *balancing) intentOf(rec *amendsv1.FindingRecord) *amendsv1.EffectIntent {
	if in := find(c.Entry, rec.GetId()); in != nil {
		return in
	}
	r := c.refunds[rec.GetId()]
	if r == nil {
		return nil
	}
	if in := c.acknowledged[r.GetRefundId()]; in != nil {
		return in
	}
	return find(c.Entry, r.GetReference())
}

// kindOf gives the kind of refund an intent asks for, as its stored request
// says.
func kindOf(in *amendsv1.EffectIntent) string {
	var body struct {
		Reason string `json:"reason"`
	}
	if json.Unmarshal(in.GetBody(), &body) != nil {
		return ""
	}
	return body.Reason
}

func refundRecord(r *amendsv1.Refund) *amendsv1.FindingRecord {
	return &amendsv1.FindingRecord{Source: sourceProvider, Kind: kindRefund, Id: clip(r.GetRefundId(), 160), Amount: readable(r.GetAmount()), Status: StatusWord(r.GetStatus())}
}

// readable leaves out an amount that is none.
func readable(m *amendsv1.Money) *amendsv1.Money {
	if !sound(m) {
		return nil
	}
	return m
}

func captureRecord(p *amendsv1.Capture, charged bool) *amendsv1.FindingRecord {
	status := strings.ToLower(strings.TrimPrefix(p.GetStatus().String(), "CAPTURE_STATUS_"))
	if charged {
		status = "charged_back"
	}
	return &amendsv1.FindingRecord{Source: sourceProvider, Kind: kindCapture, Id: clip(p.GetPaymentId(), 160), Amount: readable(p.GetAmount()), Status: status}
}

// intentRecord shows an intent with what is known of its outcome.
func intentRecord(in *amendsv1.EffectIntent) *amendsv1.FindingRecord {
	status := ReasonOpen
	if o := in.GetOutcome(); o != nil {
		status = strings.ToLower(strings.TrimPrefix(o.GetClass().String(), "EFFECT_CLASS_"))
		if o.GetRefundId() != "" {
			status += " " + StatusWord(o.GetProviderStatus())
		}
	}
	return &amendsv1.FindingRecord{Source: sourceLedger, Kind: kindIntent, Id: in.GetIdempotencyKey(), Amount: in.GetAmount(), Status: clip(status, 64)}
}

// StatusWord gives a refund's status as people read it: succeeded.
func StatusWord(s amendsv1.RefundStatus) string {
	return strings.ToLower(strings.TrimPrefix(s.String(), "REFUND_STATUS_"))
}

// orderText gives an order's id as people read it, also one that is no token.
func orderText(id string) string {
	quoted := strconv.QuoteToASCII(id)
	return cmp.Or(clip(quoted[1:len(quoted)-1], 64), "none")
}

// clip bounds what the provider says to the length of its field.
func clip(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	return strings.ToValidUTF8(text[:limit], "")
}
