package e2e_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"golang.org/x/sync/errgroup"
	"google.golang.org/protobuf/proto"

	"github.com/amends-dev/amends/internal/allinone"
	"github.com/amends-dev/amends/internal/casework"
	"github.com/amends-dev/amends/internal/deskapi"
	"github.com/amends-dev/amends/internal/deskclient"
	"github.com/amends-dev/amends/internal/envelope"
	"github.com/amends-dev/amends/internal/roles"
	"github.com/amends-dev/amends/internal/sandbox"
	amendsv1 "github.com/amends-dev/amends/proto/amends/v1"
)

// patience bounds a whole test's waiting.
const patience = 4 * time.Minute

// world is a desk with its clients.
type world struct {
	*allinone.Desk
	t       *testing.T
	ctx     context.Context //nolint:containedctx // one test, one bound on its waiting
	gateway *deskclient.Gateway
	staff   *deskclient.Console
}

func start(t *testing.T, o allinone.Options) *world {
	t.Helper()
	if o.Dir == "" {
		o.Dir = t.TempDir()
	}
	o.Operator, o.Unlimited = true, true
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	d, err := allinone.Start(ctx, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Errorf("the desk does not close cleanly: %v", err)
		}
	})
	w := &world{Desk: d, t: t, ctx: ctx}
	t.Cleanup(w.neverMoreThanCaptured)
	if w.gateway, w.staff, err = d.Clients(64); err != nil {
		t.Fatal(err)
	}
	return w
}

// faults says what goes wrong at the provider from now on.
func (w *world) faults(f ...sandbox.Fault) {
	w.t.Helper()
	if err := w.SetFaults(f); err != nil {
		w.t.Fatal(err)
	}
}

// orders loads n orders; the second payment of each is settled, or a hold.
func (w *world) orders(n int, settled bool) {
	w.t.Helper()
	placed := time.Now().Add(-48 * time.Hour).UTC().Truncate(time.Second)
	first, second, cleared := placed.Add(2*time.Second), placed.Add(7*time.Second), placed.Add(17*time.Hour)
	var l sandbox.Ledger
	for i := range n {
		id := orderID(i)
		l.Orders = append(l.Orders, sandbox.Order{OrderID: id, Tenant: allinone.Tenant, CustomerID: allinone.Customer, TotalMinor: 200000, Currency: "INR", PlacedAt: placed})
		c := sandbox.Capture{OrderID: id, Tenant: allinone.Tenant, AmountMinor: 200000, Currency: "INR", Status: "settled", Captured: true, Settled: true, SettledAt: &cleared, Method: "card_visa_4417"}
		a, b := c, c
		a.PaymentID, a.CapturedAt = "pay_"+id+"_a", &first
		b.PaymentID, b.CapturedAt = "pay_"+id+"_b", &second
		if !settled {
			b.Status, b.Captured, b.Settled, b.CapturedAt, b.SettledAt = "authorized", false, false, nil, nil
		}
		l.Captures = append(l.Captures, a, b)
	}
	if err := w.Provider.Load(w.ctx, l); err != nil {
		w.t.Fatal(err)
	}
}

func orderID(i int) string { return strconv.Itoa(8472 + i) }
func caseID(i int) string  { return "req-" + orderID(i) }

func (w *world) post(i int) error {
	_, err := w.gateway.Post(w.ctx, deskclient.Post{
		Key: "key-" + orderID(i), CaseID: caseID(i), Message: "Order " + orderID(i) + " was charged twice, and my refund has not arrived. Please investigate and resolve it.",
	})
	return err
}

// follow follows a case from when it can be seen: a desk with hundreds of cases
// at once may take longer over its first view than a gateway waits for one.
func (w *world) follow(id string, after uint64, seen func(deskapi.View) error) error {
	for {
		err := w.gateway.Follow(w.ctx, id, "", after, seen)
		problem, ok := errors.AsType[*deskapi.Problem](err)
		if !ok || problem.Code != deskapi.CodeNotFound || w.ctx.Err() != nil {
			return err
		}
	}
}

// finish follows a case until it satisfies ended, approving when it is asked.
func (w *world) finish(i int, ended func(deskapi.View) bool) (deskapi.View, error) {
	var last deskapi.View
	approved := false
	err := w.follow(caseID(i), 0, func(v deskapi.View) error {
		last = v
		if v.State == "AWAITING_APPROVAL" && !approved {
			approved = true
			return w.approve(caseID(i), v.Version)
		}
		if ended(v) {
			return deskclient.ErrStop
		}
		return nil
	})
	if err != nil {
		err = fmt.Errorf("case %s, last %s at v%d: %w", caseID(i), last.State, last.Version, err)
	}
	return last, err
}

// approve signs as many times as the action needs, each with another
// approver's key, the first two at the same moment.
func (w *world) approve(id string, version uint64) error {
	shown, _, err := w.staff.Action(w.ctx, allinone.Tenant, id, version)
	if err != nil {
		return err
	}
	var g errgroup.Group
	for _, who := range []string{allinone.Approver, allinone.SecondApprover}[:shown.ApproversNeeded] {
		g.Go(func() error {
			_, err := allinone.Approve(w.ctx, w.staff, w.Trial.Keys[who], id, version)
			return err
		})
	}
	return g.Wait()
}

func closed(v deskapi.View) bool { return v.Closed }

// each runs f for 0 to n-1, some at once.
func (w *world) each(n, atOnce int, f func(int) error) {
	w.t.Helper()
	var g errgroup.Group
	g.SetLimit(atOnce)
	for i := range n {
		g.Go(func() error { return f(i) })
	}
	if err := g.Wait(); err != nil {
		w.t.Fatal(err)
	}
}

// logs reads every commit of every case, by case id.
func (w *world) logs() map[string][]*amendsv1.CaseCommit {
	w.t.Helper()
	out := map[string][]*amendsv1.CaseCommit{}
	w.read(roles.StreamCases, func(m jetstream.Msg) {
		var c amendsv1.CaseCommit
		if err := proto.Unmarshal(m.Data(), &c); err != nil {
			w.t.Fatal(err)
		}
		out[c.GetRecord().GetCaseId()] = append(out[c.GetRecord().GetCaseId()], &c)
	})
	return out
}

// read hands out every message of a stream.
func (w *world) read(stream string, f func(jetstream.Msg)) {
	w.t.Helper()
	js, done, err := w.Inspect()
	if err != nil {
		w.t.Fatal(err)
	}
	defer done()
	s, err := js.Stream(w.ctx, stream)
	if err != nil {
		w.t.Fatal(err)
	}
	left := s.CachedInfo().State.Msgs
	if left == 0 {
		return
	}
	c, err := js.OrderedConsumer(w.ctx, stream, jetstream.OrderedConsumerConfig{})
	if err != nil {
		w.t.Fatal(err)
	}
	it, err := c.Messages()
	if err != nil {
		w.t.Fatal(err)
	}
	defer it.Stop()
	for range left {
		m, err := it.Next(jetstream.NextContext(w.ctx))
		if err != nil {
			w.t.Fatal(err)
		}
		f(m)
	}
}

// sound checks the logs of n cases: there is one of each, its versions follow
// the table and replay to the same record (STATE-1), no input is in it twice
// (LOSS-1), and it ended in a state.
func (w *world) sound(n int, state amendsv1.CaseState) {
	w.t.Helper()
	logs := w.logs()
	if len(logs) != n {
		w.t.Errorf("LOSS-1: %d cases from %d posts", len(logs), n)
	}
	for id, log := range logs {
		rec, err := casework.Replay(log, casework.DefaultLimits(), payload)
		if err != nil {
			w.t.Errorf("STATE-1: case %s: %v", id, err)
			continue
		}
		if rec.GetState() != state {
			w.t.Errorf("case %s ended %s", id, casework.StateName(rec.GetState()))
		}
		seen := map[string]bool{}
		for _, h := range rec.GetHandled() {
			key := h.GetSender() + " " + h.GetMessageId()
			if seen[key] {
				w.t.Errorf("LOSS-1: case %s applied %s twice", id, key)
			}
			seen[key] = true
		}
	}
}

func payload(env *amendsv1.Envelope) (proto.Message, error) {
	typ, ok := envelope.Lookup(env.GetType())
	if !ok {
		return nil, fmt.Errorf("type %q is unknown", env.GetType())
	}
	m := typ.New()
	return m, proto.Unmarshal(env.GetPayload(), m)
}

// refunds gives what the provider refunded, by payment.
func (w *world) refunds() map[string]sandbox.Refund {
	w.t.Helper()
	l, err := w.Provider.Ledger(w.ctx)
	if err != nil {
		w.t.Fatal(err)
	}
	out := map[string]sandbox.Refund{}
	for _, r := range l.Refunds {
		if _, twice := out[r.PaymentID]; twice {
			w.t.Errorf("MONEY-1: payment %s was refunded twice", r.PaymentID)
		}
		out[r.PaymentID] = r
	}
	return out
}

// neverMoreThanCaptured is the end of every test: whatever was done to the desk,
// the refunds not failed are at most what was captured, of each payment and of
// each order (bug B17, MONEY-1). A desk that was closed is judged by the one
// that followed it.
func (w *world) neverMoreThanCaptured() {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	l, err := w.Provider.Ledger(ctx)
	if err != nil {
		return
	}
	for _, p := range overRefunded(l) {
		w.t.Errorf("B17, MONEY-1: %s", p)
	}
}

// overRefunded gives the payments and orders of a ledger that were refunded
// more than was captured.
func overRefunded(l sandbox.Ledger) (problems []string) {
	left := map[string]int64{}
	for _, c := range l.Captures {
		if c.Captured {
			left["payment "+c.Tenant+" "+c.PaymentID] += c.AmountMinor
			left["order "+c.Tenant+" "+c.OrderID] += c.AmountMinor
		}
	}
	for _, r := range l.Refunds {
		if r.Status == "failed" || r.Status == "canceled" {
			continue
		}
		left["payment "+r.Tenant+" "+r.PaymentID] -= r.AmountMinor
		left["order "+r.Tenant+" "+r.OrderID] -= r.AmountMinor
	}
	for what, minor := range left {
		if minor < 0 {
			problems = append(problems, fmt.Sprintf("%s was refunded %d more than captured", what, -minor))
		}
	}
	slices.Sort(problems)
	return problems
}

// quiet waits until every consumer has handed out all there is and got every
// acknowledgement: what was in a killed process has come again, and what was
// sent has had its effect.
func (w *world) quiet() {
	w.t.Helper()
	js, done, err := w.Inspect()
	if err != nil {
		w.t.Fatal(err)
	}
	defer done()
	for _, c := range roles.Desk().Consumers {
		if c.Stream == roles.StreamCases || c.Stream == roles.StreamViews {
			continue // what is read there moves no case on
		}
		for {
			consumer, err := js.Consumer(w.ctx, c.Stream, c.Name)
			if err != nil {
				w.t.Fatalf("LOSS-1: %s is not at rest: %v", c.Name, err)
			}
			if info := consumer.CachedInfo(); info.NumAckPending == 0 && info.NumPending == 0 {
				break
			}
			<-time.After(50 * time.Millisecond)
		}
	}
}

// noDeadLetters checks that nothing was given up.
func (w *world) noDeadLetters() {
	w.t.Helper()
	w.read(roles.StreamDeadLetters, func(m jetstream.Msg) {
		var d amendsv1.DeadLetter
		if err := proto.Unmarshal(m.Data(), &d); err != nil {
			w.t.Fatal(err)
		}
		w.t.Errorf("dead letter of %s: %s: %s (%s)", d.GetService(), d.GetReason(), d.GetError(), strings.TrimSpace(d.GetOriginal().GetSubject()))
	})
}

// nothingStored checks that no stream holds any of these texts.
func (w *world) nothingStored(secrets ...string) {
	w.t.Helper()
	for _, stream := range roles.Desk().Streams {
		w.read(stream.Name, func(m jetstream.Msg) {
			for _, secret := range secrets {
				if strings.Contains(string(m.Data()), secret) {
					w.t.Errorf("%s holds %q on %s", stream.Name, secret, m.Subject())
				}
			}
		})
	}
}
