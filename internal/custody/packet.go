package custody

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/amends-dev/amends/internal/money"
	amendsv1 "github.com/amends-dev/amends/proto/amends/v1"
)

// Text gives the canonical text form of a packet. Two different packets never
// give one text: what is free in it is quoted.
func Text(p *amendsv1.CustodyPacket) string {
	var b strings.Builder
	b.WriteString("amends-custody-packet/1\n")
	field := func(name, value string) {
		b.WriteString(name)
		b.WriteByte('=')
		b.WriteString(value)
		b.WriteByte('\n')
	}
	all := func(name string, values []string) {
		for _, v := range values {
			field(name, strconv.Quote(v))
		}
	}
	field("trigger", strconv.Quote(p.GetTrigger()))
	field("custodian", strconv.Quote(p.GetCustodian()))
	if p.GetExpires() != nil {
		field("expires", p.GetExpires().AsTime().UTC().Format(time.RFC3339Nano))
	}
	for _, f := range p.GetVerifiedFacts() {
		field("fact", fact(f))
	}
	for _, c := range p.GetSources() {
		field("source", fmt.Sprintf("%s %s %s", c.GetCallId(), c.GetTool(), c.GetObservedAt().AsTime().UTC().Format(time.RFC3339Nano)))
	}
	for _, s := range p.GetCustomerStatements() {
		field("customer-statement", strconv.Quote(s.GetText()))
	}
	all("completed-action", p.GetCompletedActions())
	all("correction", p.GetCorrections())
	all("promised", p.GetPromised())
	all("open-question", p.GetOpenQuestions())
	all("risk-marker", p.GetRiskMarkers())
	all("included", p.GetIncludedFields())
	all("excluded", p.GetExcludedFields())
	return b.String()
}

// SHA256 gives the lower-case hex hash of a packet's text form.
func SHA256(p *amendsv1.CustodyPacket) string {
	sum := sha256.Sum256([]byte(Text(p)))
	return hex.EncodeToString(sum[:])
}

// fact writes a claim with everything it carries.
func fact(c *amendsv1.Claim) string {
	parts := []string{strings.ToLower(strings.TrimPrefix(c.GetKind().String(), "CLAIM_KIND_"))}
	if c.GetAmount() != nil {
		parts = append(parts, "amount="+strconv.Quote(money.Format(c.GetAmount())))
	}
	if c.GetCount() > 0 {
		parts = append(parts, fmt.Sprintf("count=%d", c.GetCount()))
	}
	if c.GetRefundId() != "" {
		parts = append(parts, "refund="+strconv.Quote(c.GetRefundId()), "status="+strings.ToLower(strings.TrimPrefix(c.GetRefundStatus().String(), "REFUND_STATUS_")))
	}
	if c.GetTime() != nil {
		parts = append(parts, "time="+c.GetTime().AsTime().UTC().Format(time.RFC3339Nano))
	}
	if c.GetMethod() != "" {
		parts = append(parts, "method="+strconv.Quote(c.GetMethod()))
	}
	if c.GetDays() > 0 {
		parts = append(parts, fmt.Sprintf("days=%d", c.GetDays()))
	}
	return strings.Join(parts, " ")
}
