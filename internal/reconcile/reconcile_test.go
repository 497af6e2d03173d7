package reconcile_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/amends-dev/amends/internal/bus"
	"github.com/amends-dev/amends/internal/bus/bustest"
	"github.com/amends-dev/amends/internal/reconcile"
	"github.com/amends-dev/amends/internal/roles"
	"github.com/amends-dev/amends/internal/subject"
	amendsv1 "github.com/amends-dev/amends/proto/amends/v1"
)

func TestConfigIsChecked(t *testing.T) {
	t.Parallel()
	good := reconcile.Defaults()
	good.Tenants = []string{"acme-in", "globex"}
	if err := good.Validate(); err != nil {
		t.Fatal(err)
	}
	for want, change := range map[string]func(*reconcile.Config){
		"reconcile.tenants: not a valid":                     func(c *reconcile.Config) { c.Tenants = []string{"acme.>"} },
		"reconcile.tenants: not a valid identifier: \"all\"": func(c *reconcile.Config) { c.Tenants = []string{"all"} },
		"reconcile.tenants: acme-in is listed":               func(c *reconcile.Config) { c.Tenants = []string{"acme-in", "acme-in"} },
		"reconcile.every: want at least 1m":                  func(c *reconcile.Config) { c.Every = time.Second },
		"reconcile.every: want at most 168h":                 func(c *reconcile.Config) { c.Every = 1000 * time.Hour },
		"reconcile.window: 1m0s":                             func(c *reconcile.Config) { c.Window = time.Minute },
		"reconcile.grace: -1ns":                              func(c *reconcile.Config) { c.Grace = -1 },
		"reconcile.in_doubt: 1m0s, want 5m0s":                func(c *reconcile.Config) { c.InDoubt = time.Minute },
		"reconcile.poll: 0s":                                 func(c *reconcile.Config) { c.Poll = 0 },
		"reconcile.max_orders: 0, want 1 to 10000":           func(c *reconcile.Config) { c.MaxOrders = 0 },
	} {
		c := good
		change(&c)
		if err := c.Validate(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

func finding(n int) *amendsv1.EffectFinding {
	return &amendsv1.EffectFinding{
		FindingId: fmt.Sprintf("find-%d", n), Code: "refund_without_intent", Tenant: "acme-in", OrderId: "8472", SeenAt: timestamppb.New(time.Unix(1, 0)),
		Records: []*amendsv1.FindingRecord{{Source: "provider", Kind: "refund", Id: strings.Repeat("r", 160)}},
	}
}

// A finding has one message, whenever it is found again, and one case.
func TestFindingsHaveOneMessage(t *testing.T) {
	t.Parallel()
	a, b := finding(1), finding(1)
	b.SeenAt = timestamppb.New(time.Unix(1e9, 0))
	id := func(f *amendsv1.EffectFinding) string {
		return reconcile.Envelope(f, reconcile.CaseOf(f), roles.RefundExecutor).GetMessageId()
	}
	if id(a) != id(b) || id(a) == id(finding(2)) || reconcile.CaseOf(a) != "fnd-1" {
		t.Errorf("%s, %s, %s", id(a), id(b), reconcile.CaseOf(a))
	}
	b.AboutCaseId = "req-8472"
	if reconcile.CaseOf(b) != "req-8472" {
		t.Errorf("case %s", reconcile.CaseOf(b))
	}
}

// served is a server that compares by a function, on the executor's grants.
func served(t *testing.T, b *bustest.Broker, clock func() time.Time, compare func(reconcile.Run, *reconcile.Report)) *bus.Conn {
	t.Helper()
	cfg := reconcile.Defaults()
	cfg.Tenants, cfg.Every, cfg.Poll = []string{"acme-in"}, time.Hour, 5*time.Millisecond
	s := reconcile.New(reconcile.Options{
		Config: cfg, Service: roles.RefundExecutor, Bus: b.Connect(roles.RefundExecutor), Now: clock,
		Compare: func(_ context.Context, run reconcile.Run, r *reconcile.Report) { compare(run, r) },
	})
	running, stop := context.WithCancel(context.Background())
	var done sync.WaitGroup
	done.Go(func() {
		if err := s.Serve(running); err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(func() { stop(); done.Wait() })
	return b.Connect(roles.Console)
}

func request(t *testing.T, c *bus.Conn, run, tenant string) {
	t.Helper()
	data, err := proto.Marshal(&amendsv1.ReconcileRequest{RunId: run, Tenant: tenant, By: "sam", At: timestamppb.Now()})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Publish(t.Context(), subject.Reconcile("acme-in"), data); err != nil {
		t.Fatal(err)
	}
}

func report(t *testing.T, c *bus.Conn, run string) *amendsv1.ReconciliationReport {
	t.Helper()
	r := new(amendsv1.ReconciliationReport)
	bustest.Await(t, "the report of "+run, func() bool {
		m, err := c.LastDirect(t.Context(), roles.StreamReports, subject.Report(string(roles.RefundExecutor), "acme-in", run))
		return err == nil && proto.Unmarshal(m.Data, r) == nil
	})
	return r
}

// A report stays within a message, whatever was found, and counts the rest.
func TestReportsAreBounded(t *testing.T) {
	t.Parallel()
	at := time.Now().Truncate(time.Hour).Add(30 * time.Minute)
	b := bustest.Desk(t, bustest.Options{})
	c := served(t, b, func() time.Time { return at }, func(_ reconcile.Run, r *reconcile.Report) {
		for n := range 2000 {
			r.Found(finding(n % 1500))
		}
		r.Incomplete("first")
		r.Incomplete("second")
	})
	r := report(t, c, fmt.Sprintf("scheduled-%d", at.Truncate(time.Hour).Unix()))
	if len(r.GetFindings()) != reconcile.MaxFindings || r.GetOmitted() != 1000 || r.GetIncomplete() != "first" || proto.Size(r) > 512<<10 {
		t.Errorf("%d findings, %d omitted, %s, %d bytes", len(r.GetFindings()), r.GetOmitted(), r.GetIncomplete(), proto.Size(r))
	}
}

// A request is carried out once, one that is not understood never, and one that
// came long ago not any more.
func TestRequests(t *testing.T) {
	t.Parallel()
	b := bustest.Desk(t, bustest.Options{})
	runs := make(chan string, 16)
	c := served(t, b, time.Now, func(run reconcile.Run, _ *reconcile.Report) { runs <- run.ID })
	if first := <-runs; !strings.HasPrefix(first, "scheduled-") {
		t.Errorf("the first run is %s", first)
	}
	request(t, c, "run-1", "globex") // on another tenant's subject
	request(t, c, "run-2", "acme-in")
	if got := <-runs; got != "run-2" {
		t.Errorf("run %s", got)
	}
	report(t, c, "run-2")
	// Another process, whose clock is an hour ahead, finds the request.
	late := make(chan string, 16)
	served(t, b, func() time.Time { return time.Now().Add(time.Hour) }, func(run reconcile.Run, _ *reconcile.Report) { late <- run.ID })
	if first := <-late; !strings.HasPrefix(first, "scheduled-") {
		t.Errorf("an old request was carried out as %s", first)
	}
}
