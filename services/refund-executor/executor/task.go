package executor

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/amends-dev/amends/internal/approval"
	"github.com/amends-dev/amends/internal/bus"
	"github.com/amends-dev/amends/internal/envelope"
	"github.com/amends-dev/amends/internal/ident"
	"github.com/amends-dev/amends/internal/roles"
	"github.com/amends-dev/amends/internal/subject"
	amendsv1 "github.com/amends-dev/amends/proto/amends/v1"
)

// Reason codes of tasks that are no business of the executor.
const (
	reasonTypeUnexpected = "type_unexpected"
	reasonSlice          = "slice_mismatch"
	reasonTarget         = "target_mismatch"
	reasonScope          = "scope_denied"
	reasonExpired        = "contract_expired"
	reasonAction         = "action_malformed"
)

// task is one assignment whose contract has been checked.
type task struct {
	env *amendsv1.Envelope
	// at is the broker's time of the assignment.
	at        time.Time
	action    *amendsv1.ActionRecord
	sha       string
	approvals []*amendsv1.SignedDecision
	slice     amendsv1.Slice
	// cancel is the revision of a cancel task.
	cancel uint64
	// events are what a confirm task was sent for, decision is what a settle
	// task hands over.
	events   []*amendsv1.ProviderEvent
	decision *amendsv1.CustodyDecision
}

func (t *task) tenant() string { return t.action.GetTenant() }
func (t *task) order() string  { return t.action.GetOrderId() }

// gap is a failure after money may have moved: no record could be written.
// With no delivery left its result is answered all the same.
type gap struct {
	result *amendsv1.EffectResult
	err    error
}

func (g *gap) Error() string { return g.err.Error() }
func (g *gap) Unwrap() error { return g.err }

// handle takes one assignment from its contract check to its answer.
func (x *executor) handle(ctx context.Context, m *bus.Message) error {
	t, reason, err := read(m)
	if err != nil {
		if sendErr := x.answerError(ctx, m, reason, reason == reasonExpired, err); sendErr != nil {
			return sendErr
		}
		return bus.Reject(reason, err)
	}
	ctx = withTask(ctx, m.Envelope)
	if err := x.reached(ctx, TaskTaken, t.key()); err != nil {
		return bus.Retry(err)
	}
	res, err := x.act(ctx, t)
	if g, ok := errors.AsType[*gap](err); ok && m.LastDelivery {
		if sendErr := x.answer(ctx, m, g.result); sendErr != nil {
			return errors.Join(err, sendErr)
		}
	}
	if err != nil {
		return bus.Retry(err)
	}
	if err := x.reached(ctx, ReadBack, t.key()); err != nil {
		return bus.Retry(err)
	}
	if err := x.answer(x.sending(ctx, ResultSent, t.key()), m, res); err != nil {
		return bus.Retry(err)
	}
	x.metrics.answered(ctx, res.GetClass())
	level := slog.LevelInfo
	if res.GetClass() == amendsv1.EffectClass_EFFECT_CLASS_ACKNOWLEDGED {
		level = slog.LevelDebug
	}
	x.log.Log(ctx, level, "action answered", slog.String("tenant", t.tenant()), slog.String("case", t.env.GetCaseId()), slog.String("order", t.order()),
		slog.String("class", className(res.GetClass())), slog.String("reason", res.GetReason()), slog.String("trace", t.env.GetTraceId()))
	return nil
}

// read checks the contract of an assignment: that it is the executor's, for
// this slice, inside its scope and time, and about one well-formed action.
func read(m *bus.Message) (t *task, reason string, err error) {
	assign, ok := m.Payload.(*amendsv1.TaskAssign)
	if !ok {
		return nil, reasonTypeUnexpected, fmt.Errorf("%s is not an assignment", m.Envelope.GetType())
	}
	t = &task{env: m.Envelope, at: m.Time}
	switch in := assign.GetInput().(type) {
	case *amendsv1.TaskAssign_Execute:
		t.action, t.approvals, t.slice = in.Execute.GetAction(), in.Execute.GetApprovals(), amendsv1.Slice_SLICE_EXECUTE
	case *amendsv1.TaskAssign_Cancel:
		t.action, t.cancel, t.slice = in.Cancel.GetAction(), in.Cancel.GetCancelRevision(), amendsv1.Slice_SLICE_CANCEL
	case *amendsv1.TaskAssign_Confirm:
		t.action, t.events, t.slice = in.Confirm.GetAction(), in.Confirm.GetEvents(), amendsv1.Slice_SLICE_CONFIRM
	case *amendsv1.TaskAssign_Settle:
		t.action, t.decision, t.slice = in.Settle.GetAction(), in.Settle.GetDecision(), amendsv1.Slice_SLICE_SETTLE
	default:
		return nil, reasonSlice, errors.New("not the executor's slice")
	}
	c := assign.GetContract()
	switch {
	case c.GetSlice() != t.slice:
		return nil, reasonSlice, fmt.Errorf("contract is for %s", c.GetSlice())
	case c.GetTarget() != string(roles.RefundExecutor):
		return nil, reasonTarget, fmt.Errorf("contract is for %q", c.GetTarget())
	case c.GetScope().GetTenant() != m.Parts.Tenant || t.action.GetTenant() != m.Parts.Tenant || t.action.GetCaseId() != m.Parts.CaseID ||
		c.GetScope().GetOrderId() != t.action.GetOrderId() || c.GetScope().GetCustomerId() != m.Envelope.GetCustomerId():
		return nil, reasonScope, errors.New("the action is outside the scope of its contract")
	case t.slice == amendsv1.Slice_SLICE_SETTLE && t.decision.GetStep() != amendsv1.CustodyStep_CUSTODY_STEP_SETTLE:
		return nil, reasonAction, errors.New("the custodian's decision settles nothing")
	case !m.Time.Before(c.GetExpires().AsTime()):
		return nil, reasonExpired, fmt.Errorf("contract expired at %s", c.GetExpires().AsTime().Format(time.RFC3339))
	}
	if t.sha, err = approval.ActionSHA256(t.action); err != nil {
		return nil, reasonAction, err
	}
	return t, "", nil
}

// answer sends the result of a task; a redelivered task gives the same id.
func (x *executor) answer(ctx context.Context, m *bus.Message, res proto.Message) error {
	env, in := reply(m, said(res)), m.Envelope
	env.TaskId, env.ParentTaskId, env.CustomerId = in.GetTaskId(), in.GetParentTaskId(), in.GetCustomerId()
	env.Attempt, env.IdempotencyKey, env.BasedOnVersion = in.GetAttempt(), in.GetIdempotencyKey(), in.GetBasedOnVersion()
	env.TraceId, env.Hop, env.SentAt = in.GetTraceId(), in.GetHop(), timestamppb.New(x.now())
	if _, err := x.bus.Send(ctx, subject.Result(string(roles.RefundExecutor), env.GetTenant(), env.GetCaseId()), env, res); err != nil {
		return fmt.Errorf("answer task %s: %w", in.GetTaskId(), err)
	}
	return nil
}

// said tells one answer from another, for its id: the same answer given again
// is the same message, and one that knows more of a refund is a new one.
func said(res proto.Message) string {
	e, ok := res.(*amendsv1.EffectResult)
	if !ok {
		return "error"
	}
	words := []string{className(e.GetClass()), e.GetReason()}
	for _, r := range e.GetRefunds() {
		o := r.GetOutcome()
		words = append(words, r.GetIdempotencyKey(), className(o.GetClass()), o.GetReason(), o.GetRefundId(), o.GetProviderStatus().String())
	}
	return strings.Join(words, " ")
}

// reply addresses an answer by the subject the task came on, which is what the
// broker vouches for.
func reply(m *bus.Message, said string) *amendsv1.Envelope {
	made, ok := ident.TimeOf(m.Envelope.GetMessageId())
	if !ok {
		made = m.Time
	}
	request := m.Envelope.GetRequestId()
	if request == "" {
		request = m.Parts.CaseID
	}
	return &amendsv1.Envelope{
		MessageId: ident.Derive(made, m.Envelope.GetMessageId(), "result", said), Tenant: m.Parts.Tenant, CaseId: m.Parts.CaseID, RequestId: request,
		Sender: string(roles.RefundExecutor), Recipient: string(roles.Orchestrator),
	}
}

func (x *executor) answerError(ctx context.Context, m *bus.Message, reason string, retryable bool, cause error) error {
	detail := cause.Error()
	return x.answer(ctx, m, &amendsv1.TaskError{
		Reason: reason, Detail: strings.ToValidUTF8(detail[:min(len(detail), 512)], ""), Retryable: retryable, MessageId: m.Envelope.GetMessageId(),
	})
}

// answerRejected tells the sender of a message that did not pass the
// envelope's checks, as far as it says who it is.
func (x *executor) answerRejected(ctx context.Context, m *bus.Message, rej *envelope.Rejection) {
	if m.Parts.CaseID == "" || m.Envelope.GetMessageId() == "" {
		return
	}
	if err := x.answerError(ctx, m, rej.Reason, rej.Reason == envelope.ReasonDeadlinePassed, rej.Err); err != nil {
		x.log.Warn("answer to a rejected message", slog.String("reason", rej.Reason), slog.Any("error", err))
	}
}

func className(c amendsv1.EffectClass) string {
	return strings.ToLower(strings.TrimPrefix(c.String(), "EFFECT_CLASS_"))
}
