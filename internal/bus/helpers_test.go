package bus_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"go.uber.org/goleak"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/amends-dev/amends/internal/bus"
	"github.com/amends-dev/amends/internal/bus/bustest"
	"github.com/amends-dev/amends/internal/envelope"
	"github.com/amends-dev/amends/internal/ident"
	"github.com/amends-dev/amends/internal/roles"
	"github.com/amends-dev/amends/internal/subject"
	amendsv1 "github.com/amends-dev/amends/proto/amends/v1"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const tenant = "acme-in"

// withdrawal is a small valid message of the gateway.
func withdrawal(caseID string) (*amendsv1.Envelope, proto.Message) {
	now := time.Now()
	return &amendsv1.Envelope{
		MessageId: ident.Derive(now, caseID), CaseId: caseID, Tenant: tenant, RequestId: caseID,
		Sender: string(roles.Gateway), Recipient: string(roles.Orchestrator), SentAt: timestamppb.New(now),
	}, &amendsv1.CaseCancel{Channel: "web", PostedBy: "trial"}
}

func sealed(tb testing.TB, caseID string) []byte {
	tb.Helper()
	env, payload := withdrawal(caseID)
	data, err := envelope.Seal(env, payload)
	if err != nil {
		tb.Fatal(err)
	}
	return data
}

// post sends a withdrawal of a case with the gateway's credential.
func post(tb testing.TB, gateway *bus.Conn, caseID string) {
	tb.Helper()
	env, payload := withdrawal(caseID)
	if _, err := gateway.Send(tb.Context(), subject.Intake("gateway", tenant, caseID), env, payload); err != nil {
		tb.Fatal(err)
	}
}

// consume runs the posts consumer until the test ends or stop is called.
func consume(tb testing.TB, c *bus.Conn, h bus.Handler, o bus.ConsumeOptions) (stop func()) {
	tb.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- c.Consume(ctx, roles.ConsumerPosts, h, o) }()
	stop = sync.OnceFunc(func() {
		cancel()
		select {
		case err := <-done:
			if err != nil {
				tb.Errorf("Consume ended with %v", err)
			}
		case <-time.After(20 * time.Second):
			tb.Error("Consume did not end")
		}
	})
	tb.Cleanup(stop)
	return stop
}

// deadLetters reads all dead letters with the operator's credential.
func deadLetters(tb testing.TB, b *bustest.Broker) []*amendsv1.DeadLetter {
	tb.Helper()
	var out []*amendsv1.DeadLetter
	for _, m := range stored(tb, b, roles.StreamDeadLetters) {
		dl := new(amendsv1.DeadLetter)
		if err := proto.Unmarshal(m.Data, dl); err != nil {
			tb.Fatal(err)
		}
		if err := envelope.Validate(dl); err != nil {
			tb.Errorf("dead letter breaks its schema: %v", err)
		}
		if want := subject.Dead(dl.GetService(), dl.GetTenant(), dl.GetCaseId()); m.Subject != want {
			tb.Errorf("dead letter on %s, want %s", m.Subject, want)
		}
		out = append(out, dl)
	}
	return out
}

// stored reads a whole stream with the operator's credential.
func stored(tb testing.TB, b *bustest.Broker, stream string) []*jetstream.RawStreamMsg {
	tb.Helper()
	s, err := b.Admin().Stream(tb.Context(), stream)
	if err != nil {
		tb.Fatal(err)
	}
	var out []*jetstream.RawStreamMsg
	for seq := max(s.CachedInfo().State.FirstSeq, 1); seq <= s.CachedInfo().State.LastSeq; seq++ {
		m, err := s.GetMsg(tb.Context(), seq)
		if errors.Is(err, jetstream.ErrMsgNotFound) {
			continue
		}
		if err != nil {
			tb.Fatal(err)
		}
		for _, added := range []string{"Nats-Stream", "Nats-Subject", "Nats-Sequence", "Nats-Time-Stamp"} {
			m.Header.Del(added) // by the read
		}
		out = append(out, m)
	}
	return out
}

// awaitDead waits for n dead letters and checks that no more come with them.
func awaitDead(tb testing.TB, b *bustest.Broker, n int) []*amendsv1.DeadLetter {
	tb.Helper()
	var got []*amendsv1.DeadLetter
	bustest.Await(tb, "dead letters", func() bool {
		got = deadLetters(tb, b)
		return len(got) >= n
	})
	if len(got) != n {
		tb.Fatalf("%d dead letters, want %d", len(got), n)
	}
	return got
}

// settled reports whether the posts consumer has nothing left to hand out or
// to wait for.
func settled(tb testing.TB, b *bustest.Broker) bool {
	tb.Helper()
	c, err := b.Admin().Consumer(tb.Context(), roles.StreamIntake, roles.ConsumerPosts)
	if err != nil {
		tb.Fatal(err)
	}
	i := c.CachedInfo()
	return i.NumPending == 0 && i.NumAckPending == 0
}

// counter counts deliveries by case.
type counter struct {
	mu sync.Mutex
	n  map[string]int
}

func (c *counter) add(caseID string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.n == nil {
		c.n = make(map[string]int)
	}
	c.n[caseID]++
	return c.n[caseID]
}

func (c *counter) get(caseID string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.n[caseID]
}

func (c *counter) total() (n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, k := range c.n {
		n += k
	}
	return n
}
