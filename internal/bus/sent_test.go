package bus_test

import (
	"context"
	"slices"
	"testing"

	"github.com/amends-dev/amends/internal/bus"
	"github.com/amends-dev/amends/internal/bus/bustest"
	"github.com/amends-dev/amends/internal/roles"
	"github.com/amends-dev/amends/internal/subject"
)

// Whoever stands in WithSent's function has the message at the broker, and what
// comes after it not sent.
func TestSentStandsBetweenTheMessages(t *testing.T) {
	t.Parallel()
	b := bustest.Desk(t, bustest.Options{})
	c := b.Connect(roles.Orchestrator)
	one, two := subject.Case(tenant, "req-1"), subject.Case(tenant, "req-2")
	var told []string
	ctx := bus.WithSent(t.Context(), func(subj string) {
		told = append(told, subj)
		bustest.Await(t, "what was sent", func() bool { return b.Count(roles.StreamCases, subj) == 1 })
		if n := b.Count(roles.StreamCases, "case.>"); n != len(told) {
			t.Errorf("%d messages are stored when %v are sent", n, told)
		}
	})
	if _, err := c.Publish(ctx, one, []byte("1")); err != nil {
		t.Fatal(err)
	}
	three, four := subject.Case(tenant, "req-3"), subject.Case(tenant, "req-4")
	for _, d := range c.PublishAll(ctx, bus.Publication{Subject: two}, bus.Publication{Subject: three}, bus.Publication{Subject: four}) {
		if d.Err != nil {
			t.Error(d.Err)
		}
	}
	if !slices.Equal(told, []string{one, two, three, four}) {
		t.Errorf("told of %v", told)
	}
}

// OnAcked comes after the acknowledgement, and for nothing that is not handled.
func TestOnAckedComesAfterTheAcknowledgement(t *testing.T) {
	t.Parallel()
	b := bustest.Desk(t, bustest.Options{})
	ids := make(chan string, 2)
	consume(t, b.Connect(roles.Orchestrator), func(_ context.Context, m *bus.Message) error {
		if m.Parts.CaseID == "req-2" {
			return bus.Drop("test")
		}
		return nil
	}, bus.ConsumeOptions{Workers: 1, OnAcked: func(_ context.Context, m *bus.Message) {
		bustest.Await(t, "the acknowledgement", func() bool {
			consumer, err := b.Admin().Consumer(t.Context(), roles.StreamIntake, roles.ConsumerPosts)
			return err == nil && consumer.CachedInfo().NumAckPending == 0
		})
		ids <- m.Parts.CaseID
	}})
	gateway := b.Connect(roles.Gateway)
	for _, id := range []string{"req-2", "req-1"} {
		post(t, gateway, id)
	}
	if got := <-ids; got != "req-1" {
		t.Errorf("told of the acknowledgement of %s", got)
	}
}
