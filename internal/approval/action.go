package approval

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/amends-dev/amends/internal/ident"
	"github.com/amends-dev/amends/internal/money"
	amendsv1 "github.com/amends-dev/amends/proto/amends/v1"
)

// Key gives the idempotency key of one refund: a pure function of the case and
// the payment, the same in every process, attempt and delivery (B01, B02).
func Key(caseID, paymentID string) string { return "refund:" + caseID + ":" + paymentID }

// ID names the nth signed decision of a case, from 1: apr-8472-1.
func ID(caseID string, n int) string {
	return "apr-" + ident.Suffix(caseID) + "-" + strconv.Itoa(n)
}

// IDOf names an approver's decision where several are needed: they may sign at
// the same moment, so the approver is part of the name.
func IDOf(caseID string, n, needed int, approver string) string {
	if needed > 1 {
		return ID(caseID, n) + "-" + approver
	}
	return ID(caseID, n)
}

// ActionText gives the canonical text form of an action record. It refuses a
// record with a missing, empty or ambiguous field.
func ActionText(a *amendsv1.ActionRecord) (string, error) {
	if err := checkAction(a); err != nil {
		return "", fmt.Errorf("action record: %w", err)
	}
	var b strings.Builder
	b.WriteString("amends-action/" + actionVersion(a) + "\n")
	line(&b, "tenant", a.GetTenant())
	line(&b, "case", a.GetCaseId())
	line(&b, "case-version", strconv.FormatUint(a.GetCaseVersion(), 10))
	line(&b, "proposal", strconv.FormatUint(uint64(a.GetProposal()), 10))
	if a.GetProposedBy() != "" {
		line(&b, "proposed-by", a.GetProposedBy())
	}
	line(&b, "order", a.GetOrderId())
	for _, r := range a.GetRefunds() {
		line(&b, "refund", refundLine(r))
	}
	line(&b, "evidence-sha256", a.GetEvidenceSha256())
	line(&b, "created", stamp(a.GetCreated()))
	line(&b, "expires", stamp(a.GetExpires()))
	return b.String(), nil
}

// actionVersion is the version of the text form: 2 names the custodian who
// proposed the action, 1 is of actions that follow from the desk's rules.
func actionVersion(a *amendsv1.ActionRecord) string {
	if a.GetProposedBy() != "" {
		return "2"
	}
	return "1"
}

func refundLine(r *amendsv1.ActionRefund) string {
	return strings.Join([]string{
		r.GetPaymentId(), r.GetAmount().GetCurrency(), strconv.FormatInt(r.GetAmount().GetMinor(), 10), r.GetKind(), r.GetIdempotencyKey(),
	}, " ")
}

// ActionSHA256 gives the lower-case hex hash of the canonical text form.
func ActionSHA256(a *amendsv1.ActionRecord) (string, error) {
	text, err := ActionText(a)
	if err != nil {
		return "", err
	}
	return hash(text), nil
}

// Total gives the sum of an action's refunds, in their one currency.
func Total(a *amendsv1.ActionRecord) (*amendsv1.Money, error) {
	var sum *amendsv1.Money
	for _, r := range a.GetRefunds() {
		if sum == nil {
			sum = money.New(0, r.GetAmount().GetCurrency())
		}
		var err error
		if sum, err = money.Add(sum, r.GetAmount()); err != nil {
			return nil, err
		}
	}
	if sum == nil {
		return nil, fmt.Errorf("no refunds")
	}
	return sum, nil
}

func checkAction(a *amendsv1.ActionRecord) error {
	if err := ident.Tokens("tenant", a.GetTenant(), "case", a.GetCaseId(), "order", a.GetOrderId()); err != nil {
		return err
	}
	if a.GetProposedBy() != "" {
		if err := ident.Tokens("proposed-by", a.GetProposedBy()); err != nil {
			return err
		}
	}
	switch {
	case a.GetCaseVersion() == 0:
		return fmt.Errorf("case version is missing")
	case a.GetProposal() == 0:
		return fmt.Errorf("proposal number is missing")
	case len(a.GetRefunds()) == 0:
		return fmt.Errorf("no refunds")
	case !isSHA256(a.GetEvidenceSha256()):
		return fmt.Errorf("evidence hash is not a SHA-256 in hex")
	case !a.GetCreated().IsValid() || !a.GetExpires().IsValid():
		return fmt.Errorf("created or expires is missing")
	case !a.GetExpires().AsTime().After(a.GetCreated().AsTime()):
		return fmt.Errorf("expires is not after created")
	}
	last := ""
	for _, r := range a.GetRefunds() {
		if err := ident.Tokens("payment", r.GetPaymentId(), "kind", r.GetKind()); err != nil {
			return err
		}
		if err := money.Valid(r.GetAmount()); err != nil {
			return fmt.Errorf("payment %s: %w", r.GetPaymentId(), err)
		}
		switch {
		case r.GetAmount().GetMinor() == 0:
			return fmt.Errorf("payment %s: amount is zero", r.GetPaymentId())
		case r.GetIdempotencyKey() != Key(a.GetCaseId(), r.GetPaymentId()):
			return fmt.Errorf("payment %s: idempotency key is not that of case and payment", r.GetPaymentId())
		case r.GetPaymentId() <= last:
			return fmt.Errorf("refunds are not in ascending order of payment")
		}
		last = r.GetPaymentId()
	}
	if _, err := Total(a); err != nil {
		return err
	}
	return nil
}

func line(b *strings.Builder, name, value string) {
	b.WriteString(name)
	b.WriteByte('=')
	b.WriteString(value)
	b.WriteByte('\n')
}

func stamp(t *timestamppb.Timestamp) string { return t.AsTime().UTC().Format(time.RFC3339Nano) }

func hash(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

func isSHA256(s string) bool {
	if len(s) != 64 || strings.ToLower(s) != s {
		return false
	}
	_, err := hex.DecodeString(s)
	return err == nil
}
