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

// After a restart consuming goes on by itself, OnServerChange is called, and
// what was accepted is handled (LOSS-2).
func TestConsumingSurvivesRestartsLOSS2(t *testing.T) {
	t.Parallel()
	b := bustest.Desk(t, bustest.Options{Manifest: bustest.Quick(time.Second, 10*time.Millisecond, 20*time.Millisecond, 50*time.Millisecond), RequestTimeout: 500 * time.Millisecond})
	gateway, orchestrator := b.Connect(roles.Gateway), b.Connect(roles.Orchestrator)
	var changes atomic.Int64
	orchestrator.OnServerChange(func() { changes.Add(1) })
	var seen counter
	consume(t, orchestrator, func(ctx context.Context, m *bus.Message) error {
		_, err := orchestrator.Publish(ctx, subject.View(tenant, m.Parts.CaseID), []byte("v"))
		if err == nil {
			seen.add(m.Parts.CaseID)
		}
		return err
	}, bus.ConsumeOptions{})

	stop := make(chan struct{})
	accepted := make([][]string, 8)
	var posters sync.WaitGroup
	for w := range accepted {
		posters.Go(func() {
			for i := 0; ; i++ {
				select {
				case <-stop:
					return
				default:
				}
				id := fmt.Sprintf("req-%d-%d", w, i)
				env, payload := withdrawal(id)
				if _, err := gateway.Send(context.Background(), subject.Intake("gateway", tenant, id), env, payload); err == nil {
					accepted[w] = append(accepted[w], id)
				}
			}
		})
	}
	for round := range 3 {
		before := seen.total()
		bustest.Await(t, "work before the restart", func() bool { return seen.total() > before+20 })
		b.Stop()
		b.Start()
		bustest.Await(t, "OnServerChange", func() bool { return changes.Load() > int64(round) })
	}
	before := seen.total()
	bustest.Await(t, "work after the last restart", func() bool { return seen.total() > before+20 })
	close(stop)
	posters.Wait()
	bustest.Await(t, "the consumer to be settled", func() bool { return settled(t, b) })
	for _, ids := range accepted {
		for _, id := range ids {
			if seen.get(id) == 0 {
				t.Errorf("%s was accepted and never handled", id)
			}
		}
	}
	if err := orchestrator.Ready(); err != nil {
		t.Error(err)
	}
	if got := len(deadLetters(t, b)); got != 0 {
		t.Errorf("%d dead letters", got)
	}
}

// A network that comes and goes is told, too: the broker may have lost what it
// had not synced.
func TestAnyReconnectIsAServerChange(t *testing.T) {
	t.Parallel()
	b := bustest.Desk(t, bustest.Options{})
	net := newProxy(t, b.URL())
	c, err := bus.Connect(t.Context(), bus.Config{
		URL: net.url(), Service: roles.Gateway, Seed: b.Seed(roles.Gateway), Manifest: b.Manifest(),
	}, bus.Deps{})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	var changes atomic.Int64
	c.OnServerChange(func() { changes.Add(1) })
	if changes.Load() != 0 {
		t.Error("called without a reconnect")
	}
	net.cut()
	bustest.Await(t, "OnServerChange", func() bool { return changes.Load() == 1 })
	// What starts while the connection is down waits for it.
	net.down.Store(true)
	net.cut()
	bustest.Await(t, "the disconnect", func() bool { return c.Ready() != nil })
	done := make(chan error, 1)
	go func() {
		_, err := c.Publish(t.Context(), subject.Intake("gateway", tenant, "req-1"), []byte("x"))
		done <- err
	}()
	net.down.Store(false)
	if err := <-done; err != nil {
		t.Errorf("a publish begun while disconnected: %v", err)
	}
}

// B50: a service does not start on top of a lost stream.
func TestConnectRefusesWhenAStreamIsMissingB50(t *testing.T) {
	t.Parallel()
	b := bustest.Desk(t, bustest.Options{})
	for stream, services := range map[string][]roles.Service{
		roles.StreamEffects: {roles.RefundExecutor},
		roles.StreamCases:   {roles.Orchestrator, roles.Console},
		roles.StreamViews:   {roles.Gateway},
		roles.StreamTasks:   {roles.Composer, roles.Verifier, roles.PaymentInvestigator, roles.PolicySpecialist},
	} {
		if err := b.Admin().DeleteStream(t.Context(), stream); err != nil {
			t.Fatal(err)
		}
		for _, s := range services {
			_, err := bus.Connect(t.Context(), bus.Config{URL: b.URL(), Service: s, Seed: b.Seed(s), Manifest: b.Manifest()}, bus.Deps{})
			if !errors.Is(err, bus.ErrMissing) {
				t.Errorf("%s without %s: %v, want ErrMissing", s, stream, err)
			}
		}
	}
}

func TestConnectRefusals(t *testing.T) {
	t.Parallel()
	b := bustest.Desk(t, bustest.Options{})
	for name, cfg := range map[string]bus.Config{
		"unknown service": {URL: b.URL(), Service: "nobody", Seed: b.Seed(roles.Composer), Manifest: b.Manifest()},
		"no seed":         {URL: b.URL(), Service: roles.Composer, Manifest: b.Manifest()},
	} {
		if _, err := bus.Connect(t.Context(), cfg, bus.Deps{}); err == nil {
			t.Errorf("%s: connected", name)
		}
	}
}
