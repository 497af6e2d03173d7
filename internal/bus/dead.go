package bus

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"unicode"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/amends-dev/amends/internal/roles"
	"github.com/amends-dev/amends/internal/subject"
	amendsv1 "github.com/amends-dev/amends/proto/amends/v1"
)

// deadLetter stores the original whole, with why it could not be handled, and
// returns when the broker has acknowledged it.
func (p *pump) deadLetter(ctx context.Context, d *delivery, reason string, cause error) error {
	dl := d.letter(p.conn.cfg.Service, reason, cause)
	dl.LastAt = timestamppb.New(p.conn.now())
	data, err := proto.MarshalOptions{Deterministic: true}.Marshal(dl)
	if err != nil {
		return fmt.Errorf("encode a dead letter: %w", err)
	}
	if _, err := p.conn.Publish(ctx, subject.Dead(string(p.conn.cfg.Service), dl.GetTenant(), dl.GetCaseId()), data); err != nil {
		return fmt.Errorf("store a dead letter: %w", err)
	}
	p.conn.metrics.deadLetter(string(p.conn.cfg.Service), reason)
	p.conn.log.Warn("message became a dead letter",
		slog.String("consumer", p.spec.Name), slog.String("reason", reason),
		slog.String("tenant", dl.GetTenant()), slog.String("case", dl.GetCaseId()), slog.String("trace", dl.GetTraceId()),
		slog.Uint64("sequence", dl.GetOriginal().GetSequence()), slog.Uint64("deliveries", dl.GetDeliveries()),
		slog.String("error", dl.GetError()))
	return nil
}

// letter builds the dead letter. Tenant and case come from the subject, which
// the broker vouches for; task, attempt and trace from the envelope as far as
// it can be decoded, for people only.
func (d *delivery) letter(service roles.Service, reason string, cause error) *amendsv1.DeadLetter {
	data := d.msg.Data
	sum := sha256.Sum256(data)
	dl := &amendsv1.DeadLetter{
		Service:    string(service),
		Reason:     reason,
		Deliveries: d.meta.NumDelivered,
		FirstAt:    timestamppb.New(d.at),
		Original: &amendsv1.OriginalMessage{
			Subject:  d.msg.Subject,
			Headers:  headers(d.msg.Header),
			Data:     data,
			Stream:   d.meta.Stream,
			Sequence: d.meta.Sequence.Stream,
			StoredAt: timestamppb.New(d.at),
			Sha256:   hex.EncodeToString(sum[:]),
		},
	}
	if cause != nil {
		dl.Error = Mask(cause.Error())
	}
	if parts, err := subject.Parse(d.msg.Subject); err == nil {
		dl.Tenant, dl.CaseId = parts.Tenant, parts.CaseID
	}
	var env amendsv1.Envelope
	if proto.Unmarshal(data, &env) == nil {
		dl.TaskId, dl.Attempt, dl.TraceId = name(env.GetTaskId(), 96), env.GetAttempt(), name(env.GetTraceId(), 64)
	}
	return dl
}

func headers(in map[string][]string) []*amendsv1.Header {
	out := make([]*amendsv1.Header, 0, len(in))
	for name, values := range in {
		out = append(out, &amendsv1.Header{Name: name, Values: values})
	}
	slices.SortFunc(out, func(a, b *amendsv1.Header) int { return strings.Compare(a.GetName(), b.GetName()) })
	return out
}

// name gives s if it reads like an identifier of at most n characters; what a
// broken envelope claims may be anything.
func name(s string, n int) string {
	if len(s) > n || strings.IndexFunc(s, func(r rune) bool {
		return r != '-' && r != '_' && (r > unicode.MaxASCII || !unicode.IsLetter(r) && !unicode.IsDigit(r))
	}) >= 0 {
		return ""
	}
	return s
}
