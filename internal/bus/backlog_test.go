package bus_test

import (
	"context"
	"errors"
	"testing"

	"github.com/amends-dev/amends/internal/bus"
	"github.com/amends-dev/amends/internal/bus/bustest"
	"github.com/amends-dev/amends/internal/roles"
)

func TestBacklogOfOwnAndWatchedConsumers(t *testing.T) {
	t.Parallel()
	b := bustest.Desk(t, bustest.Options{})
	gateway, orchestrator := b.Connect(roles.Gateway), b.Connect(roles.Orchestrator)
	ask := func(c *bus.Conn) bus.Backlog {
		t.Helper()
		got, err := c.Backlog(t.Context(), roles.ConsumerPosts)
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	for _, id := range []string{"req-1", "req-2", "req-3"} {
		post(t, gateway, id)
	}
	if got := ask(gateway); got != (bus.Backlog{Waiting: 3}) || got != ask(orchestrator) {
		t.Errorf("before anybody consumes: %+v", got)
	}
	hold, begun := make(chan struct{}), make(chan struct{}, 8)
	consume(t, orchestrator, func(ctx context.Context, _ *bus.Message) error {
		begun <- struct{}{}
		select {
		case <-hold:
		case <-ctx.Done():
		}
		return nil
	}, bus.ConsumeOptions{Workers: 4})
	for range 3 {
		<-begun
	}
	if got := ask(gateway); got != (bus.Backlog{Open: 3, Delivered: 3}) || got.Total() != 3 {
		t.Errorf("while they are handled: %+v", got)
	}
	close(hold)
	bustest.Await(t, "an empty backlog", func() bool { return ask(gateway) == bus.Backlog{Delivered: 3, Settled: 3} })

	// AUTH-1: watching is for whom the manifest says, and is no more than that.
	for name, err := range map[string]error{
		"composer":  backlog(t, b.Connect(roles.Composer), roles.ConsumerPosts),
		"unwatched": backlog(t, gateway, roles.ConsumerSweep),
		"unknown":   backlog(t, gateway, "other"),
		"pull":      gateway.Consume(t.Context(), roles.ConsumerPosts, nil, bus.ConsumeOptions{}),
		"reset":     gateway.ResetConsumer(t.Context(), roles.ConsumerPosts, 1),
	} {
		if !errors.Is(err, bus.ErrDenied) {
			t.Errorf("%s: %v, want ErrDenied", name, err)
		}
	}
}

func backlog(t *testing.T, c *bus.Conn, consumer string) error {
	t.Helper()
	_, err := c.Backlog(t.Context(), consumer)
	return err
}
