package approval

import (
	"crypto/ed25519"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/amends-dev/amends/internal/ident"
	amendsv1 "github.com/amends-dev/amends/proto/amends/v1"
)

// Reason codes of a refusal.
const (
	ReasonMalformed       = "approval_malformed"
	ReasonUnknownApprover = "approver_unknown"
	ReasonUnknownKey      = "key_unknown"
	ReasonKeyRetired      = "key_retired"
	ReasonSignature       = "signature_invalid"
	ReasonOtherAction     = "action_mismatch"
	ReasonExpired         = "approval_expired"
	ReasonTenant          = "tenant_not_allowed"
	ReasonRole            = "role_missing"
	ReasonLimit           = "limit_exceeded"
	ReasonTooFew          = "approvers_missing"
	ReasonDenied          = "approval_is_denial"
	ReasonOwnProposal     = "own_proposal"
	ReasonOtherCase       = "case_mismatch"
)

// Refusal says why a signed decision does not count.
type Refusal struct {
	Reason string
	Err    error
}

func (r *Refusal) Error() string { return r.Reason + ": " + r.Err.Error() }
func (r *Refusal) Unwrap() error { return r.Err }

func refuse(reason, format string, args ...any) error {
	return &Refusal{Reason: reason, Err: fmt.Errorf(format, args...)}
}

// ReasonOf gives the reason code of an error of this package.
func ReasonOf(err error) string {
	var r *Refusal
	if errors.As(err, &r) {
		return r.Reason
	}
	return ReasonMalformed
}

// DecisionText gives the canonical text form of a decision, without its
// signature. It refuses a decision with a missing field.
func DecisionText(d *amendsv1.SignedDecision) (string, error) {
	if err := ident.Tokens("approval", d.GetApprovalId(), "tenant", d.GetTenant(), "case", d.GetCaseId(), "approver", d.GetApproverId(), "key", d.GetKeyId()); err != nil {
		return "", err
	}
	var verdict string
	switch d.GetVerdict() {
	case amendsv1.Verdict_VERDICT_APPROVE:
		verdict = "approve"
	case amendsv1.Verdict_VERDICT_DENY:
		verdict = "deny"
	default:
		return "", fmt.Errorf("verdict %d is unknown", d.GetVerdict())
	}
	if !isSHA256(d.GetActionSha256()) || !d.GetSignedAt().IsValid() || !d.GetExpires().IsValid() {
		return "", fmt.Errorf("action hash, signing time or expiry is missing")
	}
	var b strings.Builder
	b.WriteString("amends-decision/1\n")
	line(&b, "approval", d.GetApprovalId())
	line(&b, "verdict", verdict)
	line(&b, "tenant", d.GetTenant())
	line(&b, "case", d.GetCaseId())
	line(&b, "action-sha256", d.GetActionSha256())
	line(&b, "approver", d.GetApproverId())
	line(&b, "key", d.GetKeyId())
	line(&b, "signed-at", stamp(d.GetSignedAt()))
	line(&b, "expires", stamp(d.GetExpires()))
	line(&b, "reason", strconv.Quote(d.GetReason()))
	return b.String(), nil
}

// Sign fills in the key's approver and key id and signs the decision.
func Sign(k Key25519, d *amendsv1.SignedDecision) error {
	d.ApproverId, d.KeyId = k.ApproverID, k.KeyID
	text, err := DecisionText(d)
	if err != nil {
		return fmt.Errorf("sign decision: %w", err)
	}
	d.Signature = ed25519.Sign(k.Private, []byte(text))
	return nil
}

// Check judges one decision against the action it must name, as of a moment:
// form, approver, key, signature, exact action, expiry, not the proposer's own,
// tenant, role, limit.
// A valid denial passes; Sufficient tells approvals from denials.
func Check(reg *Registry, action *amendsv1.ActionRecord, d *amendsv1.SignedDecision, at time.Time) error {
	text, err := DecisionText(d)
	if err != nil {
		return refuse(ReasonMalformed, "%w", err)
	}
	who, err := reg.verify(d.GetApproverId(), d.GetKeyId(), text, d.GetSignature(), at)
	if err != nil {
		return err
	}
	want, err := ActionSHA256(action)
	if err != nil {
		return refuse(ReasonMalformed, "%w", err)
	}
	if d.GetActionSha256() != want || d.GetTenant() != action.GetTenant() || d.GetCaseId() != action.GetCaseId() ||
		!d.GetExpires().AsTime().Equal(action.GetExpires().AsTime()) {
		return refuse(ReasonOtherAction, "decision is for action %s", d.GetActionSha256())
	}
	if !at.Before(action.GetExpires().AsTime()) {
		return refuse(ReasonExpired, "expired at %s", action.GetExpires().AsTime().UTC().Format(time.RFC3339))
	}
	if d.GetApproverId() == action.GetProposedBy() {
		return refuse(ReasonOwnProposal, "%s proposed the action", d.GetApproverId())
	}
	return who.may(action)
}

// Sufficient checks that decisions hold enough valid approvals by different
// approvers and gives the ids they are spent under. One bad or denying decision
// refuses the whole: nothing that does not belong may travel with an action.
func Sufficient(reg *Registry, action *amendsv1.ActionRecord, decisions []*amendsv1.SignedDecision, needed int, at time.Time) ([]string, error) {
	var ids []string
	seen := map[string]bool{}
	for _, d := range decisions {
		if slices.Contains(ids, d.GetApprovalId()) {
			return nil, refuse(ReasonMalformed, "approval id %s is used twice", d.GetApprovalId())
		}
		if err := Check(reg, action, d, at); err != nil {
			return nil, err
		}
		if d.GetVerdict() != amendsv1.Verdict_VERDICT_APPROVE {
			return nil, refuse(ReasonDenied, "decision %s denies", d.GetApprovalId())
		}
		if seen[d.GetApproverId()] {
			continue
		}
		seen[d.GetApproverId()] = true
		ids = append(ids, d.GetApprovalId())
	}
	if len(ids) < needed {
		return nil, refuse(ReasonTooFew, "%d of %d approvers", len(ids), needed)
	}
	return ids, nil
}
