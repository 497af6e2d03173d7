package reconcile

import (
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	amendsv1 "github.com/amends-dev/amends/proto/amends/v1"
)

// merged gives the report that says what either of two of the same run says:
// each finding once, the larger counts, and a reason if one has any. The reason
// of one who did not look at all gives way to one who did.
func merged(have, r *amendsv1.ReconciliationReport) *amendsv1.ReconciliationReport {
	switch {
	case have == nil:
		return r
	case have.GetFinishedAt() != nil && notLooked(r):
		return have
	}
	out := proto.CloneOf(have)
	out.StartedAt = sooner(have.GetStartedAt(), r.GetStartedAt())
	out.FinishedAt = later(have.GetFinishedAt(), r.GetFinishedAt())
	out.Orders, out.Refunds = max(have.GetOrders(), r.GetOrders()), max(have.GetRefunds(), r.GetRefunds())
	out.Cases, out.Updated = max(have.GetCases(), r.GetCases()), max(have.GetUpdated(), r.GetUpdated())
	if have.GetIncomplete() == "" || notLooked(have) && r.GetFinishedAt() != nil {
		out.Incomplete = r.GetIncomplete()
	}
	seen, size, over := map[string]bool{}, 0, uint64(0)
	for _, f := range have.GetFindings() {
		seen[f.GetFindingId()], size = true, size+sizeOf(f)
	}
	for _, f := range r.GetFindings() {
		switch {
		case seen[f.GetFindingId()]:
		case len(out.GetFindings()) >= MaxFindings || size+sizeOf(f) > maxReport:
			over++
		default:
			size += sizeOf(f)
			out.Findings = append(out.Findings, f)
		}
	}
	out.Omitted = max(have.GetOmitted(), r.GetOmitted(), over) // the same may be left out of both
	return out
}

// notLooked reports whether a report is of one who compared nothing.
func notLooked(r *amendsv1.ReconciliationReport) bool {
	return r.GetIncomplete() == ReasonNotConfigured || r.GetIncomplete() == ReasonTooOld
}

func sizeOf(f *amendsv1.EffectFinding) int { return proto.Size(f) + 8 }

func sooner(a, b *timestamppb.Timestamp) *timestamppb.Timestamp {
	if b == nil || a != nil && !b.AsTime().Before(a.AsTime()) {
		return a
	}
	return b
}

func later(a, b *timestamppb.Timestamp) *timestamppb.Timestamp {
	if b == nil || a != nil && !b.AsTime().After(a.AsTime()) {
		return a
	}
	return b
}

// apart is how far a moment is outside of an interval.
func apart(at, from, to time.Time) time.Duration {
	return max(from.Sub(at), at.Sub(to), 0)
}
