package investigator

import (
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/amends-dev/amends/internal/bus"
	"github.com/amends-dev/amends/internal/bus/bustest"
	"github.com/amends-dev/amends/internal/money"
	"github.com/amends-dev/amends/internal/payments"
	"github.com/amends-dev/amends/internal/roles"
	"github.com/amends-dev/amends/internal/sandbox"
	"github.com/amends-dev/amends/internal/sandbox/sandboxtest"
	"github.com/amends-dev/amends/internal/taskwork"
	"github.com/amends-dev/amends/internal/taskwork/taskworktest"
	amendsv1 "github.com/amends-dev/amends/proto/amends/v1"
)

// desk runs an investigator that reads the provider at an address.
func desk(t *testing.T, address string) *taskworktest.Desk {
	t.Helper()
	key := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(key, []byte(sandboxtest.ReadKey+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	cfg := Defaults()
	cfg.Payments.URL, cfg.Payments.KeyFile, cfg.Payments.Timeout = address, key, 2*time.Second
	return taskworktest.Start(t, roles.PaymentInvestigator, bustest.Options{}, func(ctx context.Context, conn *bus.Conn) error {
		return Run(ctx, cfg, Deps{Bus: conn, Log: slog.New(slog.DiscardHandler)})
	})
}

func task(d *taskworktest.Desk, order string) *amendsv1.TaskAssign {
	a := &amendsv1.TaskAssign{
		Contract: d.Contract(amendsv1.Slice_SLICE_PAYMENT),
		Input:    &amendsv1.TaskAssign_Payment{Payment: &amendsv1.PaymentSlice{OrderId: order}},
	}
	a.Contract.Scope.OrderId = order
	return a
}

func TestEvidenceOverTheBus(t *testing.T) {
	t.Parallel()
	provider := sandboxtest.Start(t)
	ledger := sandboxtest.Duplicate()
	ledger.Refunds = []sandbox.Refund{{
		RefundID: "rf_4410", PaymentID: "pay_8472_a", AmountMinor: 200000, Currency: "INR", Status: "succeeded", CreatedAt: time.Date(2026, 3, 11, 8, 0, 0, 0, time.UTC),
	}}
	provider.Load(t, ledger)
	d := desk(t, provider.URL)

	d.Assign(task(d, "8472"))
	got := taskworktest.Answer[*amendsv1.PaymentEvidence](d)
	if !got.GetComplete() || got.GetOrder().GetTotal().GetMinor() != 200000 || len(got.GetCaptures()) != 2 || len(got.GetRefunds()) != 1 || got.GetUsage().GetActions() != 3 {
		t.Errorf("evidence %v", got)
	}
	var ids []string
	for _, c := range got.GetCalls() {
		ids = append(ids, c.GetCallId()+" "+c.GetTool())
		if c.GetOutcome() != amendsv1.LookupOutcome_LOOKUP_OUTCOME_SUPPORTED || c.GetResultSha256() == "" {
			t.Errorf("call %v", c)
		}
	}
	if want := "call-8472-p1 payments.list_captures, call-8472-p2 payments.list_refunds, call-8472-p3 payments.get_settlement"; strings.Join(ids, ", ") != want {
		t.Errorf("calls %v", ids)
	}

	d.Assign(task(d, "9999"))
	unknown := taskworktest.Answer[*amendsv1.PaymentEvidence](d)
	if unknown.GetComplete() || unknown.GetOrder() != nil || unknown.GetCalls()[0].GetReason() != "not_found" || unknown.GetCalls()[0].GetOutcome() != amendsv1.LookupOutcome_LOOKUP_OUTCOME_INCOMPLETE {
		t.Errorf("an unknown order: %v", unknown)
	}

	outside := task(d, "8472")
	outside.GetPayment().OrderId = "7310"
	d.Assign(outside)
	if e := taskworktest.Answer[*amendsv1.TaskError](d); e.GetReason() != taskwork.ReasonScopeDenied || len(e.GetCalls()) != 0 {
		t.Errorf("an order outside the scope: %v", e)
	}
}

// One look-up fails: the first attempt is tried again, the next one reports
// what it has as incomplete.
func TestProviderFailures(t *testing.T) {
	t.Parallel()
	provider := sandboxtest.Start(t)
	provider.Load(t, sandboxtest.Duplicate())
	front := httptest.NewServer(broken(t, provider.URL))
	t.Cleanup(front.Close)
	d := desk(t, front.URL)

	d.Assign(task(d, "8472"))
	if e := taskworktest.Answer[*amendsv1.TaskError](d); e.GetReason() != reasonUnavailable || !e.GetRetryable() || len(e.GetCalls()) != 3 || e.GetUsage().GetActions() != 3 {
		t.Errorf("first attempt: %v", e)
	}
	d.Assign(task(d, "8472"), func(e *amendsv1.Envelope) { e.Attempt = 2 })
	got := taskworktest.Answer[*amendsv1.PaymentEvidence](d)
	if got.GetComplete() || len(got.GetCaptures()) != 2 || got.GetCalls()[2].GetCallId() != "call-8472-p3-2" || got.GetCalls()[2].GetOutcome() != amendsv1.LookupOutcome_LOOKUP_OUTCOME_FAILED {
		t.Errorf("second attempt: %v", got)
	}
	d.Assign(task(d, "down"), func(e *amendsv1.Envelope) { e.Attempt = 3 })
	if e := taskworktest.Answer[*amendsv1.TaskError](d); e.GetReason() != reasonUnavailable || !e.GetRetryable() {
		t.Errorf("nothing answers: %v", e)
	}
}

// broken is the provider with its settlement look-up, and the order "down",
// out of order.
func broken(t *testing.T, address string) http.Handler {
	t.Helper()
	to, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	whole := httputil.NewSingleHostReverseProxy(to)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/settlement") || strings.Contains(r.URL.Path, "/down/") {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		whole.ServeHTTP(w, r)
	})
}

func at(hour int) *timestamppb.Timestamp {
	return timestamppb.New(time.Date(2026, 3, 11, hour, 0, 0, 0, time.UTC))
}

func TestSettlementContradictionsStayVisible(t *testing.T) {
	t.Parallel()
	const (
		settled    = amendsv1.CaptureStatus_CAPTURE_STATUS_SETTLED
		captured   = amendsv1.CaptureStatus_CAPTURE_STATUS_CAPTURED
		authorized = amendsv1.CaptureStatus_CAPTURE_STATUS_AUTHORIZED
	)
	for name, c := range map[string]struct {
		status  amendsv1.CaptureStatus
		settled bool
		at      *timestamppb.Timestamp
		look    []payments.PaymentSettlement
		want    bool
	}{
		"both settled":                      {settled, true, at(2), []payments.PaymentSettlement{{PaymentID: "p", Settled: true, SettledAt: at(2)}}, true},
		"both not":                          {captured, false, nil, []payments.PaymentSettlement{{PaymentID: "p"}}, false},
		"not listed and not settled":        {authorized, false, nil, nil, false},
		"listed settled, look-up no":        {settled, true, at(2), []payments.PaymentSettlement{{PaymentID: "p"}}, false},
		"listed settled, not there":         {settled, true, at(2), nil, false},
		"listed captured, look-up settled":  {captured, false, nil, []payments.PaymentSettlement{{PaymentID: "p", Settled: true, SettledAt: at(2)}}, true},
		"two times of settlement":           {settled, true, at(2), []payments.PaymentSettlement{{PaymentID: "p", Settled: true, SettledAt: at(3)}}, false},
		"listing contradicts itself":        {settled, false, nil, []payments.PaymentSettlement{{PaymentID: "p"}}, false},
		"listing contradicts, look-up says": {settled, false, nil, []payments.PaymentSettlement{{PaymentID: "p", Settled: true, SettledAt: at(2)}}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			capture := &amendsv1.Capture{PaymentId: "p", Amount: money.New(1, "INR"), Status: c.status, Settled: c.settled, SettledAt: c.at}
			settle([]*amendsv1.Capture{capture}, c.look)
			if capture.GetSettled() != c.want || capture.GetStatus() != c.status {
				t.Errorf("status %s settled %v, want settled %v", capture.GetStatus(), capture.GetSettled(), c.want)
			}
		})
	}
}

func TestMoreThanARecordHoldsIsIncomplete(t *testing.T) {
	t.Parallel()
	var f found
	f.captures = &payments.Captures{Order: &amendsv1.Order{OrderId: "8472"}}
	f.refunds, f.settlement = &payments.Refunds{}, &payments.Settlement{}
	for range 65 {
		f.captures.Captures = append(f.captures.Captures, &amendsv1.Capture{})
	}
	ok := amendsv1.LookupOutcome_LOOKUP_OUTCOME_SUPPORTED
	calls := []*amendsv1.ToolCall{{Tool: roles.ToolListCaptures, Outcome: ok}, {Tool: roles.ToolListRefunds, Outcome: ok}, {Tool: roles.ToolGetSettlement, Outcome: ok}}
	if e := evidence(f, calls, nil); e.GetComplete() || len(e.GetCaptures()) != 64 || calls[0].GetReason() != reasonTooMany {
		t.Errorf("complete %v, %d captures, reason %q", e.GetComplete(), len(e.GetCaptures()), calls[0].GetReason())
	}
	f.captures.Captures = f.captures.Captures[:64]
	calls[0].Outcome = ok
	if e := evidence(f, calls, nil); !e.GetComplete() {
		t.Error("64 captures are incomplete")
	}
}

func TestConfig(t *testing.T) {
	t.Parallel()
	good := Defaults()
	good.Payments.URL, good.Payments.KeyFile = "http://127.0.0.1:1", "/key"
	if err := good.Validate(); err != nil {
		t.Error(err)
	}
	for name, edit := range map[string]func(*Config){
		"url":     func(c *Config) { c.Payments.URL = "ftp://x" },
		"key":     func(c *Config) { c.Payments.KeyFile = "" },
		"timeout": func(c *Config) { c.Payments.Timeout = time.Minute },
		"workers": func(c *Config) { c.Workers = 0 },
	} {
		bad := good
		edit(&bad)
		if bad.Validate() == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}
