package console

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"time"
	"unicode/utf8"

	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/amends-dev/amends/internal/bus"
	"github.com/amends-dev/amends/internal/deskapi"
	"github.com/amends-dev/amends/internal/edge"
	"github.com/amends-dev/amends/internal/envelope"
	"github.com/amends-dev/amends/internal/ident"
	"github.com/amends-dev/amends/internal/subject"
	amendsv1 "github.com/amends-dev/amends/proto/amends/v1"
)

const (
	maxStopBody = 4 << 10
	// changeTimeout bounds a change of a switch, which goes on when its caller
	// hangs up.
	changeTimeout = 10 * time.Second
	// auditFirst is how long a stop waits for the audit log before it goes on.
	auditFirst = 300 * time.Millisecond
	// maxStopRaces bounds how often a stop is tried over what others do.
	maxStopRaces = 16
)

var (
	// A tenant of somebody else is answered like one that does not exist.
	unknownScope    = deskapi.NewProblem(http.StatusNotFound, deskapi.CodeNotFound, "no such tenant")
	mayNotStopAll   = deskapi.NewProblem(http.StatusForbidden, deskapi.CodeRightMissing, "may_stop_all")
	mayNotResume    = deskapi.NewProblem(http.StatusForbidden, deskapi.CodeRightMissing, "may_resume")
	stopMoved       = deskapi.NewProblem(http.StatusConflict, deskapi.CodeStopConflict, "the switch is not as you saw it")
	notStopped      = deskapi.NewProblem(http.StatusConflict, deskapi.CodeStopConflict, "the switch is not set")
	stopUnconfirmed = deskapi.NewProblem(http.StatusServiceUnavailable, deskapi.CodeStopUnconfirmed, "nobody knows whether the switch was changed; read it").After(time.Second)
	notAudited      = deskapi.NewProblem(http.StatusServiceUnavailable, deskapi.CodeAuditUnavailable, "nothing was released").After(time.Second)
	stopTooLarge    = deskapi.NewProblem(http.StatusRequestEntityTooLarge, deskapi.CodeBodyTooLarge, "")
)

// change is a request to move a switch.
type change struct {
	deskapi.StopRequest
	staff   *Staff
	stopped bool
	trace   string
}

func (ch *change) verb() string {
	if ch.stopped {
		return "stop"
	}
	return "resume"
}

// changeStop handles POST /v1/stops. The audit log has it first, then the
// switch. To stop is the safe side: a stop goes on without the log and over
// what others do. A release does neither.
func (c *console) changeStop(w http.ResponseWriter, r *http.Request) *deskapi.Problem {
	staff, problem := c.staff(w, edge.Bearer(r), "Bearer")
	if problem != nil {
		return problem
	}
	ch, problem := readChange(w, r)
	if problem != nil {
		return problem
	}
	ch.staff = staff
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), changeTimeout)
	defer cancel()
	ctx, ch.trace = traced(ctx, r)
	if problem := ch.allowed(); problem != nil {
		if problem.Code == deskapi.CodeRightMissing {
			c.audited(ctx, ch, string(problem.Code))
		}
		return problem
	}
	out, problem := c.change(ctx, ch)
	if problem != nil {
		c.audited(ctx, ch, string(problem.Code))
		return problem
	}
	edge.WriteJSON(w, http.StatusOK, out)
	return nil
}

// allowed says what the caller lacks to do it.
func (ch *change) allowed() *deskapi.Problem {
	switch all := ch.Scope == subject.StopAll; {
	case !all && !ch.staff.sees(ch.Scope):
		return unknownScope
	case all && !ch.staff.MayStopAll:
		return mayNotStopAll
	case !ch.stopped && !ch.staff.MayResume:
		return mayNotResume
	}
	return nil
}

func (c *console) change(ctx context.Context, ch *change) (deskapi.StopChanged, *deskapi.Problem) {
	audited := c.auditFirst(ctx, ch)
	if !audited && !ch.stopped {
		return deskapi.StopChanged{}, notAudited
	}
	out, problem := c.move(ctx, ch)
	if problem != nil {
		return out, problem
	}
	done := c.audited(ctx, ch, "done")
	out.Audited = audited || done
	level := slog.LevelInfo
	if !out.Audited {
		level = slog.LevelError
	}
	c.log.LogAttrs(ctx, level, "emergency stop changed", slog.String("action", ch.verb()), slog.String("scope", ch.Scope), slog.String("by", ch.staff.ID),
		slog.Uint64("sequence", out.Sequence), slog.Bool("audited", out.Audited), slog.String("trace", ch.trace))
	return out, nil
}

// move changes the switch by compare-and-set. A stop over a switch its caller
// did not see is tried again over each newer one, and tells which it replaced.
func (c *console) move(ctx context.Context, ch *change) (deskapi.StopChanged, *deskapi.Problem) {
	have, err := c.stop(ctx, ch.Scope)
	if err != nil {
		return deskapi.StopChanged{}, c.notMoved(ctx, ch, err)
	}
	if ch.Sequence != nil && have.Sequence < *ch.Sequence { // the read is behind the caller's
		if have, err = c.moved(ctx, ch.Scope, have.Sequence); err != nil {
			return deskapi.StopChanged{}, c.notMoved(ctx, ch, err)
		}
	}
	sw := &amendsv1.StopSwitch{Stopped: ch.stopped, Scope: ch.Scope, By: ch.staff.ID, Reason: ch.Reason, At: timestamppb.New(c.now())}
	data, err := encode(sw)
	if err != nil {
		return deskapi.StopChanged{}, c.notMoved(ctx, ch, err)
	}
	for range maxStopRaces {
		switch {
		case ch.Sequence != nil && have.Sequence != *ch.Sequence:
			return deskapi.StopChanged{}, stopMoved.Over(have.Stop)
		case !ch.stopped && !have.Stopped:
			return deskapi.StopChanged{}, notStopped.Over(have.Stop)
		}
		seq, err := c.put(ctx, ch.Scope, data, have.Sequence)
		switch {
		case err == nil:
			out := deskapi.StopChanged{Stop: stopOf(sw, seq)}
			if have.Sequence > 0 {
				out.Replaced = &have.Stop
			}
			return out, nil
		case !errors.Is(err, bus.ErrConflict):
			return deskapi.StopChanged{}, c.notMoved(ctx, ch, err)
		}
		if have, err = c.moved(ctx, ch.Scope, have.Sequence); err != nil {
			return deskapi.StopChanged{}, c.notMoved(ctx, ch, err)
		}
	}
	return deskapi.StopChanged{}, stopMoved.Over(have.Stop)
}

// put writes a switch over the one at a sequence. Sent once more after a lost
// acknowledgement it is stored, or the conflict shows that something is: what
// is there then says whether it is ours.
func (c *console) put(ctx context.Context, scope string, data []byte, over uint64) (uint64, error) {
	seq, err := c.bus.Publish(ctx, subject.Control(scope), data, bus.ExpectLast(over))
	if !errors.Is(err, bus.ErrUncertain) || ctx.Err() != nil {
		return seq, err
	}
	if seq, err = c.bus.Publish(ctx, subject.Control(scope), data, bus.ExpectLast(over)); !errors.Is(err, bus.ErrConflict) {
		if err != nil { // the first may be there
			return 0, fmt.Errorf("%w: %w", bus.ErrUncertain, err)
		}
		return seq, nil
	}
	have, readErr := c.moved(ctx, scope, over)
	switch {
	case readErr != nil:
		return 0, fmt.Errorf("%w: %w", bus.ErrUncertain, readErr)
	case bytes.Equal(have.data, data):
		return have.Sequence, nil
	}
	return 0, err
}

func (c *console) notMoved(ctx context.Context, ch *change, err error) *deskapi.Problem {
	c.log.LogAttrs(ctx, slog.LevelError, "emergency stop not changed", slog.String("action", ch.verb()), slog.String("scope", ch.Scope),
		slog.String("by", ch.staff.ID), slog.String("trace", ch.trace), slog.Any("error", err))
	if errors.Is(err, bus.ErrUncertain) {
		return stopUnconfirmed
	}
	return unavailable
}

// readChange reads the body strictly: what is unknown might have been meant to
// say something else.
func readChange(w http.ResponseWriter, r *http.Request) (*change, *deskapi.Problem) {
	invalid := func(detail string) (*change, *deskapi.Problem) {
		return nil, deskapi.NewProblem(http.StatusBadRequest, deskapi.CodeBodyInvalid, detail)
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxStopBody))
	if _, over := errors.AsType[*http.MaxBytesError](err); over {
		return nil, stopTooLarge
	}
	if err != nil || !utf8.Valid(body) {
		return invalid("the body ended early or is not UTF-8")
	}
	ch := new(change)
	dec := json.NewDecoder(bytes.NewReader(body))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&ch.StopRequest); err != nil {
		return invalid("want an object of scope, stopped, reason and sequence")
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return invalid("something follows the object")
	}
	switch n := utf8.RuneCountInString(ch.Reason); {
	case ident.Token(ch.Scope) != nil:
		return invalid("scope: want a tenant, or " + deskapi.ScopeAll)
	case ch.Stopped == nil:
		return invalid("stopped: missing")
	case strings.TrimSpace(ch.Reason) == "" || n > deskapi.MaxStopReason:
		return invalid("reason: want 1 to 256 characters")
	case !*ch.Stopped && ch.Sequence == nil:
		return invalid("sequence: missing; releasing needs that of the switch you saw")
	}
	ch.stopped = *ch.Stopped
	return ch, nil
}

// auditFirst records what is about to be done. A stop does not wait long.
func (c *console) auditFirst(ctx context.Context, ch *change) bool {
	if ch.stopped {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, auditFirst)
		defer cancel()
	}
	return c.audited(ctx, ch, "asked")
}

// audited records what became of a change, and reports whether the log has it.
func (c *console) audited(ctx context.Context, ch *change, outcome string) bool {
	err := c.audit(ctx, &amendsv1.AuditEvent{
		Actor: ch.staff.ID, Action: ch.verb(), Subject: subject.Control(ch.Scope), Outcome: outcome, TraceId: ch.trace, Reason: ch.Reason,
	}, ch.Scope)
	if err != nil {
		c.log.LogAttrs(ctx, slog.LevelError, "change of the emergency stop not audited", slog.String("action", ch.verb()), slog.String("scope", ch.Scope),
			slog.String("by", ch.staff.ID), slog.String("outcome", outcome), slog.String("trace", ch.trace), slog.Any("error", err))
	}
	return err == nil
}

// encode gives the bytes of a message that keeps the schema's rules.
func encode(m proto.Message) ([]byte, error) {
	if err := envelope.Validate(m); err != nil {
		return nil, err
	}
	return proto.MarshalOptions{Deterministic: true}.Marshal(m)
}

// traced continues the caller's trace or begins one.
func traced(ctx context.Context, r *http.Request) (context.Context, string) {
	ctx = propagation.TraceContext{}.Extract(ctx, propagation.HeaderCarrier(r.Header))
	if sc := trace.SpanContextFromContext(ctx); sc.HasTraceID() {
		return ctx, sc.TraceID().String()
	}
	var cfg trace.SpanContextConfig
	_, _ = rand.Read(cfg.TraceID[:]) // never fails
	_, _ = rand.Read(cfg.SpanID[:])
	sc := trace.NewSpanContext(cfg)
	return trace.ContextWithSpanContext(ctx, sc), sc.TraceID().String()
}
