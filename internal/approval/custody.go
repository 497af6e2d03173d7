package approval

import (
	"crypto/ed25519"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/amends-dev/amends/internal/ident"
	"github.com/amends-dev/amends/internal/money"
	amendsv1 "github.com/amends-dev/amends/proto/amends/v1"
)

// RoleCustodian is the role of people who may take cases into custody.
const RoleCustodian = "custodian"

// Kinds of refund: of a capture that was one too many, or goodwill, which only
// people propose and which alone may take an order below its total.
const (
	KindDuplicate = "duplicate_capture"
	KindGoodwill  = "goodwill"
)

var steps = map[amendsv1.CustodyStep]string{
	amendsv1.CustodyStep_CUSTODY_STEP_TAKE: "take", amendsv1.CustodyStep_CUSTODY_STEP_RELEASE: "release",
	amendsv1.CustodyStep_CUSTODY_STEP_PROPOSE: "propose", amendsv1.CustodyStep_CUSTODY_STEP_DECLINE: "decline",
	amendsv1.CustodyStep_CUSTODY_STEP_ASK: "ask", amendsv1.CustodyStep_CUSTODY_STEP_INVESTIGATE: "investigate",
	amendsv1.CustodyStep_CUSTODY_STEP_CLOSE: "close", amendsv1.CustodyStep_CUSTODY_STEP_SETTLE: "settle",
	amendsv1.CustodyStep_CUSTODY_STEP_RESOLVE: "resolve",
}

// StepName gives a step as people write it.
func StepName(s amendsv1.CustodyStep) string { return steps[s] }

// CustodyText gives the canonical text form of a custodian's decision, without
// its signature. It refuses a decision with a missing field, or with one that
// its step does not have.
func CustodyText(d *amendsv1.CustodyDecision) (string, error) {
	if err := ident.Tokens("tenant", d.GetTenant(), "case", d.GetCaseId(), "custodian", d.GetCustodianId(), "key", d.GetKeyId()); err != nil {
		return "", err
	}
	step, ok := steps[d.GetStep()]
	if !ok {
		return "", fmt.Errorf("step %d is unknown", d.GetStep())
	}
	if !isSHA256(d.GetPacketSha256()) || !d.GetSignedAt().IsValid() {
		return "", fmt.Errorf("packet hash or signing time is missing")
	}
	writes := d.GetStep() == amendsv1.CustodyStep_CUSTODY_STEP_ASK || d.GetStep() == amendsv1.CustodyStep_CUSTODY_STEP_CLOSE
	proposes := d.GetStep() == amendsv1.CustodyStep_CUSTODY_STEP_PROPOSE
	settles := d.GetStep() == amendsv1.CustodyStep_CUSTODY_STEP_SETTLE
	if writes != (strings.TrimSpace(d.GetText()) != "") || proposes != (len(d.GetRefunds()) > 0) || settles != (len(d.GetSettlements()) > 0) {
		return "", fmt.Errorf("a text belongs to ask and close, refunds to propose, settlements to settle, and nothing else")
	}
	if d.GetStep() == amendsv1.CustodyStep_CUSTODY_STEP_RESOLVE && strings.TrimSpace(d.GetReason()) == "" {
		return "", fmt.Errorf("resolve wants a reason: it is the note that stays")
	}
	var b strings.Builder
	b.WriteString("amends-custody/" + custodyVersion(d.GetStep()) + "\n")
	line(&b, "step", step)
	line(&b, "tenant", d.GetTenant())
	line(&b, "case", d.GetCaseId())
	line(&b, "packet-sha256", d.GetPacketSha256())
	line(&b, "custodian", d.GetCustodianId())
	line(&b, "key", d.GetKeyId())
	line(&b, "signed-at", stamp(d.GetSignedAt()))
	for _, r := range d.GetRefunds() {
		if err := checkProposed(d.GetCaseId(), r); err != nil {
			return "", err
		}
		line(&b, "refund", refundLine(r))
	}
	if err := checkSettled(d); err != nil {
		return "", err
	}
	for _, st := range d.GetSettlements() {
		line(&b, "settle", st.GetIdempotencyKey()+" "+orNone(st.GetRefundId()))
	}
	line(&b, "text", strconv.Quote(d.GetText()))
	line(&b, "reason", strconv.Quote(d.GetReason()))
	return b.String(), nil
}

// custodyVersion is the version of the text form: 2 is of the steps that came
// later, so that what was signed before reads as it did.
func custodyVersion(step amendsv1.CustodyStep) string {
	if step == amendsv1.CustodyStep_CUSTODY_STEP_SETTLE || step == amendsv1.CustodyStep_CUSTODY_STEP_RESOLVE {
		return "2"
	}
	return "1"
}

// noRefund stands for a refund that does not exist; no refund may be named so.
const noRefund = "-"

func orNone(refundID string) string {
	if refundID == "" {
		return noRefund
	}
	return refundID
}

// checkSettled checks that each answer is about another key of the case, in
// ascending order, and that no refund is the answer to two.
func checkSettled(d *amendsv1.CustodyDecision) error {
	last, named := "", map[string]bool{}
	for _, st := range d.GetSettlements() {
		key, id := st.GetIdempotencyKey(), st.GetRefundId()
		payment := strings.TrimPrefix(key, Key(d.GetCaseId(), ""))
		switch {
		case key != Key(d.GetCaseId(), payment) || ident.Token(payment) != nil:
			return fmt.Errorf("settlement %q: not a key of the case", key)
		case key <= last:
			return fmt.Errorf("settlements are not in ascending order of key")
		case id != "" && (ident.Token(id) != nil || id == noRefund):
			return fmt.Errorf("settlement %s: refund id is not valid", key)
		case id != "" && named[id]:
			return fmt.Errorf("settlement %s: refund %s is named twice", key, id)
		}
		last, named[id] = key, true
	}
	return nil
}

func checkProposed(caseID string, r *amendsv1.ActionRefund) error {
	if err := ident.Tokens("payment", r.GetPaymentId()); err != nil {
		return err
	}
	if err := money.Valid(r.GetAmount()); err != nil {
		return fmt.Errorf("payment %s: %w", r.GetPaymentId(), err)
	}
	switch {
	case r.GetAmount().GetMinor() == 0:
		return fmt.Errorf("payment %s: amount is zero", r.GetPaymentId())
	case r.GetKind() != KindDuplicate && r.GetKind() != KindGoodwill:
		return fmt.Errorf("payment %s: kind %q is unknown", r.GetPaymentId(), r.GetKind())
	case r.GetIdempotencyKey() != Key(caseID, r.GetPaymentId()):
		return fmt.Errorf("payment %s: idempotency key is not that of case and payment", r.GetPaymentId())
	}
	return nil
}

// SignCustody fills in the key's owner and key id and signs the decision.
func SignCustody(k Key25519, d *amendsv1.CustodyDecision) error {
	d.CustodianId, d.KeyId = k.ApproverID, k.KeyID
	text, err := CustodyText(d)
	if err != nil {
		return fmt.Errorf("sign custody decision: %w", err)
	}
	d.Signature = ed25519.Sign(k.Private, []byte(text))
	return nil
}

// CheckCustody judges a custodian's decision about a case as of a moment: form,
// person, key, signature, case, tenant, role. Whether the case is in the
// signer's custody is for its record to say.
func CheckCustody(reg *Registry, tenant, caseID string, d *amendsv1.CustodyDecision, at time.Time) error {
	text, err := CustodyText(d)
	if err != nil {
		return refuse(ReasonMalformed, "%w", err)
	}
	who, err := reg.verify(d.GetCustodianId(), d.GetKeyId(), text, d.GetSignature(), at)
	if err != nil {
		return err
	}
	switch {
	case d.GetTenant() != tenant || d.GetCaseId() != caseID:
		return refuse(ReasonOtherCase, "decision is about case %s", d.GetCaseId())
	case !slices.Contains(who.Roles, RoleCustodian):
		return refuse(ReasonRole, "%s is not a %s", who.ID, RoleCustodian)
	case !slices.Contains(who.Tenants, tenant):
		return refuse(ReasonTenant, "%s has no custody of cases of %s", who.ID, tenant)
	}
	return nil
}
