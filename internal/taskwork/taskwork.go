package taskwork

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/amends-dev/amends/internal/bus"
	"github.com/amends-dev/amends/internal/envelope"
	"github.com/amends-dev/amends/internal/ident"
	"github.com/amends-dev/amends/internal/roles"
	"github.com/amends-dev/amends/internal/subject"
	amendsv1 "github.com/amends-dev/amends/proto/amends/v1"
)

// Task is one attempt of one task.
type Task struct {
	Envelope *amendsv1.Envelope
	Assign   *amendsv1.TaskAssign
	Contract *amendsv1.TaskContract
	// Received is the broker's time of the task's message.
	Received time.Time
	// Suffix names the case in call ids.
	Suffix string
}

// Engine does the work. Its result is one message of the service's own result
// type; its error becomes a task.error (see Fail).
type Engine func(ctx context.Context, t Task) (proto.Message, error)

const defaultTimeout = 10 * time.Second

// Options tune a worker.
type Options struct {
	// Workers is how many tasks run at once.
	Workers int
	// Timeout bounds one task; default 10 s.
	Timeout time.Duration
	// Slices are those the service takes.
	Slices []amendsv1.Slice
	// Now stamps answers with this process's clock, for diagnosis only.
	Now func() time.Time
}

// Run works on the service's tasks until ctx ends.
func Run(ctx context.Context, conn *bus.Conn, o Options, engine Engine) error {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Timeout <= 0 {
		o.Timeout = defaultTimeout
	}
	w := worker{conn: conn, service: conn.Service(), opts: o, engine: engine}
	err := conn.Consume(ctx, roles.TaskConsumer(w.service), w.handle, bus.ConsumeOptions{Workers: o.Workers, Timeout: o.Timeout, OnReject: w.refused})
	if err != nil {
		return fmt.Errorf("work on tasks of %s: %w", w.service, err)
	}
	return nil
}

type worker struct {
	conn    *bus.Conn
	service roles.Service
	opts    Options
	engine  Engine
}

func (w worker) handle(ctx context.Context, m *bus.Message) error {
	assign, ok := m.Payload.(*amendsv1.TaskAssign)
	if !ok {
		return bus.Reject(envelope.ReasonTypeUnknown, errors.New("not a task"))
	}
	if denied := w.admit(m, assign); denied != nil {
		if err := w.answer(ctx, m, taskError(denied, m.Envelope.GetMessageId())); err != nil {
			return bus.Retry(err)
		}
		return bus.Reject(denied.Reason, denied.Err)
	}
	result, err := w.engine(ctx, Task{
		Envelope: m.Envelope, Assign: assign, Contract: assign.GetContract(), Received: m.Time, Suffix: ident.Suffix(m.Envelope.GetCaseId()),
	})
	if err != nil {
		if ctx.Err() != nil { // stopping, or out of time: somebody else does it
			return bus.Retry(err)
		}
		result = taskError(err, m.Envelope.GetMessageId())
	}
	err = w.answer(ctx, m, result)
	if rej, ok := errors.AsType[*envelope.Rejection](err); ok {
		invalid := Fail(ReasonResultInvalid, false, rej)
		err = w.answer(ctx, m, taskError(invalid, m.Envelope.GetMessageId()))
	}
	if err != nil {
		return bus.Retry(err)
	}
	return nil
}

// admit checks the contract against the service and the envelope. Lease and
// expiry are judged by the broker's time; a message that waited for long is
// judged by the orchestrator, when the answer arrives.
func (w worker) admit(m *bus.Message, a *amendsv1.TaskAssign) *Failure {
	c, env := a.GetContract(), m.Envelope
	deny := func(reason, format string, args ...any) *Failure {
		return &Failure{Reason: reason, Err: fmt.Errorf(format, args...)}
	}
	switch {
	case c.GetTarget() != string(w.service) || c.GetSource() != env.GetSender() || c.GetReturnTo() != env.GetSender():
		return deny(ReasonTargetDenied, "from %q to %q, answer to %q", c.GetSource(), c.GetTarget(), c.GetReturnTo())
	case !slices.Contains(w.opts.Slices, c.GetSlice()) || sliceOf(a) != c.GetSlice():
		return deny(ReasonSliceDenied, "slice %s with input of %s", c.GetSlice(), sliceOf(a))
	case c.GetScope().GetTenant() != env.GetTenant() || c.GetScope().GetCustomerId() != env.GetCustomerId():
		return deny(ReasonScopeDenied, "the scope is not the envelope's tenant and customer")
	case c.GetBudget().GetEffects() != 0 && w.service != roles.RefundExecutor:
		return deny(ReasonEffectsDenied, "%d effects granted to a specialist", c.GetBudget().GetEffects())
	case !m.Time.Before(c.GetLeaseUntil().AsTime()) || !m.Time.Before(c.GetExpires().AsTime()):
		return deny(ReasonLeaseExpired, "stored %s after the lease", m.Time.Sub(c.GetLeaseUntil().AsTime()))
	case env.GetHop() > c.GetHopLimit():
		return deny(ReasonHopLimit, "hop %d, at most %d", env.GetHop(), c.GetHopLimit())
	case env.GetBasedOnVersion() != 0 && env.GetBasedOnVersion() != c.GetStateVersion():
		return deny(ReasonVersionDenied, "the envelope is of version %d, the contract of %d", env.GetBasedOnVersion(), c.GetStateVersion())
	}
	return nil
}

func sliceOf(a *amendsv1.TaskAssign) amendsv1.Slice {
	switch a.GetInput().(type) {
	case *amendsv1.TaskAssign_Payment:
		return amendsv1.Slice_SLICE_PAYMENT
	case *amendsv1.TaskAssign_Policy:
		return amendsv1.Slice_SLICE_POLICY
	case *amendsv1.TaskAssign_Compose:
		return amendsv1.Slice_SLICE_COMPOSE
	case *amendsv1.TaskAssign_Verify:
		return amendsv1.Slice_SLICE_VERIFY
	case *amendsv1.TaskAssign_Execute:
		return amendsv1.Slice_SLICE_EXECUTE
	case *amendsv1.TaskAssign_Cancel:
		return amendsv1.Slice_SLICE_CANCEL
	}
	return amendsv1.Slice_SLICE_UNSPECIFIED
}

// refused answers the sender of a message that could not be opened, when
// enough of it could be read to say whose it is.
func (w worker) refused(ctx context.Context, m *bus.Message, rej *envelope.Rejection) {
	env := m.Envelope
	if env.GetMessageId() == "" || env.GetTenant() != m.Parts.Tenant || env.GetCaseId() != m.Parts.CaseID {
		return
	}
	// The dead letter that follows holds the message whole; an answer that is
	// lost here costs the sender its deadline.
	_ = w.answer(ctx, m, taskError(&Failure{Reason: rej.Reason, Err: rej.Err}, env.GetMessageId()))
}

// answer sends a result of the task in m to its sender.
func (w worker) answer(ctx context.Context, m *bus.Message, result proto.Message) error {
	task := m.Envelope
	made, ok := ident.TimeOf(task.GetMessageId())
	if !ok {
		made = m.Time
	}
	env := &amendsv1.Envelope{
		MessageId: ident.Derive(made, task.GetMessageId(), "result"),
		CaseId:    task.GetCaseId(), Tenant: task.GetTenant(), RequestId: task.GetRequestId(),
		TaskId: task.GetTaskId(), ParentTaskId: task.GetParentTaskId(),
		Sender: string(w.service), Recipient: string(roles.Orchestrator),
		Purpose: task.GetPurpose(), CustomerId: task.GetCustomerId(),
		Attempt: task.GetAttempt(), IdempotencyKey: task.GetIdempotencyKey(),
		BasedOnVersion: task.GetBasedOnVersion(), TraceId: task.GetTraceId(), Hop: task.GetHop(),
		SentAt: timestamppb.New(w.opts.Now()),
	}
	if a, ok := m.Payload.(*amendsv1.TaskAssign); ok && env.GetBasedOnVersion() == 0 {
		env.BasedOnVersion = a.GetContract().GetStateVersion()
	}
	if _, err := w.conn.Send(ctx, subject.Result(string(w.service), task.GetTenant(), task.GetCaseId()), env, result); err != nil {
		return fmt.Errorf("answer task %s: %w", task.GetTaskId(), err)
	}
	return nil
}
