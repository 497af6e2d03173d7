package evidence

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash"
	"slices"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	amendsv1 "github.com/amends-dev/amends/proto/amends/v1"
)

// SHA256 gives the lower-case hex hash of the facts of a case: the payment
// evidence and the policy passage and rule they are judged by. The order of
// lists does not count.
func SHA256(p *amendsv1.PaymentEvidence, r *amendsv1.PolicyReading) string {
	h := sha256.New()
	put(h, "amends-evidence/1")
	put(h, "order", p.GetOrder().GetOrderId(), amount(p.GetOrder().GetTotal()), fmt.Sprint(p.GetComplete()))
	for _, c := range sorted(p.GetCaptures(), (*amendsv1.Capture).GetPaymentId) {
		put(h, "capture", c.GetPaymentId(), amount(c.GetAmount()), c.GetStatus().String(), fmt.Sprint(c.GetCaptured(), c.GetSettled()),
			stamp(c.GetCapturedAt()), stamp(c.GetSettledAt()), c.GetMethod())
	}
	for _, f := range sorted(p.GetRefunds(), (*amendsv1.Refund).GetRefundId) {
		put(h, "refund", f.GetRefundId(), f.GetPaymentId(), amount(f.GetAmount()), f.GetStatus().String(), f.GetReference())
	}
	for _, d := range sorted(p.GetDisputes(), (*amendsv1.Dispute).GetDisputeId) {
		put(h, "dispute", d.GetDisputeId(), d.GetPaymentId(), d.GetStatus().String())
	}
	put(h, "policy", r.GetPassage().GetDocumentId(), fmt.Sprint(r.GetPassage().GetVersion()), r.GetPassage().GetCitation(), r.GetCorpusVersion(), fmt.Sprint(r.GetRule().GetWindowHours()))
	for _, t := range r.GetRule().GetApprovalThresholds() {
		put(h, "threshold", amount(t))
	}
	for _, t := range r.GetRule().GetSecondThresholds() {
		put(h, "second-threshold", amount(t))
	}
	return hex.EncodeToString(h.Sum(nil))
}

// ClaimsSHA256 gives the hash of the facts a reply may state. Their order
// counts: it is the order they are told in.
func ClaimsSHA256(kind amendsv1.ReplyKind, claims []*amendsv1.Claim) string {
	h := sha256.New()
	put(h, "amends-claims/1", kind.String())
	for _, c := range claims {
		put(h, c.GetKind().String(), amount(c.GetAmount()), fmt.Sprint(c.GetCount(), c.GetDays()), c.GetRefundId(), c.GetRefundStatus().String(), stamp(c.GetTime()), c.GetMethod())
	}
	return hex.EncodeToString(h.Sum(nil))
}

// TextSHA256 gives the hash a verification names a draft by.
func TextSHA256(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

// put writes fields with their lengths, so that no two lists run together.
func put(h hash.Hash, fields ...string) {
	for _, f := range fields {
		_, _ = fmt.Fprintf(h, "%d:%s", len(f), f) // a hash never fails to write
	}
	_, _ = h.Write([]byte{'\n'})
}

func amount(m *amendsv1.Money) string {
	if m == nil {
		return "-"
	}
	return fmt.Sprintf("%s %d", m.GetCurrency(), m.GetMinor())
}

func stamp(t *timestamppb.Timestamp) string {
	if t == nil {
		return "-"
	}
	return t.AsTime().UTC().Format(time.RFC3339Nano)
}

func sorted[T any](list []T, key func(T) string) []T {
	return slices.SortedStableFunc(slices.Values(list), func(a, b T) int { return cmp.Compare(key(a), key(b)) })
}
