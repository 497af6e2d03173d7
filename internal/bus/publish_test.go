package bus_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/amends-dev/amends/internal/bus"
	"github.com/amends-dev/amends/internal/bus/bustest"
	"github.com/amends-dev/amends/internal/roles"
	"github.com/amends-dev/amends/internal/subject"
)

func TestPublishIsACompareAndSet(t *testing.T) {
	t.Parallel()
	b := bustest.Desk(t, bustest.Options{})
	c := b.Connect(roles.Orchestrator)
	ctx := t.Context()
	subj := subject.Case(tenant, "req-1")

	first, err := c.Publish(ctx, subj, []byte("1"), bus.ExpectLast(0))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Publish(ctx, subj, []byte("x"), bus.ExpectLast(0)); !errors.Is(err, bus.ErrConflict) {
		t.Errorf("expecting an empty subject: %v, want ErrConflict", err)
	}
	second, err := c.Publish(ctx, subj, []byte("2"), bus.ExpectLast(first))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Publish(ctx, subj, []byte("x"), bus.ExpectLast(first)); !errors.Is(err, bus.ErrConflict) {
		t.Errorf("expecting an older sequence: %v, want ErrConflict", err)
	}

	last, err := c.Last(ctx, roles.StreamCases, subj)
	if err != nil || last.Seq != second || string(last.Data) != "2" || last.Subject != subj || last.Time.IsZero() {
		t.Errorf("Last = %+v, %v", last, err)
	}
	next, err := c.NextAfter(ctx, roles.StreamCases, "case.*.*", first)
	if err != nil || next.Seq != second {
		t.Errorf("NextAfter(%d) = %+v, %v", first, next, err)
	}
	if _, err := c.NextAfter(ctx, roles.StreamCases, subj, second); !errors.Is(err, bus.ErrNotFound) {
		t.Errorf("NextAfter the end: %v, want ErrNotFound", err)
	}
	if _, err := c.Last(ctx, roles.StreamCases, subject.Case(tenant, "req-2")); !errors.Is(err, bus.ErrNotFound) {
		t.Errorf("Last of an unknown case: %v, want ErrNotFound", err)
	}
	console := b.Connect(roles.Console)
	bustest.Await(t, "the direct read", func() bool {
		got, err := console.LastDirect(ctx, roles.StreamCases, subj)
		return err == nil && got.Seq == second && got.Subject == subj && string(got.Data) == "2" && got.Time.Equal(last.Time)
	})
	if _, err := console.LastDirect(ctx, roles.StreamCases, subject.Case(tenant, "req-2")); !errors.Is(err, bus.ErrNotFound) {
		t.Errorf("LastDirect of an unknown case: %v, want ErrNotFound", err)
	}
}

// AUTH-1: the sender token of a subject is the broker's word.
func TestPublishAsAnotherIsDeniedAUTH1(t *testing.T) {
	t.Parallel()
	b := bustest.Desk(t, bustest.Options{})
	composer := b.Connect(roles.Composer)
	start := time.Now()
	_, err := composer.Publish(t.Context(), subject.Result(string(roles.PolicySpecialist), tenant, "req-1"), []byte("x"))
	if !errors.Is(err, bus.ErrDenied) {
		t.Fatalf("the composer published as the policy specialist: %v, want ErrDenied", err)
	}
	if took := time.Since(start); took > time.Second {
		t.Errorf("the denial took %s; it was not joined to its request", took)
	}
	if got := stored(t, b, roles.StreamResults); len(got) != 0 {
		t.Errorf("RESULTS holds %d messages", len(got))
	}
	if err := composer.Ready(); err != nil {
		t.Errorf("being refused what the manifest does not grant: not ready: %v", err)
	}
}

func TestReadyFailsWhenAGrantDoesNotWork(t *testing.T) {
	t.Parallel()
	b := bustest.Desk(t, bustest.Options{})
	wider := b.Manifest()
	wider.Roles = append([]roles.Role(nil), wider.Roles...)
	for i := range wider.Roles {
		if wider.Roles[i].Service == roles.Composer {
			wider.Roles[i].Publishes = append([]string{"result.verifier.*.*"}, wider.Roles[i].Publishes...)
		}
	}
	c, err := bus.Connect(t.Context(), bus.Config{
		URL: b.URL(), Service: roles.Composer, Seed: b.Seed(roles.Composer), Manifest: wider,
	}, bus.Deps{})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if err := c.Ready(); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Publish(t.Context(), "result.verifier.t.c", nil); !errors.Is(err, bus.ErrDenied) {
		t.Fatalf("Publish: %v, want ErrDenied", err)
	}
	if err := c.Ready(); !errors.Is(err, bus.ErrDenied) {
		t.Errorf("Ready = %v, want ErrDenied", err)
	}
}

func TestALostAcknowledgementIsUncertain(t *testing.T) {
	t.Parallel()
	b := bustest.Desk(t, bustest.Options{})
	net := newProxy(t, b.URL())
	c, err := bus.Connect(t.Context(), bus.Config{
		URL: net.url(), Service: roles.Orchestrator, Seed: b.Seed(roles.Orchestrator), Manifest: b.Manifest(),
		RequestTimeout: 300 * time.Millisecond,
	}, bus.Deps{})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()

	net.deaf.Store(true)
	_, err = c.Publish(t.Context(), subject.Case(tenant, "req-1"), []byte("1"), bus.ExpectLast(0))
	if !errors.Is(err, bus.ErrUncertain) || errors.Is(err, bus.ErrUnavailable) {
		t.Errorf("no acknowledgement in time: %v, want ErrUncertain", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		_, err := c.Publish(ctx, subject.Case(tenant, "req-2"), []byte("1"), bus.ExpectLast(0))
		ended <- err
	}()
	bustest.Await(t, "both commits", func() bool { return len(stored(t, b, roles.StreamCases)) == 2 })
	cancel()
	if err := <-ended; !errors.Is(err, bus.ErrUncertain) {
		t.Errorf("the caller gave up: %v, want ErrUncertain", err)
	}

	// It was stored once each; the leader knows.
	net.deaf.Store(false)
	net.cut()
	for _, id := range []string{"req-1", "req-2"} {
		if _, err := c.Last(t.Context(), roles.StreamCases, subject.Case(tenant, id)); err != nil {
			t.Errorf("case %s: %v", id, err)
		}
	}
	if got := len(stored(t, b, roles.StreamCases)); got != 2 {
		t.Errorf("%d commits stored, want 2", got)
	}
}

// A publish that was in flight when its connection broke is never sent again
// here: without a condition it would be stored twice, and with one its own first
// try would look like somebody else's.
func TestAPublishInFlightIsNotSentAgain(t *testing.T) {
	t.Parallel()
	b := bustest.Desk(t, bustest.Options{})
	net := newProxy(t, b.URL())
	c, err := bus.Connect(t.Context(), bus.Config{
		URL: net.url(), Service: roles.Orchestrator, Seed: b.Seed(roles.Orchestrator), Manifest: b.Manifest(),
		RequestTimeout: 20 * time.Second,
	}, bus.Deps{})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	subj := subject.Task("composer", tenant, "req-1")
	net.deaf.Store(true)
	ended := make(chan error, 2)
	go func() { ended <- publishErr(c.Publish(t.Context(), subj, []byte("1"))) }()
	go func() {
		done := c.PublishAll(t.Context(), bus.Publication{Subject: subj, Data: []byte("2")}, bus.Publication{Subject: subj, Data: []byte("3")})
		ended <- errors.Join(done[0].Err, done[1].Err)
	}()
	bustest.Await(t, "all three at the broker", func() bool { return b.Count(roles.StreamTasks, subj) == 3 })
	net.deaf.Store(false)
	net.cut()
	for range 2 {
		if err := <-ended; !errors.Is(err, bus.ErrUncertain) {
			t.Errorf("the connection broke: %v, want ErrUncertain", err)
		}
	}
	bustest.Await(t, "the next connection", func() bool { return c.Ready() == nil })
	if _, err := c.Publish(t.Context(), subj, []byte("4")); err != nil {
		t.Fatal(err)
	}
	if n := b.Count(roles.StreamTasks, subj); n != 4 {
		t.Errorf("%d messages are stored, want 4", n)
	}
}

// What Publish says about a message holds, whenever the broker stops.
func TestPublishTellsTheTruthWhenTheBrokerStops(t *testing.T) {
	t.Parallel()
	b := bustest.Desk(t, bustest.Options{SyncAlways: true, RequestTimeout: 500 * time.Millisecond})
	c := b.Connect(roles.Orchestrator)
	const writers = 32
	said := make([]map[string]error, writers)
	var begun, wg sync.WaitGroup
	begun.Add(writers)
	for w := range writers {
		said[w] = make(map[string]error)
		wg.Go(func() {
			for i := 0; ; i++ {
				id := fmt.Sprintf("req-%d-%d", w, i)
				_, err := c.Publish(context.Background(), subject.Case(tenant, id), []byte(id), bus.ExpectLast(0))
				said[w][id] = err
				if i == 0 {
					begun.Done()
				}
				if err != nil {
					return
				}
			}
		})
	}
	begun.Wait()
	b.Stop()
	wg.Wait()
	_, err := c.Publish(t.Context(), subject.Case(tenant, "req-late"), nil)
	if !errors.Is(err, bus.ErrUnavailable) {
		t.Errorf("while the broker is down: %v, want ErrUnavailable", err)
	}
	if err := c.Ready(); !errors.Is(err, bus.ErrUnavailable) {
		t.Errorf("Ready while the broker is down = %v, want ErrUnavailable", err)
	}
	b.Start()

	have := make(map[string]int)
	for _, m := range stored(t, b, roles.StreamCases) {
		have[string(m.Data)]++
	}
	var uncertain int
	for _, byWriter := range said {
		for id, err := range byWriter {
			switch {
			case err == nil && have[id] != 1:
				t.Errorf("%s was acknowledged and is stored %d times", id, have[id])
			case errors.Is(err, bus.ErrUncertain):
				uncertain++
			case err != nil && have[id] != 0:
				t.Errorf("%s ended with %v and is stored", id, err)
			}
		}
	}
	t.Logf("%d stored, %d uncertain", len(have), uncertain)
}

func TestPublishRefusals(t *testing.T) {
	t.Parallel()
	b := bustest.Desk(t, bustest.Options{})
	c := b.Connect(roles.Orchestrator)
	for name, size := range map[string]int{"above the stream's limit": 600 << 10, "above the broker's limit": 2 << 20} {
		_, err := c.Publish(t.Context(), subject.Case(tenant, "req-1"), make([]byte, size))
		if err == nil || errors.Is(err, bus.ErrUncertain) || errors.Is(err, bus.ErrUnavailable) || errors.Is(err, bus.ErrConflict) {
			t.Errorf("%s: %v, want a plain refusal", name, err)
		}
	}
	if api, ok := errors.AsType[*bus.APIError](publishErr(c.Publish(t.Context(), subject.Case(tenant, "req-1"), make([]byte, 600<<10)))); !ok || api.Code != 10054 {
		t.Errorf("above the stream's limit: %+v", api)
	}
}

func publishErr(_ uint64, err error) error { return err }

// Without any tracer in between, the trace goes on over publish and consume.
func TestTraceContextPassesBothWays(t *testing.T) {
	t.Parallel()
	b := bustest.Desk(t, bustest.Options{})
	gateway, orchestrator := b.Connect(roles.Gateway), b.Connect(roles.Orchestrator)
	state, err := trace.ParseTraceState("desk=1")
	if err != nil {
		t.Fatal(err)
	}
	sc := trace.NewSpanContext(trace.SpanContextConfig{
		TraceID: trace.TraceID{1, 2, 3}, SpanID: trace.SpanID{4, 5}, TraceFlags: trace.FlagsSampled, TraceState: state,
	})
	env, payload := withdrawal("req-1")
	ctx := trace.ContextWithRemoteSpanContext(t.Context(), sc)
	if _, err := gateway.Send(ctx, subject.Intake("gateway", tenant, "req-1"), env, payload); err != nil {
		t.Fatal(err)
	}
	got := make(chan trace.SpanContext, 1)
	consume(t, orchestrator, func(ctx context.Context, _ *bus.Message) error {
		got <- trace.SpanContextFromContext(ctx)
		_, err := orchestrator.Publish(ctx, subject.View(tenant, "req-1"), []byte("v"))
		return err
	}, bus.ConsumeOptions{})
	if g := <-got; g.TraceID() != sc.TraceID() || g.SpanID() != sc.SpanID() || !g.IsRemote() || g.TraceState().String() != "desk=1" {
		t.Errorf("the handler's span context is %+v", g)
	}
	bustest.Await(t, "the view", func() bool { return len(stored(t, b, roles.StreamViews)) == 1 })
	h := stored(t, b, roles.StreamViews)[0].Header
	if tp := strings.Join(h["traceparent"], ","); !strings.Contains(tp, sc.TraceID().String()) {
		t.Errorf("traceparent of what the handler published: %q", tp)
	}
}
