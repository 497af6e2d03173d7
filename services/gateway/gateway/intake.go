package gateway

import (
	"context"
	"errors"
	"log/slog"
	"net/http"

	"go.opentelemetry.io/otel/trace"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/amends-dev/amends/internal/bus"
	"github.com/amends-dev/amends/internal/deskapi"
	"github.com/amends-dev/amends/internal/edge"
	"github.com/amends-dev/amends/internal/envelope"
	"github.com/amends-dev/amends/internal/roles"
	"github.com/amends-dev/amends/internal/subject"
	amendsv1 "github.com/amends-dev/amends/proto/amends/v1"
)

// envelope gives the envelope of what a caller says; case and request are still
// to be filled in.
func (g *gateway) envelope(ctx context.Context, c caller, id, purpose string) *amendsv1.Envelope {
	return &amendsv1.Envelope{
		MessageId: id, Tenant: c.tenant, Sender: string(roles.Gateway), Recipient: string(roles.Orchestrator), Purpose: purpose,
		CustomerId: c.customer, TraceId: trace.SpanContextFromContext(ctx).TraceID().String(),
		SentAt: timestamppb.New(g.now()),
	}
}

func (p post) untrusted() *amendsv1.UntrustedText {
	return &amendsv1.UntrustedText{
		Text: p.message, Flags: p.flags, Origin: amendsv1.TextOrigin_TEXT_ORIGIN_CUSTOMER,
		Trust: amendsv1.TextTrust_TEXT_TRUST_UNTRUSTED, InstructionAuthority: amendsv1.InstructionAuthority_INSTRUCTION_AUTHORITY_NONE,
	}
}

// send stores a message at its case, with a second try when it is not known
// whether the first one did.
func (g *gateway) send(ctx context.Context, env *amendsv1.Envelope, payload proto.Message, opts ...bus.PublishOption) error {
	subj := subject.Intake(string(roles.Gateway), env.GetTenant(), env.GetCaseId())
	ctx = g.watched(ctx, env)
	g.reached(ctx, RequestChecked, env)
	_, err := g.bus.Send(ctx, subj, env, payload, opts...)
	if errors.Is(err, bus.ErrUncertain) && ctx.Err() == nil {
		_, err = g.bus.Send(ctx, subj, env, payload, opts...)
	}
	if err == nil {
		g.reached(ctx, RequestStored, env)
	}
	return err
}

// notStored answers for a message that could not be stored for certain.
func (g *gateway) notStored(ctx context.Context, env *amendsv1.Envelope, err error) *deskapi.Problem {
	g.log.LogAttrs(ctx, slog.LevelWarn, "intake not stored", slog.String("purpose", env.GetPurpose()),
		slog.String("tenant", env.GetTenant()), slog.String("case_id", env.GetCaseId()),
		slog.String("request_id", edge.RequestID(ctx)), slog.Any("error", err))
	if _, rejected := errors.AsType[*envelope.Rejection](err); rejected {
		return deskapi.NewProblem(http.StatusInternalServerError, deskapi.CodeInternal, "")
	}
	return unavailable
}
