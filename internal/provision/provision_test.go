package provision_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"go.uber.org/goleak"

	"github.com/amends-dev/amends/internal/broker"
	"github.com/amends-dev/amends/internal/bus/bustest"
	"github.com/amends-dev/amends/internal/provision"
	"github.com/amends-dev/amends/internal/roles"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func connect(t *testing.T, b *bustest.Broker) jetstream.JetStream {
	t.Helper()
	nc, js, err := provision.Connect(b.URL(), b.Seed(broker.Provisioner))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nc.Close)
	return js
}

func TestApplyTwiceIsWhatCheckWants(t *testing.T) {
	t.Parallel()
	b := bustest.Desk(t, bustest.Options{Bare: true})
	js := connect(t, b)
	if err := provision.Check(t.Context(), js, b.Manifest(), provision.Options{}); !errors.Is(err, provision.ErrMissing) {
		t.Errorf("before: %v, want ErrMissing", err)
	}
	for range 2 {
		if err := provision.Apply(t.Context(), js, b.Manifest(), provision.Options{}); err != nil {
			t.Fatal(err)
		}
		if err := provision.Check(t.Context(), js, b.Manifest(), provision.Options{}); err != nil {
			t.Error(err)
		}
	}
	b.Stop()
	b.Start()
	if err := provision.Check(t.Context(), connect(t, b), b.Manifest(), provision.Options{}); err != nil {
		t.Errorf("after a restart: %v", err)
	}
}

// What is lost without harm is not synced; everything else is.
func TestRecomputableStreamsPersistAsynchronously(t *testing.T) {
	t.Parallel()
	b := bustest.Desk(t, bustest.Options{SyncAlways: true})
	for _, s := range b.Manifest().Streams {
		stream, err := b.Admin().Stream(t.Context(), s.Name)
		if err != nil {
			t.Fatal(err)
		}
		c := stream.CachedInfo().Config
		if async := c.PersistMode == jetstream.AsyncPersistMode; async != (s.Class == roles.Recomputable) {
			t.Errorf("%s is %s and persists asynchronously: %t", s.Name, s.Class, async)
		}
		if c.Storage != jetstream.FileStorage || c.AllowAtomicPublish || c.AllowMsgTTL || c.AllowRollup != s.Schedules || c.Duplicates > time.Second {
			t.Errorf("%s: %+v", s.Name, c)
		}
	}
}

// B50: Apply does not start a lost ledger over.
func TestApplyDoesNotReplaceALostStreamB50(t *testing.T) {
	t.Parallel()
	b := bustest.Desk(t, bustest.Options{})
	js := connect(t, b)
	drop := func(name string) {
		t.Helper()
		if err := b.Admin().DeleteStream(t.Context(), name); err != nil {
			t.Fatal(err)
		}
	}
	drop(roles.StreamTasks)
	if err := provision.Check(t.Context(), js, b.Manifest(), provision.Options{}); !errors.Is(err, provision.ErrMissing) {
		t.Errorf("Check without TASKS: %v, want ErrMissing", err)
	}
	if err := provision.Apply(t.Context(), js, b.Manifest(), provision.Options{}); err != nil {
		t.Errorf("Apply without TASKS, which can be sent again: %v", err)
	}
	drop(roles.StreamEffects)
	if err := provision.Apply(t.Context(), js, b.Manifest(), provision.Options{}); !errors.Is(err, provision.ErrMissing) {
		t.Errorf("Apply without EFFECTS: %v, want ErrMissing", err)
	}
	if _, err := js.Stream(t.Context(), roles.StreamEffects); !errors.Is(err, jetstream.ErrStreamNotFound) {
		t.Errorf("EFFECTS: %v, want not found", err)
	}
	if err := provision.Apply(t.Context(), js, b.Manifest(), provision.Options{NewStreams: true}); err != nil {
		t.Errorf("Apply with NewStreams: %v", err)
	}
}

func TestCheckListsEveryDifference(t *testing.T) {
	t.Parallel()
	b := bustest.Desk(t, bustest.Options{})
	admin, ctx := b.Admin(), t.Context()
	stream, err := admin.Stream(ctx, roles.StreamIntake)
	if err != nil {
		t.Fatal(err)
	}
	cfg := stream.CachedInfo().Config
	cfg.MaxAge, cfg.AllowRollup = time.Hour, true
	if _, err := admin.UpdateStream(ctx, cfg); err != nil {
		t.Fatal(err)
	}
	cons, err := admin.Consumer(ctx, roles.StreamTasks, roles.TaskConsumer(roles.Composer))
	if err != nil {
		t.Fatal(err)
	}
	cc := cons.CachedInfo().Config
	cc.AckWait = time.Minute
	if _, err := admin.UpdateConsumer(ctx, roles.StreamTasks, cc); err != nil {
		t.Fatal(err)
	}
	if err := admin.DeleteConsumer(ctx, roles.StreamTasks, roles.TaskConsumer(roles.Verifier)); err != nil {
		t.Fatal(err)
	}
	if _, err := admin.CreateConsumer(ctx, roles.StreamCases, jetstream.ConsumerConfig{Durable: "spy"}); err != nil {
		t.Fatal(err)
	}
	if _, err := admin.CreateStream(ctx, jetstream.StreamConfig{Name: "OTHER", Subjects: []string{"other"}}); err != nil {
		t.Fatal(err)
	}
	got := provision.Check(ctx, connect(t, b), b.Manifest(), provision.Options{})
	if got == nil {
		t.Fatal("Check found nothing")
	}
	for _, want := range []string{
		"stream INTAKE: max age is 1h0m0s, want 720h0m0s", "stream INTAKE: roll-up is true, want false",
		"consumer composer-tasks: ack wait is 1m0s, want 5s", "consumer verifier-tasks: ",
		"consumer spy of stream CASES is not in the manifest", "stream OTHER is not in the manifest",
	} {
		if !strings.Contains(got.Error(), want) {
			t.Errorf("not listed: %s\nin: %v", want, got)
		}
	}
	if n := strings.Count(got.Error(), "\n"); n != 5 {
		t.Errorf("%d differences, want 6: %v", n+1, got)
	}
}

// The provisioner makes and looks; it neither writes, reads, purges nor
// deletes.
func TestProvisionerHasNoMoreThanItNeeds(t *testing.T) {
	t.Parallel()
	b := bustest.Desk(t, bustest.Options{})
	refused := make(chan string, 64)
	nc := b.Raw(broker.Provisioner, nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) { refused <- err.Error() }))
	for _, subj := range []string{
		"case.t.c", "effect.t.o", "intake.gateway.t.c", "$JS.API.STREAM.PURGE.CASES", "$JS.API.STREAM.DELETE.CASES",
		"$JS.API.STREAM.MSG.GET.CASES", "$JS.API.STREAM.MSG.DELETE.CASES", "$JS.API.DIRECT.GET.CASES.case.t.c",
		"$JS.API.CONSUMER.DELETE.TASKS.composer-tasks", "$JS.API.CONSUMER.MSG.NEXT.TASKS.composer-tasks",
		"$JS.API.STREAM.SNAPSHOT.CASES", "$JS.API.STREAM.RESTORE.CASES", "$JS.ACK.TASKS.composer-tasks.1.1.1.1.0",
	} {
		if err := nc.Publish(subj, nil); err != nil {
			t.Fatal(err)
		}
		select {
		case text := <-refused:
			if !strings.Contains(text, subj) {
				t.Errorf("%s: %s", subj, text)
			}
		case <-time.After(5 * time.Second):
			t.Errorf("%s was not refused", subj)
		}
	}
}
