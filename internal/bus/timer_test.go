package bus_test

import (
	"context"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/amends-dev/amends/internal/bus"
	"github.com/amends-dev/amends/internal/bus/bustest"
	"github.com/amends-dev/amends/internal/envelope"
	"github.com/amends-dev/amends/internal/ident"
	"github.com/amends-dev/amends/internal/roles"
	"github.com/amends-dev/amends/internal/subject"
	amendsv1 "github.com/amends-dev/amends/proto/amends/v1"
)

// fired is what the due consumer saw of one timer.
type fired struct {
	caseID  string
	version uint64
	at      time.Time
}

func arm(t *testing.T, c *bus.Conn, caseID string, version uint64, at time.Time) {
	t.Helper()
	now := time.Now()
	env := &amendsv1.Envelope{
		MessageId: ident.Derive(now, caseID), CaseId: caseID, Tenant: tenant, RequestId: caseID,
		Sender: string(roles.Orchestrator), Recipient: string(roles.Orchestrator), SentAt: timestamppb.New(now),
	}
	data, err := envelope.Seal(env, &amendsv1.TimerDue{ArmedAtVersion: version})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Publish(t.Context(), subject.Timer(tenant, caseID), data, bus.ScheduleAt(at, subject.Due(tenant, caseID))); err != nil {
		t.Fatal(err)
	}
}

func consumeDue(t *testing.T, c *bus.Conn) <-chan fired {
	t.Helper()
	out := make(chan fired, 16)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() {
		done <- c.Consume(ctx, roles.ConsumerDue, func(_ context.Context, m *bus.Message) error {
			out <- fired{m.Parts.CaseID, m.Payload.(*amendsv1.TimerDue).GetArmedAtVersion(), m.Time}
			return nil
		}, bus.ConsumeOptions{})
	}()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return out
}

func next(t *testing.T, ch <-chan fired) fired {
	t.Helper()
	select {
	case f := <-ch:
		return f
	case <-time.After(10 * time.Second):
		t.Fatal("no timer fired")
		return fired{}
	}
}

func TestTimers(t *testing.T) {
	t.Parallel()
	b := bustest.Desk(t, bustest.Options{})
	c := b.Connect(roles.Orchestrator)
	due := consumeDue(t, c)

	// Never early, to the nanosecond, also off a whole second.
	at := time.Now().Add(700 * time.Millisecond)
	arm(t, c, "once", 1, at)
	if f := next(t, due); f.caseID != "once" || f.at.Before(at) {
		t.Errorf("%s fired at %s, armed for %s", f.caseID, f.at, at)
	}
	// A past one fires.
	arm(t, c, "past", 2, time.Now().Add(-time.Hour))
	if f := next(t, due); f.caseID != "past" || f.version != 2 {
		t.Errorf("%s fired with version %d", f.caseID, f.version)
	}
	// A new one replaces the old, earlier or later.
	arm(t, c, "replaced", 3, time.Now().Add(400*time.Millisecond))
	arm(t, c, "cancelled", 5, time.Now().Add(500*time.Millisecond))
	later := time.Now().Add(900 * time.Millisecond)
	arm(t, c, "replaced", 4, later)
	if err := c.PublishAll(t.Context(), bus.CancelSchedule(subject.Timer(tenant, "cancelled")))[0].Err; err != nil {
		t.Fatal(err)
	}
	if f := next(t, due); f.caseID != "replaced" || f.version != 4 || f.at.Before(later) {
		t.Errorf("%s fired with version %d at %s, armed for %s", f.caseID, f.version, f.at, later)
	}
	arm(t, c, "sooner", 6, time.Now().Add(time.Hour))
	arm(t, c, "sooner", 7, time.Now().Add(300*time.Millisecond))
	if f := next(t, due); f.caseID != "sooner" || f.version != 7 {
		t.Errorf("%s fired with version %d", f.caseID, f.version)
	}
	select {
	case f := <-due:
		t.Errorf("%s fired as well, version %d", f.caseID, f.version)
	default:
	}
}

// A cancelled timer leaves nothing, and cancelling what is not there, or was
// already, is no error.
func TestCancelledTimersLeaveNothing(t *testing.T) {
	t.Parallel()
	b := bustest.Desk(t, bustest.Options{})
	c := b.Connect(roles.Orchestrator)
	for i := range 20 {
		id := "req-" + string(rune('a'+i))
		arm(t, c, id, 1, time.Now().Add(time.Hour))
		for range 2 {
			if err := c.PublishAll(t.Context(), bus.CancelSchedule(subject.Timer(tenant, id)))[0].Err; err != nil {
				t.Fatal(err)
			}
		}
	}
	arm(t, c, "kept", 1, time.Now().Add(time.Hour))
	if got := counts(t, b)[roles.StreamTimers]; len(got) != 2 || got[subject.Timer(tenant, "kept")] != 1 {
		t.Errorf("TIMERS holds %v", got)
	}
}

// A timer that came due while the broker was down fires when it is back.
func TestTimersFireAfterARestart(t *testing.T) {
	t.Parallel()
	b := bustest.Desk(t, bustest.Options{})
	c := b.Connect(roles.Orchestrator)
	due := consumeDue(t, c)
	at := time.Now().Add(300 * time.Millisecond)
	arm(t, c, "slept", 1, at)
	b.Stop()
	<-time.After(time.Until(at))
	b.Start()
	if f := next(t, due); f.caseID != "slept" || f.at.Before(at) {
		t.Errorf("%s fired at %s, armed for %s", f.caseID, f.at, at)
	}
}
