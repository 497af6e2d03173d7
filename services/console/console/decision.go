package console

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"io"
	"log/slog"
	"net/http"

	"go.opentelemetry.io/otel/trace"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/amends-dev/amends/internal/approval"
	"github.com/amends-dev/amends/internal/bus"
	"github.com/amends-dev/amends/internal/deskapi"
	"github.com/amends-dev/amends/internal/edge"
	"github.com/amends-dev/amends/internal/envelope"
	"github.com/amends-dev/amends/internal/ident"
	"github.com/amends-dev/amends/internal/roles"
	"github.com/amends-dev/amends/internal/subject"
	amendsv1 "github.com/amends-dev/amends/proto/amends/v1"
)

// maxDecision bounds the body of a decision.
const maxDecision = 16 << 10

var decisionTooLarge = deskapi.NewProblem(http.StatusRequestEntityTooLarge, deskapi.CodeBodyTooLarge, "")

func malformed(detail string) *deskapi.Problem {
	return deskapi.NewProblem(http.StatusBadRequest, deskapi.CodeDecisionMalformed, detail)
}

// relayDecision handles POST /v1/cases/{tenant}/{case}/decisions. Whether the
// decision counts is for the orchestrator and the executor to say.
func (c *console) relayDecision(w http.ResponseWriter, r request) *deskapi.Problem {
	d, problem := readDecision(w, r)
	if problem != nil {
		return problem
	}
	id, problem := c.relay(r, d, decisionID(d))
	if problem != nil {
		return problem
	}
	edge.WriteJSON(w, http.StatusAccepted, deskapi.Relayed{ApprovalID: d.GetApprovalId(), MessageID: id})
	return nil
}

// relay hands what somebody signed to the case it is about, and gives the id of
// the message.
func (c *console) relay(r request, signed proto.Message, id string) (string, *deskapi.Problem) {
	// The record says whose case it is and which trace it belongs to; none of
	// that changes, so a stale one will do.
	rec, problem := c.read(r)
	if problem != nil {
		return "", problem
	}
	env := &amendsv1.Envelope{
		MessageId: id, CaseId: rec.GetCaseId(), Tenant: rec.GetTenant(), RequestId: rec.GetRequestId(),
		Sender: string(roles.Console), Recipient: string(roles.Orchestrator),
		Purpose: "decision relayed by " + r.staff.ID, CustomerId: rec.GetCustomerId(), TraceId: rec.GetTraceId(),
		SentAt: timestamppb.New(c.now()),
	}
	ctx := inTrace(r.Context(), rec.GetTraceId())
	subj := subject.Intake(string(roles.Console), r.tenant, r.caseID)
	_, err := c.bus.Send(ctx, subj, env, signed)
	if errors.Is(err, bus.ErrUncertain) && ctx.Err() == nil {
		// Stored twice it is still one message to the orchestrator.
		_, err = c.bus.Send(ctx, subj, env, signed)
	}
	if err != nil {
		if _, rejected := errors.AsType[*envelope.Rejection](err); rejected {
			return "", malformed("a field breaks the schema's rules")
		}
		c.log.LogAttrs(ctx, slog.LevelWarn, "decision not stored",
			slog.String("tenant", r.tenant), slog.String("case_id", r.caseID), slog.Any("error", err))
		return "", unavailable
	}
	return id, nil
}

// inTrace continues the case's trace, whatever the caller's was: an approval is
// part of the case's story.
func inTrace(ctx context.Context, traceID string) context.Context {
	id, err := trace.TraceIDFromHex(traceID)
	if err != nil {
		return ctx
	}
	cfg := trace.SpanContextConfig{TraceID: id}
	_, _ = rand.Read(cfg.SpanID[:]) // never fails
	return trace.ContextWithSpanContext(ctx, trace.NewSpanContext(cfg))
}

// readSigned reads the body of something signed.
func readSigned(w http.ResponseWriter, r request) ([]byte, *deskapi.Problem) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxDecision))
	if _, over := errors.AsType[*http.MaxBytesError](err); over {
		return nil, decisionTooLarge
	}
	if err != nil {
		return nil, malformed("the body ended early")
	}
	return body, nil
}

// readDecision reads a decision and checks its form: every field there, the
// case that of the path, a signature of the right length.
func readDecision(w http.ResponseWriter, r request) (*amendsv1.SignedDecision, *deskapi.Problem) {
	body, problem := readSigned(w, r)
	if problem != nil {
		return nil, problem
	}
	d := new(amendsv1.SignedDecision)
	if err := protojson.Unmarshal(body, d); err != nil {
		return nil, malformed("the body is not a SignedDecision in ProtoJSON")
	}
	if _, err := approval.DecisionText(d); err != nil {
		return nil, malformed("a field is missing or not valid")
	}
	if d.GetTenant() != r.tenant || d.GetCaseId() != r.caseID {
		return nil, malformed("the decision is about another case than the path")
	}
	return d, nil
}

// decisionID names a decision: handed in again it is the same message.
func decisionID(d *amendsv1.SignedDecision) string {
	text, _ := approval.DecisionText(d) // its form was checked when it was read
	return signedID(envelope.ApprovalDecision, d.GetSignedAt(), text, d.GetSignature())
}

// signedID is a function of the signature and of what is said to be signed: a
// signature put under something else takes no decision's place.
func signedID(kind string, at *timestamppb.Timestamp, text string, signature []byte) string {
	return ident.Derive(at.AsTime(), kind, text, hex.EncodeToString(signature))
}
