package sweep_test

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/amends-dev/amends/internal/bus"
	"github.com/amends-dev/amends/internal/bus/bustest"
	"github.com/amends-dev/amends/internal/ident"
	"github.com/amends-dev/amends/internal/money"
	"github.com/amends-dev/amends/internal/reconcile"
	"github.com/amends-dev/amends/internal/roles"
	amendsv1 "github.com/amends-dev/amends/proto/amends/v1"
	"github.com/amends-dev/amends/services/refund-executor/ledger"
	"github.com/amends-dev/amends/services/refund-executor/provider"
	"github.com/amends-dev/amends/services/refund-executor/sweep"
)

// watched tells of each look at the requests that found no new one: whatever was
// asked is done.
type watched struct {
	sweep.Bus
	idle chan struct{}
}

func (b *watched) NextAfter(ctx context.Context, stream, filter string, seq uint64) (bus.Stored, error) {
	m, err := b.Bus.NextAfter(ctx, stream, filter, seq)
	if stream == roles.StreamControl && errors.Is(err, bus.ErrNotFound) {
		select {
		case b.idle <- struct{}{}:
		default:
		}
	}
	return m, err
}

// A second executor comes to the same request when the first has recorded the
// status already, and finds nothing: the report stays no clean bill.
func TestASecondExecutorDoesNotClearTheReport(t *testing.T) {
	t.Parallel()
	w := open(t)
	w.refunded(pending)
	w.set("failed")
	w.start()
	r := w.ask(tenant, false)
	if len(r.GetFindings()) != 1 || r.GetUpdated() != 1 {
		t.Fatalf("the first: %v", r)
	}
	second := &watched{w.broker.Connect(roles.RefundExecutor), make(chan struct{}, 1)}
	w.startOn(second, time.Now)
	<-second.idle
	again := w.report(tenant, r.GetRunId())
	if len(again.GetFindings()) != 1 || again.GetFindings()[0].GetCode() != ledger.CodeFailedLater || again.GetUpdated() != 1 {
		t.Errorf("the second made of it %v", again)
	}
}

// dies is a connection whose process ends when it is about to write a finished
// report.
type dies struct {
	sweep.Bus
	ended chan struct{}
}

func (b *dies) Publish(ctx context.Context, subj string, data []byte, opts ...bus.PublishOption) (uint64, error) {
	r := new(amendsv1.ReconciliationReport)
	if strings.HasPrefix(subj, "report.") && proto.Unmarshal(data, r) == nil && r.GetFinishedAt() != nil {
		close(b.ended)
		<-ctx.Done()
		return 0, ctx.Err()
	}
	return b.Bus.Publish(ctx, subj, data, opts...)
}

// The process ends after it recorded the status and before it wrote the report:
// who does the run again has the finding in it all the same.
func TestACrashBeforeTheReportLosesNoFinding(t *testing.T) {
	t.Parallel()
	w := open(t)
	w.refunded(pending)
	w.set("failed")
	first := &dies{w.broker.Connect(roles.RefundExecutor), make(chan struct{})}
	stop := w.startOn(first, time.Now)
	id := w.request(tenant, false)
	<-first.ended
	stop()
	if status := w.entry().GetIntents()[0].GetOutcome().GetProviderStatus(); status != amendsv1.RefundStatus_REFUND_STATUS_FAILED {
		t.Fatalf("the status is %s", status)
	}
	if r := w.kept(tenant, id); r.GetFinishedAt() != nil || len(r.GetFindings()) != 1 {
		t.Errorf("after the crash: %v", r)
	}
	w.start()
	if r := w.report(tenant, id); len(r.GetFindings()) != 1 || r.GetFindings()[0].GetCode() != ledger.CodeFailedLater {
		t.Errorf("done again: %v", r)
	}
	if sent := w.findings(); len(sent) != 1 || sent["req-8472"] == nil {
		t.Errorf("sent %v", sent)
	}
}

// keepsNothing is a connection on which no report can be written.
type keepsNothing struct{ sweep.Bus }

func (b keepsNothing) LastDirect(context.Context, string, string) (bus.Stored, error) {
	return bus.Stored{}, bus.ErrUnavailable
}

// A status is not recorded while the finding it gives rise to is in no report.
func TestNoStatusIsRecordedWithoutAReport(t *testing.T) {
	t.Parallel()
	w := open(t)
	w.refunded(pending)
	w.set("failed")
	broken := &watched{keepsNothing{w.broker.Connect(roles.RefundExecutor)}, make(chan struct{})} // told of only when somebody waits
	stop := w.startOn(broken, time.Now)
	id := w.request(tenant, false)
	bustest.Await(t, "the finding", func() bool { return len(w.findings()) == 1 })
	<-broken.idle
	stop()
	if w.entry().GetRevision() != 1 {
		t.Errorf("recorded %v", w.entry())
	}
	w.start()
	if r := w.report(tenant, id); len(r.GetFindings()) != 1 {
		t.Errorf("done again: %v", r)
	}
}

// An executor whose clock is behind judges ages by the broker's, finds what is
// there, and does not vouch for the rest.
func TestAClockBehindIsNoCleanBill(t *testing.T) {
	t.Parallel()
	w := open(t)
	w.refunded(pending)
	w.startOn(w.broker.Connect(roles.RefundExecutor), func() time.Time { return time.Now().Add(-3 * time.Hour) }, func(c *reconcile.Config) { c.Grace = 5 * time.Minute })
	if r := w.ask(tenant, false); r.GetIncomplete() != reconcile.ReasonClock || r.GetOrders() != 1 || time.Since(r.GetStartedAt().AsTime()) > time.Hour {
		t.Errorf("report %v", r)
	}
}

// lists is a provider whose list has more refunds.
type lists struct {
	sweep.Provider
	more []provider.ListedRefund
}

func (l lists) ListRefunds(ctx context.Context, tenant string, since time.Time, cursor string) (provider.RefundPage, error) {
	page, err := l.Provider.ListRefunds(ctx, tenant, since, cursor)
	page.Refunds = append(page.Refunds, l.more...)
	return page, err
}

// A refund on an order whose id can be in no subject is a finding like any
// other, and spoils no run.
func TestAnOrderIDThatIsNoToken(t *testing.T) {
	t.Parallel()
	w := open(t)
	w.refunded(pending)
	w.seen = func(p sweep.Provider) sweep.Provider {
		return lists{p, []provider.ListedRefund{{OrderID: "A.1", Refund: &amendsv1.Refund{
			RefundId: "rf_x", PaymentId: "pay_x", Amount: money.New(100, "INR"), Status: amendsv1.RefundStatus_REFUND_STATUS_SUCCEEDED,
		}}}}
	}
	w.start()
	for range 2 {
		r := w.ask(tenant, false)
		if len(r.GetFindings()) != 1 || r.GetIncomplete() != "" || r.GetOrders() != 2 || r.GetRefunds() != 2 {
			t.Fatalf("report %v", r)
		}
		f := r.GetFindings()[0]
		sent := w.findings()
		if f.GetCode() != ledger.CodeWithoutIntent || f.GetOrderId() != "A.1" || len(sent) != 1 || sent[ident.FindingCase(f.GetFindingId())].GetOrderId() != "A.1" {
			t.Errorf("found %v, sent %v", f, sent)
		}
	}
}

// counted counts the reads of the ledger's stream.
type counted struct {
	sweep.Bus
	reads atomic.Int64
}

func (b *counted) NextAfter(ctx context.Context, stream, filter string, seq uint64) (bus.Stored, error) {
	if stream == roles.StreamEffects {
		b.reads.Add(1)
	}
	return b.Bus.NextAfter(ctx, stream, filter, seq)
}

// After a reconnect the ledger is not walked from its beginning: its messages
// are where they were.
func TestTheIndexOutlivesAReconnect(t *testing.T) {
	t.Parallel()
	w := open(t)
	w.refunded(pending)
	for n := range 30 {
		e := &amendsv1.EffectEntry{Tenant: tenant, OrderId: "order-" + strconv.Itoa(n), Revision: 1}
		if _, err := w.store.SaveEntry(t.Context(), e, 0); err != nil {
			t.Fatal(err)
		}
	}
	conn := &counted{Bus: w.broker.Connect(roles.RefundExecutor)}
	w.startOn(conn, time.Now)
	if r := w.ask(tenant, true); r.GetOrders() != 31 {
		t.Fatalf("report %v", r)
	}
	first := conn.reads.Load()
	w.last.Forget()
	if r := w.ask(tenant, true); r.GetOrders() != 31 || r.GetIncomplete() != "" {
		t.Errorf("report %v", r)
	}
	if again := conn.reads.Load() - first; first < 31 || again > 2 {
		t.Errorf("the first run read %d messages of the ledger, the next %d", first, again)
	}
}
