package triage

import (
	"github.com/amends-dev/amends/internal/prose"
	amendsv1 "github.com/amends-dev/amends/proto/amends/v1"
)

// maxAmounts bounds what a triage may hold.
const maxAmounts = 8

// Read takes a message apart. The caller bounds its length.
func Read(text string) Reading {
	p := prose.Read(text)
	w := words{Text: p, class: make([]class, len(p.Tokens))}
	for i, t := range p.Tokens {
		switch {
		case t.Kind == prose.Word:
			w.class[i] = classOf(t.Low)
		case t.Plain() && t.Digits == 1 && t.Raw >= "2":
			w.class[i] = several
		}
	}
	r := Reading{Amounts: p.Amounts(maxAmounts), Ambiguous: p.Hidden.Ambiguous && digits(p), Flags: w.flags()}
	if !r.Ambiguous {
		r.Refs, r.Explicit, r.MoreRefs = w.refs()
	}
	w.named = len(r.Refs) > 0
	r.ClaimsRefund = w.claimsRefund()
	r.Withdraws, r.Declines = w.withdraws()
	r.Fraud = w.fraud()
	dup, denied := w.duplicate()
	r.Retracts = denied || r.Declines && !r.Withdraws
	r.Intents, r.Confidence = w.intents(r, dup)
	return r
}

func digits(p prose.Text) bool {
	for _, t := range p.Tokens {
		if t.Digits > 0 {
			return true
		}
	}
	return false
}

// intents orders what the text wants, and says how sure that is.
func (w *words) intents(r Reading, dup bool) ([]string, uint32) {
	asks := r.Declines && !r.Withdraws && w.asks()
	status, cancels := asks || w.status(), w.cancels()
	var out []string
	add := func(on bool, intent string) {
		if on {
			out = append(out, intent)
		}
	}
	add(r.Withdraws, CancelRequest)
	add(r.Fraud, UnrecognisedCharge)
	add(asks, RefundStatus) // told how it stands, and nothing refunded
	add(dup, DuplicateCharge)
	add(!r.Fraud && !dup && w.unrecognised(), UnrecognisedCharge)
	add(!asks && (status || dup && w.any(refund) && w.waits()), RefundStatus)
	add(!r.Withdraws && cancels && !dup, CancelRequest)
	add(!status && w.wantsMoney() && (!dup || w.any(broken)), RefundOther)
	if len(out) == 0 {
		return []string{Other}, 20
	}
	if r.Retracts {
		return out, unsure
	}
	sure := uint32(75)
	if r.Withdraws || r.Fraud || dup || status {
		sure = 85
	}
	if r.Explicit {
		sure += 10
	}
	return out, sure
}

func (w *words) flags() []amendsv1.TextFlag {
	var out []amendsv1.TextFlag
	if w.instructs() {
		out = append(out, amendsv1.TextFlag_TEXT_FLAG_INSTRUCTION)
	}
	if w.Hidden.Invisible || w.Hidden.Ambiguous {
		out = append(out, amendsv1.TextFlag_TEXT_FLAG_BIDI_OR_INVISIBLE)
	}
	if w.Hidden.Control {
		out = append(out, amendsv1.TextFlag_TEXT_FLAG_CONTROL_CHARACTERS)
	}
	if w.Hidden.Markup {
		out = append(out, amendsv1.TextFlag_TEXT_FLAG_MARKUP)
	}
	return out
}
