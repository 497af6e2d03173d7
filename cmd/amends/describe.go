package main

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/amends-dev/amends/internal/deskapi"
	"github.com/amends-dev/amends/internal/display"
	"github.com/amends-dev/amends/internal/money"
)

// describe writes the action and the decision as they will be signed, and the
// evidence as the console tells it.
func describe(w io.Writer, p proposal, shown deskapi.Action, decision string) {
	fmt.Fprintf(w, "Action (refunds %s in all, valid until %s):\n\n%s\nsha256 %s\n\n",
		money.Format(p.total), p.expires.UTC().Format(time.RFC3339), indent(p.text), p.sha256)
	e := shown.Evidence
	fmt.Fprintf(w, "Evidence, as the console tells it (not signed beyond its hash):\n")
	fmt.Fprintf(w, "  complete %t, reason %s, look-ups %s\n", e.Complete, display.Line(e.Reason), display.Line(orNone(strings.Join(e.CallIDs, " "))))
	if e.OrderTotal != nil {
		fmt.Fprintf(w, "  order total %s\n", format(*e.OrderTotal))
	}
	for _, c := range e.Captures {
		fmt.Fprintf(w, "  capture %s %s %s\n", display.Line(c.PaymentID), format(c.Amount), display.Line(c.Status))
	}
	for _, r := range e.Refunds {
		fmt.Fprintf(w, "  refund %s on %s %s %s\n", display.Line(r.RefundID), display.Line(r.PaymentID), format(r.Amount), display.Line(r.Status))
	}
	for _, d := range e.Disputes {
		fmt.Fprintf(w, "  dispute %s on %s %s\n", display.Line(d.DisputeID), display.Line(d.PaymentID), display.Line(d.Status))
	}
	for _, c := range e.Conflicts {
		fmt.Fprintf(w, "  conflict %s: %s / %s (resolved by %s)\n", display.Line(c.Kind), display.Line(c.OneSide), display.Line(c.OtherSide), display.Line(orNone(c.ResolvedBy)))
	}
	if e.PolicyCitation != "" {
		fmt.Fprintf(w, "  policy %s: \"%s\"\n", display.Line(e.PolicyCitation), display.Line(e.PolicyQuote))
	}
	fmt.Fprintf(w, "\nDecision to sign (%d recorded, %d needed):\n\n%s", shown.ApprovalsRecorded, shown.ApproversNeeded, indent(decision))
}

func format(a deskapi.Amount) string {
	return display.Line(money.Format(money.New(a.Minor, a.Currency)))
}

// indent sets a text off, with what cannot be seen in it escaped.
func indent(text string) string {
	return "  " + strings.ReplaceAll(display.Text(strings.TrimSuffix(text, "\n")), "\n", "\n  ") + "\n"
}

func orNone(s string) string {
	if s == "" {
		return "none"
	}
	return s
}
