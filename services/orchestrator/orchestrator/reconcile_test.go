package orchestrator

import (
	"context"
	"fmt"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/amends-dev/amends/internal/bus"
	"github.com/amends-dev/amends/internal/reconcile"
	"github.com/amends-dev/amends/internal/roles"
	"github.com/amends-dev/amends/internal/subject"
	amendsv1 "github.com/amends-dev/amends/proto/amends/v1"
)

// comparing is an orchestrator that compares, and the ledger's writer.
type comparing struct {
	*comparer
	d      *desk
	writer *bus.Conn
	runs   int
}

func newComparing(t *testing.T, edit ...func(*reconcile.Config)) *comparing {
	t.Helper()
	d := newDesk(t)
	o := d.build(nil)
	o.cfg.Reconcile = reconcile.Defaults()
	o.cfg.Reconcile.Tenants, o.cfg.Reconcile.Grace = []string{"acme-in"}, 0
	for _, e := range edit {
		e(&o.cfg.Reconcile)
	}
	return &comparing{&comparer{orchestrator: o, books: map[string]*books{}}, d, d.broker.Connect(roles.RefundExecutor), 0}
}

// refunded writes a refund into the ledger whose case nobody has.
func (c *comparing) refunded(order string) {
	c.d.t.Helper()
	data, err := proto.Marshal(&amendsv1.EffectEntry{Tenant: "acme-in", OrderId: order, Revision: 1, Intents: []*amendsv1.EffectIntent{{
		IdempotencyKey: "refund:req-" + order + ":p", CaseId: "req-" + order, PaymentId: "p",
		Outcome: &amendsv1.EffectOutcome{Class: amendsv1.EffectClass_EFFECT_CLASS_ACKNOWLEDGED, RefundId: "rf_" + order, At: timestamppb.Now()},
	}}})
	if err != nil {
		c.d.t.Fatal(err)
	}
	c.put(c.writer, subject.Effect("acme-in", order), data)
}

func (c *comparing) put(conn *bus.Conn, subj string, data []byte) {
	c.d.t.Helper()
	if _, err := conn.Publish(c.d.t.Context(), subj, data); err != nil {
		c.d.t.Fatal(err)
	}
}

func (c *comparing) run() (found, incomplete string) {
	c.runs++
	run := reconcile.Run{ID: fmt.Sprint("run-", c.runs), Tenant: "acme-in", At: time.Now()}
	r := reconcile.NewReport(run, roles.Orchestrator, run.At)
	c.compare(c.d.t.Context(), run, r)
	out := r.Now()
	for _, f := range out.GetFindings() {
		found += f.GetOrderId()
	}
	return found, out.GetIncomplete()
}

// With more suspicions than a run looks into the next one goes on, and none
// waits for ever.
func TestRunsOfTheOrchestratorGoOn(t *testing.T) {
	t.Parallel()
	c := newComparing(t, func(r *reconcile.Config) { r.MaxOrders = 1 })
	for _, order := range []string{"1", "2", "3"} {
		c.refunded(order)
	}
	seen := map[string]bool{}
	for range 3 {
		found, incomplete := c.run()
		if incomplete != reconcile.ReasonTooMany || len(found) != 1 {
			t.Errorf("found %q, incomplete %q", found, incomplete)
		}
		seen[found] = true
	}
	if n := c.d.broker.Count(roles.StreamCases, "case.acme-in.*"); n != 3 || len(seen) != 3 {
		t.Errorf("three runs of one suspicion each raised %d of 3 findings, %v", n, seen)
	}
}

// A message that cannot be read spoils the runs only while it is the newest of
// its order or case.
func TestOnlyTheNewestMessageMustBeReadable(t *testing.T) {
	t.Parallel()
	c := newComparing(t)
	broken := []byte{0xff}
	c.put(c.writer, subject.Effect("acme-in", "1"), broken)
	if found, incomplete := c.run(); incomplete != reconcile.ReasonUnreadable || found != "" {
		t.Errorf("the newest of an order: found %q, incomplete %q", found, incomplete)
	}
	c.refunded("1")
	if found, incomplete := c.run(); incomplete != "" || found != "1" {
		t.Errorf("superseded: found %q, incomplete %q", found, incomplete)
	}
	c.put(c.conn, subject.Case("acme-in", "req-1"), broken)
	if _, incomplete := c.run(); incomplete != reconcile.ReasonUnreadable {
		t.Errorf("the newest of a case: incomplete %q", incomplete)
	}
	commit, err := proto.Marshal(&amendsv1.CaseCommit{Record: &amendsv1.CaseRecord{Tenant: "acme-in", CaseId: "req-1", Version: 1, UpdatedAt: timestamppb.Now(), Effect: &amendsv1.EffectResult{
		Refunds: []*amendsv1.RefundResult{{IdempotencyKey: "refund:req-1:p", PaymentId: "p", Outcome: &amendsv1.EffectOutcome{Class: amendsv1.EffectClass_EFFECT_CLASS_ACKNOWLEDGED, RefundId: "rf_1"}}},
	}, Triage: &amendsv1.Triage{OrderId: "1"}}})
	if err != nil {
		t.Fatal(err)
	}
	c.put(c.conn, subject.Case("acme-in", "req-1"), commit)
	if found, incomplete := c.run(); incomplete != "" || found != "" {
		t.Errorf("superseded: found %q, incomplete %q", found, incomplete)
	}
	// Another process, which meets all of it at once.
	c.books = map[string]*books{}
	if found, incomplete := c.run(); incomplete != "" || found != "" {
		t.Errorf("after a start: found %q, incomplete %q", found, incomplete)
	}
}

// What was taken in outlives a reconnect, and a start takes in nothing older
// than the window.
func TestBooksAreOfTheWindow(t *testing.T) {
	t.Parallel()
	c := newComparing(t)
	for n := range 20 {
		c.refunded(fmt.Sprint(n))
	}
	c.run()
	had := c.books["acme-in"]
	c.brokers.Add(1)
	if found, incomplete := c.run(); c.books["acme-in"] != had || incomplete != "" || found == "" || had.broker != 1 {
		t.Errorf("after a reconnect: found %q, incomplete %q", found, incomplete)
	}
	late := &comparer{orchestrator: c.orchestrator, books: map[string]*books{}}
	b, err := late.booksOf(t.Context(), "acme-in", time.Now().Add(time.Hour))
	if err != nil {
		t.Fatal(err)
	}
	if err := late.takeLedger(t.Context(), b); err != nil || len(b.ledger) > 1 {
		t.Errorf("took in %d entries from before the window, %v", len(b.ledger), err)
	}
	all, err := late.booksOf(t.Context(), "globex", time.Now().Add(-time.Hour))
	if err != nil || len(all.ledger) != 0 {
		t.Errorf("%v", err)
	}
}

// A run whose time is up is gone on with as well.
func TestARunCutOffByTimeIsGoneOnWith(t *testing.T) {
	t.Parallel()
	c := newComparing(t)
	b := &books{}
	var all []*amendsv1.EffectFinding
	for n := range 9 {
		all = append(all, &amendsv1.EffectFinding{FindingId: fmt.Sprint("find-", n)})
	}
	b.from = "find-6"
	out, whole := b.next(all, 9)
	if !whole || len(out) != 9 || out[0] != all[6] || out[8] != all[5] || b.from != "" {
		t.Errorf("goes on with %v, %v", out, whole)
	}
	for n := range 9 {
		c.refunded(fmt.Sprint(n))
	}
	c.run()
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	r := reconcile.NewReport(reconcile.Run{ID: "run-x", Tenant: "acme-in", At: time.Now()}, roles.Orchestrator, time.Now())
	c.compare(ended, reconcile.Run{ID: "run-x", Tenant: "acme-in", At: time.Now()}, r)
	if out := r.Now(); out.GetIncomplete() != reconcile.ReasonTimeout || len(out.GetFindings()) != 0 || c.books["acme-in"].from == "" {
		t.Errorf("report %v", out)
	}
}
