package sweep_test

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.opentelemetry.io/otel/metric/noop"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/amends-dev/amends/internal/bus"
	"github.com/amends-dev/amends/internal/bus/bustest"
	"github.com/amends-dev/amends/internal/ident"
	"github.com/amends-dev/amends/internal/money"
	"github.com/amends-dev/amends/internal/reconcile"
	"github.com/amends-dev/amends/internal/roles"
	"github.com/amends-dev/amends/internal/sandbox"
	"github.com/amends-dev/amends/internal/sandbox/sandboxtest"
	"github.com/amends-dev/amends/internal/subject"
	amendsv1 "github.com/amends-dev/amends/proto/amends/v1"
	"github.com/amends-dev/amends/services/refund-executor/effectstore"
	"github.com/amends-dev/amends/services/refund-executor/internal/refunds"
	"github.com/amends-dev/amends/services/refund-executor/ledger"
	"github.com/amends-dev/amends/services/refund-executor/sweep"
)

const (
	tenant = "acme-in"
	keyB   = "refund:req-8472:pay_8472_b"
)

// world is a broker, a provider that can be made to fail, and what a sweep
// needs of both.
type world struct {
	t        *testing.T
	broker   *bustest.Broker
	provider *sandboxtest.Sandbox
	url      string
	away     atomic.Bool
	asks     *bus.Conn
	store    *effectstore.JetStream
	runs     int
	// seen is what a sweep has of the provider.
	seen func(sweep.Provider) sweep.Provider
	last *sweep.Sweep
}

func open(t *testing.T) *world {
	t.Helper()
	w := &world{t: t, broker: bustest.Desk(t, bustest.Options{}), provider: sandboxtest.Start(t, func(c *sandbox.Config) { c.Now = time.Now })}
	to, err := url.Parse(w.provider.URL)
	if err != nil {
		t.Fatal(err)
	}
	proxy := httputil.NewSingleHostReverseProxy(to)
	front := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if w.away.Load() && strings.HasPrefix(r.URL.Path, "/v1/orders/") {
			rw.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		proxy.ServeHTTP(rw, r)
	}))
	t.Cleanup(front.Close)
	w.url, w.asks, w.store = front.URL, w.broker.Connect(roles.Console), effectstore.NewJetStream(w.broker.Connect(roles.RefundExecutor))
	w.seen = func(p sweep.Provider) sweep.Provider { return p }
	return w
}

// start runs a sweep of a process of its own.
func (w *world) start(edit ...func(*reconcile.Config)) {
	w.t.Helper()
	w.startOn(w.broker.Connect(roles.RefundExecutor), time.Now, edit...)
}

// startOn runs one on a connection, by a clock, until stop.
func (w *world) startOn(conn sweep.Bus, clock func() time.Time, edit ...func(*reconcile.Config)) (stop func()) {
	w.t.Helper()
	cfg := reconcile.Defaults()
	cfg.Tenants, cfg.Every, cfg.Poll, cfg.Grace = []string{tenant}, 0, 10*time.Millisecond, 0
	for _, e := range edit {
		e(&cfg)
	}
	if err := cfg.Validate(); err != nil {
		w.t.Fatal(err)
	}
	adapter, err := refunds.Open(refunds.Config{URL: w.url, Key: sandboxtest.RefundWriteKey, Timeout: 2 * time.Second, KeyWindow: time.Hour})
	if err != nil {
		w.t.Fatal(err)
	}
	s, err := sweep.New(cfg, sweep.Deps{
		Bus: conn, Store: w.store, Provider: w.seen(adapter), Now: clock, Log: slog.New(slog.NewTextHandler(w.t.Output(), nil)), Meter: noop.NewMeterProvider().Meter("test"),
	})
	if err != nil {
		w.t.Fatal(err)
	}
	w.last = s
	ctx, cancel := context.WithCancel(context.Background())
	var done sync.WaitGroup
	done.Go(func() {
		if err := s.Serve(ctx); err != nil {
			w.t.Error(err)
		}
	})
	stop = sync.OnceFunc(func() { cancel(); done.Wait(); adapter.Close() })
	w.t.Cleanup(stop)
	return stop
}

// ask asks for a run and gives its report.
func (w *world) ask(of string, dry bool) *amendsv1.ReconciliationReport {
	w.t.Helper()
	return w.report(of, w.request(of, dry))
}

// request asks for a run and gives its id.
func (w *world) request(of string, dry bool) string {
	w.t.Helper()
	w.runs++
	id := "run-" + strings.Repeat("x", w.runs)
	data, err := proto.Marshal(&amendsv1.ReconcileRequest{RunId: id, Tenant: of, DryRun: dry, By: "sam", At: timestamppb.Now()})
	if err != nil {
		w.t.Fatal(err)
	}
	if _, err := w.asks.Publish(w.t.Context(), subject.Reconcile(of), data); err != nil {
		w.t.Fatal(err)
	}
	return id
}

// report waits for the report of a run that is finished.
func (w *world) report(of, id string) *amendsv1.ReconciliationReport {
	w.t.Helper()
	var r *amendsv1.ReconciliationReport
	bustest.Await(w.t, "a report", func() bool { r = w.kept(of, id); return r.GetFinishedAt() != nil })
	return r
}

// kept gives what there is of a report.
func (w *world) kept(of, id string) *amendsv1.ReconciliationReport {
	r := new(amendsv1.ReconciliationReport)
	m, err := w.asks.LastDirect(w.t.Context(), roles.StreamReports, subject.Report(string(roles.RefundExecutor), of, id))
	if err == nil {
		err = proto.Unmarshal(m.Data, r)
	}
	if err != nil && !errors.Is(err, bus.ErrNotFound) {
		w.t.Error(err)
	}
	return r
}

// findings gives what was sent to cases.
func (w *world) findings() map[string]*amendsv1.EffectFinding {
	w.t.Helper()
	stream, err := w.broker.Admin().Stream(w.t.Context(), roles.StreamResults)
	if err != nil {
		w.t.Fatal(err)
	}
	out, ids := map[string]*amendsv1.EffectFinding{}, map[string]string{}
	for seq := uint64(1); seq <= stream.CachedInfo().State.LastSeq; seq++ {
		m, err := stream.GetMsg(w.t.Context(), seq)
		if err != nil {
			w.t.Fatal(err)
		}
		env, f := new(amendsv1.Envelope), new(amendsv1.EffectFinding)
		if err := proto.Unmarshal(m.Data, env); err != nil {
			w.t.Fatal(err)
		}
		if err := proto.Unmarshal(env.GetPayload(), f); err != nil {
			w.t.Fatal(err)
		}
		if id, again := ids[env.GetCaseId()+f.GetFindingId()]; again && id != env.GetMessageId() {
			w.t.Errorf("finding %s was sent as %s and as %s", f.GetFindingId(), id, env.GetMessageId())
		}
		ids[env.GetCaseId()+f.GetFindingId()] = env.GetMessageId()
		out[env.GetCaseId()] = f
	}
	return out
}

// refunded makes the founding order's refund, in the ledger and at the provider.
func (w *world) refunded(status amendsv1.RefundStatus) {
	w.t.Helper()
	l := sandboxtest.Duplicate().PlacedAt(time.Now().Add(-72 * time.Hour))
	l.Refunds = []sandbox.Refund{{RefundID: "rf_5521", PaymentID: "pay_8472_b", AmountMinor: 200000, Currency: "INR", Status: "pending", Reference: keyB, CreatedAt: time.Now().Add(-time.Hour)}}
	w.provider.Load(w.t, l)
	e := &amendsv1.EffectEntry{Tenant: tenant, OrderId: "8472", Revision: 1, Intents: []*amendsv1.EffectIntent{{
		IdempotencyKey: keyB, CaseId: "req-8472", PaymentId: "pay_8472_b", Amount: money.New(200000, "INR"), ActionSha256: strings.Repeat("ab", 32),
		ApprovalIds: []string{"apr-8472-1"}, Body: []byte(`{"reason":"duplicate_capture"}`), BegunAt: ago(time.Hour), CallBefore: ago(time.Hour), Calls: 1,
		Outcome: &amendsv1.EffectOutcome{Class: amendsv1.EffectClass_EFFECT_CLASS_ACKNOWLEDGED, RefundId: "rf_5521", ProviderStatus: status, At: ago(time.Hour)},
	}}}
	if err := ledger.Sum(e); err != nil {
		w.t.Fatal(err)
	}
	if _, err := w.store.SaveEntry(w.t.Context(), e, 0); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) entry() *amendsv1.EffectEntry {
	w.t.Helper()
	e, _, _, err := w.store.Entry(w.t.Context(), tenant, "8472")
	if err != nil {
		w.t.Fatal(err)
	}
	return e
}

func ago(d time.Duration) *timestamppb.Timestamp { return timestamppb.New(time.Now().Add(-d)) }

func (w *world) dashboard() {
	w.t.Helper()
	w.provider.Load(w.t, sandbox.Ledger{Refunds: []sandbox.Refund{{
		RefundID: "rf_dash", Tenant: tenant, PaymentID: "pay_8472_a", AmountMinor: 100, Currency: "INR", Status: "succeeded", CreatedAt: time.Now(),
	}}})
}

const pending = amendsv1.RefundStatus_REFUND_STATUS_PENDING

// A refund made in the dashboard becomes one finding for one case of its own,
// however often and by however many executors it is found (MONEY-3, B18); a dry
// run tells and changes nothing.
func TestDashboardRefundIsFoundOnce(t *testing.T) {
	t.Parallel()
	w := open(t)
	w.refunded(pending)
	w.dashboard()
	w.start()
	if r := w.ask(tenant, true); len(r.GetFindings()) != 1 || r.GetFindings()[0].GetCode() != ledger.CodeWithoutIntent || !r.GetDryRun() || r.GetIncomplete() != "" {
		t.Fatalf("dry run: %v", r)
	}
	if sent := w.findings(); len(sent) != 0 {
		t.Fatalf("a dry run sent %v", sent)
	}
	w.start()
	for range 3 {
		if r := w.ask(tenant, false); len(r.GetFindings()) != 1 || r.GetOrders() != 1 || r.GetRefunds() != 2 {
			t.Errorf("report %v", r)
		}
	}
	sent := w.findings()
	if len(sent) != 1 {
		t.Fatalf("sent %v", sent)
	}
	for caseID, f := range sent {
		if caseID != ident.FindingCase(f.GetFindingId()) || f.GetRefundId() != "rf_dash" || f.GetOrderId() != "8472" {
			t.Errorf("case %s got %v", caseID, f)
		}
	}
}

// A status that moved on is recorded and no finding; one that came to nothing
// is both, and goes to the case that made the refund. A dry run records neither.
func TestStatusesMoveOn(t *testing.T) {
	t.Parallel()
	w := open(t)
	w.refunded(pending)
	w.start()
	w.set("succeeded")
	if r := w.ask(tenant, true); r.GetUpdated() != 0 || w.entry().GetRevision() != 1 {
		t.Errorf("dry run: %v", r)
	}
	if r := w.ask(tenant, false); len(r.GetFindings()) != 0 || r.GetUpdated() != 1 {
		t.Errorf("moved on: %v", r)
	}
	w.set("failed")
	if r := w.ask(tenant, false); len(r.GetFindings()) != 1 || r.GetFindings()[0].GetCode() != ledger.CodeFailedLater || r.GetUpdated() != 1 {
		t.Errorf("failed later: %v", r)
	}
	e := w.entry()
	if o := e.GetIntents()[0].GetOutcome(); o.GetProviderStatus() != amendsv1.RefundStatus_REFUND_STATUS_FAILED || len(e.GetSightings()) != 2 || e.GetOrderSum() != nil {
		t.Errorf("the ledger holds %v", e)
	}
	if sent := w.findings(); len(sent) != 1 || sent["req-8472"].GetCode() != ledger.CodeFailedLater {
		t.Errorf("sent %v", sent)
	}
	if r := w.ask(tenant, false); len(r.GetFindings()) != 0 {
		t.Errorf("once more: %v", r)
	}
}

func (w *world) set(status string) {
	w.t.Helper()
	if err := w.provider.Admin.SetRefundStatus(w.t.Context(), "rf_5521", status); err != nil {
		w.t.Fatal(err)
	}
}

// What could not be looked at is no clean bill; a tenant that nobody answers
// for is told so.
func TestIncomplete(t *testing.T) {
	t.Parallel()
	w := open(t)
	w.refunded(pending)
	w.start()
	w.away.Store(true)
	if r := w.ask(tenant, false); r.GetIncomplete() != reconcile.ReasonProvider || len(r.GetFindings()) != 0 {
		t.Errorf("provider away: %v", r)
	}
	w.away.Store(false)
	if r := w.ask(tenant, false); r.GetIncomplete() != "" || r.GetOrders() != 1 {
		t.Errorf("provider back: %v", r)
	}
	if r := w.ask("globex", false); r.GetIncomplete() != reconcile.ReasonNotConfigured {
		t.Errorf("a tenant of nobody: %v", r)
	}
}

// With more orders than a run may compare the report says so, and the next run
// goes on where it left off.
func TestBoundedRuns(t *testing.T) {
	t.Parallel()
	w := open(t)
	w.refunded(pending)
	l := sandbox.Ledger{}
	for _, id := range []string{"1", "2"} {
		at := time.Now().Add(-time.Hour)
		l.Orders = append(l.Orders, sandbox.Order{OrderID: id, Tenant: tenant, CustomerID: "c", TotalMinor: 100, Currency: "INR", PlacedAt: at})
		l.Captures = append(l.Captures, sandbox.Capture{PaymentID: "pay_" + id, OrderID: id, Tenant: tenant, AmountMinor: 100, Currency: "INR", Status: "settled", Captured: true, Settled: true, CapturedAt: &at, SettledAt: &at})
		l.Refunds = append(l.Refunds, sandbox.Refund{RefundID: "rf_" + id, PaymentID: "pay_" + id, AmountMinor: 100, Currency: "INR", Status: "succeeded", CreatedAt: at})
	}
	w.provider.Load(t, l)
	w.start(func(c *reconcile.Config) { c.MaxOrders = 2 })
	first, second := w.ask(tenant, true), w.ask(tenant, true)
	if len(first.GetFindings()) != 2 || first.GetIncomplete() != reconcile.ReasonTooMany || len(second.GetFindings()) != 1 || second.GetFindings()[0].GetOrderId() != "1" {
		t.Errorf("first %v, second %v", first, second)
	}
}

// A run is due by the clock too, and has one name for all replicas.
func TestScheduledRuns(t *testing.T) {
	t.Parallel()
	w := open(t)
	w.refunded(pending)
	w.dashboard()
	w.start(func(c *reconcile.Config) { c.Every = time.Hour })
	bustest.Await(t, "the scheduled finding", func() bool { return len(w.findings()) == 1 })
}
