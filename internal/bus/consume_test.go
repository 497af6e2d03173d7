package bus_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/amends-dev/amends/internal/bus"
	"github.com/amends-dev/amends/internal/bus/bustest"
	"github.com/amends-dev/amends/internal/roles"
	"github.com/amends-dev/amends/internal/subject"
)

// quick hands a message out three times.
func quick() *roles.Manifest {
	return bustest.Quick(2*time.Second, 10*time.Millisecond, 20*time.Millisecond)
}

// LOSS-2: whatever a handler says, a message ends handled, dropped with a
// reason, or dead-lettered, and nothing is left waiting.
func TestOutcomesLOSS2(t *testing.T) {
	t.Parallel()
	b := bustest.Desk(t, bustest.Options{Manifest: quick()})
	gateway, orchestrator := b.Connect(roles.Gateway), b.Connect(roles.Orchestrator)
	var seen counter
	consume(t, orchestrator, func(_ context.Context, m *bus.Message) error {
		n := seen.add(m.Parts.CaseID)
		if m.Delivered != n || m.LastDelivery != (n == 3) {
			t.Errorf("%s: delivery %d says %d, last %t", m.Parts.CaseID, n, m.Delivered, m.LastDelivery)
		}
		switch m.Parts.CaseID {
		case "ok":
			return nil
		case "drop":
			return bus.Drop("not_wanted")
		case "reject":
			return fmt.Errorf("wrapped: %w", bus.Reject("never", errors.New("no such thing")))
		case "retry":
			return bus.Retry(errors.New("try again"))
		case "second":
			if n == 1 {
				return errors.New("unclassified")
			}
			return nil
		default:
			panic("boom")
		}
	}, bus.ConsumeOptions{})
	want := map[string]int{"ok": 1, "drop": 1, "reject": 1, "retry": 3, "second": 2, "panic": 3}
	for id := range want {
		post(t, gateway, id)
	}
	reasons := make(map[string]string)
	for _, dl := range awaitDead(t, b, 3) {
		reasons[dl.GetCaseId()] = dl.GetReason()
	}
	for id, reason := range map[string]string{"reject": "never", "retry": bus.ReasonDeliveriesExhausted, "panic": bus.ReasonDeliveriesExhausted} {
		if reasons[id] != reason {
			t.Errorf("dead letter of %s has reason %q, want %q", id, reasons[id], reason)
		}
	}
	bustest.Await(t, "the consumer to be settled", func() bool { return settled(t, b) })
	for id, n := range want {
		if got := seen.get(id); got != n {
			t.Errorf("%s was handled %d times, want %d", id, got, n)
		}
	}
}

// B37: deliveries are counted, so a handler that hangs still ends.
func TestHangingHandlersEndAsDeadLettersB37(t *testing.T) {
	t.Parallel()
	for name, h := range map[string]func(release <-chan struct{}) bus.Handler{
		"until its context ends": func(<-chan struct{}) bus.Handler {
			return func(ctx context.Context, _ *bus.Message) error {
				<-ctx.Done()
				return ctx.Err()
			}
		},
		"for ever": func(release <-chan struct{}) bus.Handler {
			return func(context.Context, *bus.Message) error {
				<-release
				return nil // too late to count
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := bustest.Desk(t, bustest.Options{Manifest: quick()})
			gateway, orchestrator := b.Connect(roles.Gateway), b.Connect(roles.Orchestrator)
			release := make(chan struct{})
			hang := h(release)
			var seen counter
			stop := consume(t, orchestrator, func(ctx context.Context, m *bus.Message) error {
				seen.add(m.Parts.CaseID)
				if m.Parts.CaseID == "hangs" {
					return hang(ctx, m)
				}
				return nil
			}, bus.ConsumeOptions{Workers: 4, Timeout: 50 * time.Millisecond})
			post(t, gateway, "hangs")
			dl := awaitDead(t, b, 1)[0]
			if dl.GetReason() != bus.ReasonDeliveriesExhausted || dl.GetDeliveries() != 3 || dl.GetCaseId() != "hangs" {
				t.Errorf("dead letter %s after %d deliveries of %s", dl.GetReason(), dl.GetDeliveries(), dl.GetCaseId())
			}
			if n := seen.get("hangs"); n != 3 {
				t.Errorf("handled %d times, want 3", n)
			}
			post(t, gateway, "flows")
			bustest.Await(t, "the other case", func() bool { return seen.get("flows") == 1 && settled(t, b) })
			close(release)
			stop()
			if got := len(deadLetters(t, b)); got != 1 {
				t.Errorf("%d dead letters after the handlers came back", got)
			}
		})
	}
}

// A process that dies with every delivery never says so; the next one to see
// the message beyond its deliveries writes the dead letter.
func TestUnansweredDeliveriesEndAsDeadLettersB37(t *testing.T) {
	t.Parallel()
	m := bustest.Quick(50*time.Millisecond, 10*time.Millisecond)
	b := bustest.Desk(t, bustest.Options{Manifest: m})
	gateway := b.Connect(roles.Gateway)
	post(t, gateway, "req-1")
	raw := b.Raw(roles.Orchestrator)
	for range 2 {
		bustest.Await(t, "a delivery", func() bool {
			r, err := raw.Request(bus.DefaultAPIPrefix+".CONSUMER.MSG.NEXT.INTAKE."+roles.ConsumerPosts, []byte(`{"batch":1,"no_wait":true}`), time.Second)
			return err == nil && len(r.Data) > 0
		})
	}
	consume(t, b.Connect(roles.Orchestrator), func(context.Context, *bus.Message) error {
		t.Error("handled beyond its deliveries")
		return nil
	}, bus.ConsumeOptions{})
	if dl := awaitDead(t, b, 1)[0]; dl.GetReason() != bus.ReasonDeliveriesExhausted || dl.GetDeliveries() < 3 {
		t.Errorf("dead letter %s after %d deliveries", dl.GetReason(), dl.GetDeliveries())
	}
	bustest.Await(t, "the consumer to be settled", func() bool { return settled(t, b) })
}

// When every worker hangs the service says so.
func TestReadyFailsWhenAllHandlersHang(t *testing.T) {
	t.Parallel()
	b := bustest.Desk(t, bustest.Options{Manifest: quick()})
	gateway, orchestrator := b.Connect(roles.Gateway), b.Connect(roles.Orchestrator)
	release := make(chan struct{})
	stop := consume(t, orchestrator, func(context.Context, *bus.Message) error {
		<-release
		return nil
	}, bus.ConsumeOptions{Workers: 2, Timeout: 20 * time.Millisecond})
	for i := range 4 {
		post(t, gateway, fmt.Sprint("req-", i))
	}
	bustest.Await(t, "Ready to fail", func() bool { return orchestrator.Ready() != nil })
	close(release)
	bustest.Await(t, "Ready", func() bool { return orchestrator.Ready() == nil })
	bustest.Await(t, "the consumer to be settled", func() bool { return settled(t, b) })
	stop()
}

// Heartbeats keep a handling alive that takes longer than AckWait.
func TestLongHandlingIsNotRedelivered(t *testing.T) {
	t.Parallel()
	b := bustest.Desk(t, bustest.Options{Manifest: bustest.Quick(time.Second, 10*time.Millisecond)})
	gateway, orchestrator := b.Connect(roles.Gateway), b.Connect(roles.Orchestrator)
	var seen counter
	consume(t, orchestrator, func(ctx context.Context, m *bus.Message) error {
		seen.add(m.Parts.CaseID)
		select { // more than twice AckWait
		case <-time.After(2500 * time.Millisecond):
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}, bus.ConsumeOptions{Timeout: 5 * time.Second})
	post(t, gateway, "req-1")
	bustest.Await(t, "the end of the handling", func() bool { return seen.get("req-1") > 0 && settled(t, b) })
	if n := seen.get("req-1"); n != 1 {
		t.Errorf("handled %d times, want once", n)
	}
}

// B34: one failing case holds a bounded part of the consumer; others flow.
func TestOneFailingCaseDoesNotStallOthersB34(t *testing.T) {
	t.Parallel()
	m := bustest.Quick(2*time.Second, time.Hour)
	for i := range m.Consumers {
		m.Consumers[i].MaxAckPending = 16
	}
	b := bustest.Desk(t, bustest.Options{Manifest: m})
	gateway, orchestrator := b.Connect(roles.Gateway), b.Connect(roles.Orchestrator)
	const failing, others = 40, 40
	for range failing {
		post(t, gateway, "fails")
	}
	for i := range others {
		post(t, gateway, fmt.Sprint("req-", i))
	}
	var handled atomic.Int64
	consume(t, orchestrator, func(_ context.Context, m *bus.Message) error {
		if m.Parts.CaseID == "fails" {
			return errors.New("not now")
		}
		handled.Add(1)
		return nil
	}, bus.ConsumeOptions{})
	bustest.Await(t, "the other cases", func() bool { return handled.Load() == others })
	letters := awaitDead(t, b, failing-2) // 16/8 wait for their retry
	for _, dl := range letters {
		if dl.GetReason() != bus.ReasonCaseBacklog {
			t.Errorf("dead letter with reason %s", dl.GetReason())
		}
	}
}

// At the end of Consume what is in flight finishes and the rest goes back.
func TestConsumeEndsCleanly(t *testing.T) {
	t.Parallel()
	b := bustest.Desk(t, bustest.Options{}) // the desk's AckWait: nothing here waits for it
	gateway, first := b.Connect(roles.Gateway), b.Connect(roles.Orchestrator)
	const posts = 30
	for i := range posts {
		post(t, gateway, fmt.Sprint("req-", i))
	}
	var seen counter
	entered, release := make(chan struct{}, posts), make(chan struct{})
	handler := func(_ context.Context, m *bus.Message) error {
		seen.add(m.Parts.CaseID)
		entered <- struct{}{}
		<-release
		return nil
	}
	stop := consume(t, first, handler, bus.ConsumeOptions{Workers: 2})
	<-entered
	<-entered
	go close(release)
	stop()
	consume(t, b.Connect(roles.Orchestrator), handler, bus.ConsumeOptions{Workers: 4})
	bustest.Await(t, "every message", func() bool { return settled(t, b) })
	for i := range posts {
		if n := seen.get(fmt.Sprint("req-", i)); n != 1 {
			t.Errorf("req-%d was handled %d times, want once", i, n)
		}
	}
	if got := len(deadLetters(t, b)); got != 0 {
		t.Errorf("%d dead letters", got)
	}
}

// Instances come and go under load; what they held is not left to its AckWait,
// which is longer than this test may take.
func TestInstancesComeAndGo(t *testing.T) {
	t.Parallel()
	b := bustest.Desk(t, bustest.Options{})
	gateway := b.Connect(roles.Gateway)
	var seen counter
	handler := func(_ context.Context, m *bus.Message) error {
		seen.add(m.Parts.CaseID)
		return nil
	}
	const writers, each = 8, 150
	var posters sync.WaitGroup
	for w := range writers {
		posters.Go(func() {
			for i := range each {
				post(t, gateway, fmt.Sprintf("req-%d-%d", w, i))
			}
		})
	}
	stay := b.Connect(roles.Orchestrator)
	consume(t, stay, handler, bus.ConsumeOptions{})
	for round := range 5 {
		c := b.Connect(roles.Orchestrator)
		stop := consume(t, c, handler, bus.ConsumeOptions{})
		bustest.Await(t, "some work", func() bool { return seen.total() > (round+1)*50 })
		stop()
		c.Close()
	}
	posters.Wait()
	bustest.Await(t, "every message", func() bool { return seen.total() >= writers*each && settled(t, b) })
	for w := range writers {
		for i := range each {
			if n := seen.get(fmt.Sprintf("req-%d-%d", w, i)); n != 1 {
				t.Errorf("req-%d-%d was handled %d times, want once", w, i, n)
			}
		}
	}
}

func TestConsumeRefusals(t *testing.T) {
	t.Parallel()
	b := bustest.Desk(t, bustest.Options{})
	composer := b.Connect(roles.Composer)
	h := func(context.Context, *bus.Message) error { return nil }
	if err := composer.Consume(t.Context(), roles.TaskConsumer(roles.Verifier), h, bus.ConsumeOptions{}); !errors.Is(err, bus.ErrDenied) {
		t.Errorf("another's consumer: %v, want ErrDenied", err)
	}
	if err := b.Admin().DeleteConsumer(t.Context(), roles.StreamTasks, roles.TaskConsumer(roles.Composer)); err != nil {
		t.Fatal(err)
	}
	if err := composer.Consume(t.Context(), roles.TaskConsumer(roles.Composer), h, bus.ConsumeOptions{}); !errors.Is(err, bus.ErrMissing) {
		t.Errorf("a consumer that is not there: %v, want ErrMissing", err)
	}
}

func TestRawConsumerRewinds(t *testing.T) {
	t.Parallel()
	b := bustest.Desk(t, bustest.Options{})
	c := b.Connect(roles.Orchestrator)
	ctx := t.Context()
	for i := range 5 {
		if _, err := c.Publish(ctx, subject.Case(tenant, fmt.Sprint("req-", i)), []byte{byte(i)}); err != nil {
			t.Fatal(err)
		}
	}
	// The broker counts what a consumer has yet to hand out a moment after it has
	// acknowledged a publish.
	bustest.Await(t, "five messages pending", func() bool {
		n, err := c.Backlog(ctx, roles.ConsumerSweep)
		return err == nil && n.Waiting == 5
	})
	walk := func(n int) (seqs []uint64) {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		err := c.ConsumeRaw(ctx, roles.ConsumerSweep, func(_ context.Context, m *bus.Raw) error {
			seqs = append(seqs, m.Seq)
			if want := uint64(n - len(seqs)); m.Pending != want {
				t.Errorf("message %d says %d pending, want %d", m.Seq, m.Pending, want)
			}
			if len(seqs) == n {
				cancel()
			}
			return nil
		}, bus.ConsumeOptions{Workers: 1})
		if err != nil {
			t.Fatal(err)
		}
		return seqs
	}
	if got := fmt.Sprint(walk(5)); got != "[1 2 3 4 5]" {
		t.Errorf("first walk saw %s", got)
	}
	if err := c.ResetConsumer(ctx, roles.ConsumerSweep, 3); err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprint(walk(3)); got != "[3 4 5]" {
		t.Errorf("walk from 3 saw %s", got)
	}
	if err := c.ResetConsumer(ctx, roles.ConsumerPosts, 1); !errors.Is(err, bus.ErrDenied) {
		t.Errorf("reset of a consumer that is not resettable: %v, want ErrDenied", err)
	}
}
