package taskwork_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/amends-dev/amends/internal/bus"
	"github.com/amends-dev/amends/internal/bus/bustest"
	"github.com/amends-dev/amends/internal/envelope"
	"github.com/amends-dev/amends/internal/roles"
	"github.com/amends-dev/amends/internal/subject"
	"github.com/amends-dev/amends/internal/taskwork"
	"github.com/amends-dev/amends/internal/taskwork/taskworktest"
	amendsv1 "github.com/amends-dev/amends/proto/amends/v1"
)

func draft() *amendsv1.Draft {
	return &amendsv1.Draft{
		Kind: amendsv1.ReplyKind_REPLY_KIND_CLARIFY, Text: "Please confirm the order number.", Language: "en", FactsSha256: strings.Repeat("0", 64),
		Claims: []*amendsv1.Claim{{Kind: amendsv1.ClaimKind_CLAIM_KIND_ASK_ORDER_NUMBER}},
	}
}

func compose(d *taskworktest.Desk) *amendsv1.TaskAssign {
	return &amendsv1.TaskAssign{
		Contract: d.Contract(amendsv1.Slice_SLICE_COMPOSE),
		Input: &amendsv1.TaskAssign_Compose{Compose: &amendsv1.ComposeSlice{
			Kind: amendsv1.ReplyKind_REPLY_KIND_CLARIFY, Facts: draft().GetClaims(), FactsSha256: draft().GetFactsSha256(),
		}},
	}
}

// start runs a composer whose engine the test gives.
func start(t *testing.T, engine taskwork.Engine) *taskworktest.Desk {
	t.Helper()
	return taskworktest.Start(t, roles.Composer, bustest.Options{Manifest: bustest.Quick(2*time.Second, 10*time.Millisecond, 10*time.Millisecond)},
		func(ctx context.Context, conn *bus.Conn) error {
			return taskwork.Run(ctx, conn, taskwork.Options{Workers: 4, Slices: []amendsv1.Slice{amendsv1.Slice_SLICE_COMPOSE}}, engine)
		})
}

// awaitDead gives the reason of the composer's next dead letter.
func awaitDead(t *testing.T, d *taskworktest.Desk) string {
	t.Helper()
	js := d.Broker.Admin()
	var reason string
	bustest.Await(t, "a dead letter", func() bool {
		s, err := js.Stream(t.Context(), roles.StreamDeadLetters)
		if err != nil {
			return false
		}
		m, err := s.GetLastMsgForSubject(t.Context(), subject.Dead(string(roles.Composer), taskworktest.Tenant, taskworktest.Case))
		if err != nil {
			return false
		}
		var dead amendsv1.DeadLetter
		if err := proto.Unmarshal(m.Data, &dead); err != nil {
			t.Fatal(err)
		}
		reason = dead.GetReason()
		return true
	})
	return reason
}

func TestResultKeepsTheTasksIdentity(t *testing.T) {
	t.Parallel()
	d := start(t, func(_ context.Context, task taskwork.Task) (proto.Message, error) {
		if task.Suffix != "8472" || task.Contract.GetScope().GetOrderId() != "8472" || task.Received.IsZero() {
			return nil, errors.New("not the task")
		}
		return draft(), nil
	})
	sent := d.Assign(compose(d))
	got := d.Result()
	env := got.Envelope
	if env.GetType() != envelope.Draft || env.GetTaskId() != sent.GetTaskId() || env.GetAttempt() != 1 || env.GetIdempotencyKey() != sent.GetIdempotencyKey() ||
		env.GetBasedOnVersion() != 2 || env.GetTraceId() != sent.GetTraceId() || env.GetHop() != 1 || env.GetSender() != string(roles.Composer) ||
		env.GetCustomerId() != sent.GetCustomerId() || env.GetParentTaskId() != sent.GetParentTaskId() || env.GetMessageId() == sent.GetMessageId() {
		t.Errorf("result %v", env)
	}
}

func TestTheSameTaskIsAnsweredUnderOneID(t *testing.T) {
	t.Parallel()
	d := start(t, func(context.Context, taskwork.Task) (proto.Message, error) { return draft(), nil })
	a := compose(d)
	sent := d.Assign(a)
	first := d.Result()
	data, err := envelope.Seal(sent, a)
	if err != nil {
		t.Fatal(err)
	}
	d.Resend(data)
	if second := d.Result(); second.Envelope.GetMessageId() != first.Envelope.GetMessageId() || second.Seq == first.Seq {
		t.Errorf("two ids: %s and %s", first.Envelope.GetMessageId(), second.Envelope.GetMessageId())
	}
}

func TestEngineErrorsBecomeTaskErrors(t *testing.T) {
	t.Parallel()
	var next atomic.Pointer[error]
	d := start(t, func(context.Context, taskwork.Task) (proto.Message, error) {
		return nil, *next.Load()
	})
	for _, c := range []struct {
		name   string
		gives  error
		reason string
		retry  bool
	}{
		{"classified", taskwork.Fail("claim_unknown", false, errors.New("card 4111 1111 1111 1111")), "claim_unknown", false},
		{"without a cause", taskwork.Fail("lookup_failed", true, nil), "lookup_failed", true},
		{"unclassified", errors.New("anything"), taskwork.ReasonEngineFailed, true},
	} {
		next.Store(&c.gives)
		sent := d.Assign(compose(d))
		got := taskworktest.Answer[*amendsv1.TaskError](d)
		if got.GetReason() != c.reason || got.GetRetryable() != c.retry || got.GetMessageId() != sent.GetMessageId() || strings.Contains(got.GetDetail(), "4111") {
			t.Errorf("%s: %v", c.name, got)
		}
	}
}

func TestAnInvalidResultIsATaskError(t *testing.T) {
	t.Parallel()
	d := start(t, func(context.Context, taskwork.Task) (proto.Message, error) { return &amendsv1.Draft{}, nil })
	d.Assign(compose(d))
	if got := taskworktest.Answer[*amendsv1.TaskError](d); got.GetReason() != taskwork.ReasonResultInvalid || got.GetRetryable() {
		t.Errorf("answer %v", got)
	}
}

func TestResultOfAnotherServiceIsNotSent(t *testing.T) {
	t.Parallel()
	d := start(t, func(context.Context, taskwork.Task) (proto.Message, error) {
		return &amendsv1.Verification{Verdict: amendsv1.VerificationVerdict_VERIFICATION_VERDICT_VERIFIED, DraftSha256: strings.Repeat("0", 64)}, nil
	})
	d.Assign(compose(d))
	if got := taskworktest.Answer[*amendsv1.TaskError](d); got.GetReason() != taskwork.ReasonResultInvalid {
		t.Errorf("answer %v", got)
	}
}

func TestDeniedContractsAreAnsweredAndDeadLettered(t *testing.T) {
	t.Parallel()
	for reason, edit := range map[string]func(*amendsv1.TaskAssign){
		taskwork.ReasonTargetDenied:  func(a *amendsv1.TaskAssign) { a.Contract.Target = string(roles.Verifier) },
		taskwork.ReasonSliceDenied:   func(a *amendsv1.TaskAssign) { a.Contract.Slice = amendsv1.Slice_SLICE_VERIFY },
		taskwork.ReasonScopeDenied:   func(a *amendsv1.TaskAssign) { a.Contract.Scope.Tenant = "other" },
		taskwork.ReasonEffectsDenied: func(a *amendsv1.TaskAssign) { a.Contract.Budget.Effects = 1 },
		taskwork.ReasonLeaseExpired: func(a *amendsv1.TaskAssign) {
			a.Contract.LeaseUntil = timestamppb.New(time.Now().Add(-time.Minute))
		},
		taskwork.ReasonVersionDenied: func(a *amendsv1.TaskAssign) { a.Contract.StateVersion = 3 },
	} {
		t.Run(reason, func(t *testing.T) {
			t.Parallel()
			d := start(t, func(context.Context, taskwork.Task) (proto.Message, error) {
				t.Error("the engine saw a denied task")
				return draft(), nil
			})
			a := compose(d)
			edit(a)
			d.Assign(a)
			if got := taskworktest.Answer[*amendsv1.TaskError](d); got.GetReason() != reason || got.GetRetryable() {
				t.Errorf("answer %v", got)
			}
			if got := awaitDead(t, d); got != reason {
				t.Errorf("dead letter %s", got)
			}
		})
	}
}

// A message that the bus refuses is answered to its sender too. One that comes
// after its deadline is dropped: what was queued while the desk was down is
// dispatched anew, and leaves nothing for people to clear away.
func TestRefusedMessagesAreAnswered(t *testing.T) {
	t.Parallel()
	d := start(t, func(context.Context, taskwork.Task) (proto.Message, error) {
		t.Error("the engine saw a refused message")
		return draft(), nil
	})
	d.Assign(compose(d), func(e *amendsv1.Envelope) { e.Deadline = timestamppb.New(time.Now().Add(-time.Minute)) })
	if got := taskworktest.Answer[*amendsv1.TaskError](d); got.GetReason() != envelope.ReasonDeadlinePassed {
		t.Errorf("answer %v", got)
	}
	d.Assign(compose(d), func(e *amendsv1.Envelope) { e.CustomerId = "cust_1" })
	if got := awaitDead(t, d); got != taskwork.ReasonScopeDenied || d.Broker.Count(roles.StreamDeadLetters, "dead.>") != 1 {
		t.Errorf("dead letters up to %s, want that of the second task alone", got)
	}
}
