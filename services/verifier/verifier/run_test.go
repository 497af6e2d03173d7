package verifier

import (
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/amends-dev/amends/internal/bus"
	"github.com/amends-dev/amends/internal/bus/bustest"
	"github.com/amends-dev/amends/internal/evidence"
	"github.com/amends-dev/amends/internal/roles"
	"github.com/amends-dev/amends/internal/sandbox"
	"github.com/amends-dev/amends/internal/sandbox/sandboxtest"
	"github.com/amends-dev/amends/internal/taskwork/taskworktest"
	amendsv1 "github.com/amends-dev/amends/proto/amends/v1"
)

// desk runs a verifier that reads the provider at an address.
func desk(t *testing.T, address string) *taskworktest.Desk {
	t.Helper()
	key := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(key, []byte(sandboxtest.ReadKey), 0o600); err != nil {
		t.Fatal(err)
	}
	cfg := Defaults()
	cfg.Payments.URL, cfg.Payments.KeyFile, cfg.Payments.Timeout = address, key, 2*time.Second
	return taskworktest.Start(t, roles.Verifier, bustest.Options{}, func(ctx context.Context, conn *bus.Conn) error {
		return Run(ctx, cfg, Deps{Bus: conn, Log: slog.New(slog.DiscardHandler)})
	})
}

func task(d *taskworktest.Desk, w world, text string) *amendsv1.TaskAssign {
	slice, _ := w.build(text)
	slice.Draft.Claims, slice.Draft.FactsSha256 = w.facts, strings.Repeat("0", 64)
	return &amendsv1.TaskAssign{Contract: d.Contract(amendsv1.Slice_SLICE_VERIFY), Input: &amendsv1.TaskAssign_Verify{Verify: slice}}
}

func refundedLedger(status string) sandbox.Ledger {
	l := sandboxtest.Duplicate()
	l.Refunds = []sandbox.Refund{{
		RefundID: "rf_5521", PaymentID: "pay_8472_b", AmountMinor: 200000, Currency: "INR", Status: status, CreatedAt: time.Date(2026, 3, 12, 10, 20, 0, 0, time.UTC),
	}}
	return l
}

func TestVerificationOverTheBus(t *testing.T) {
	t.Parallel()
	provider := sandboxtest.Start(t)
	provider.Load(t, refundedLedger("pending"))
	d := desk(t, provider.URL)

	d.Assign(task(d, refunded(), refundedText))
	got := taskworktest.Answer[*amendsv1.Verification](d)
	if got.GetVerdict() != amendsv1.VerificationVerdict_VERIFICATION_VERDICT_VERIFIED || got.GetDraftSha256() != evidence.TextSHA256(refundedText) {
		t.Errorf("verification %v", got)
	}
	var ids []string
	for _, c := range got.GetCalls() {
		ids = append(ids, c.GetCallId()+" "+c.GetTool())
	}
	if want := "call-8472-v1 state.read, call-8472-v2 payments.list_captures, call-8472-v3 payments.get_refund"; strings.Join(ids, ", ") != want {
		t.Errorf("calls %v", ids)
	}
	if i := slices.IndexFunc(got.GetChecks(), func(c *amendsv1.ClaimCheck) bool { return c.GetWhat() == "refund_id" }); i < 0 || got.GetChecks()[i].GetRecord() != "call-8472-v3" {
		t.Errorf("checks %v", got.GetChecks())
	}

	d.Assign(task(d, refunded(), strings.Replace(refundedText, "has been requested and is pending at the bank", "was completed", 1)))
	if over := taskworktest.Answer[*amendsv1.Verification](d); over.GetVerdict() != amendsv1.VerificationVerdict_VERIFICATION_VERDICT_REJECTED || over.GetChecks()[0].GetReason() != reasonOverclaimed {
		t.Errorf("a pending refund called completed: %v", over)
	}

	clarify := world{kind: amendsv1.ReplyKind_REPLY_KIND_CLARIFY, facts: []*amendsv1.Claim{claim(amendsv1.ClaimKind_CLAIM_KIND_ASK_ORDER_NUMBER)}}
	asked := task(d, clarify, "Please confirm the order number.")
	asked.Contract.Scope.OrderId = ""
	d.Assign(asked)
	if got := taskworktest.Answer[*amendsv1.Verification](d); got.GetVerdict() != amendsv1.VerificationVerdict_VERIFICATION_VERDICT_VERIFIED || len(got.GetCalls()) != 1 {
		t.Errorf("a question: %v", got)
	}
}

// The verifier believes its own reading, not the record's copy: a refund that
// the record holds and the provider does not know is not verified.
func TestOwnReadingDecides(t *testing.T) {
	t.Parallel()
	provider := sandboxtest.Start(t)
	provider.Load(t, sandboxtest.Duplicate())
	d := desk(t, provider.URL)
	d.Assign(task(d, refunded(), refundedText))
	got := taskworktest.Answer[*amendsv1.Verification](d)
	if got.GetVerdict() != amendsv1.VerificationVerdict_VERIFICATION_VERDICT_REJECTED || !slices.ContainsFunc(got.GetChecks(), func(c *amendsv1.ClaimCheck) bool { return c.GetReason() == reasonUnknownRefund }) {
		t.Errorf("verification %v", got)
	}
}

// A refund is as large as the provider says and as the record says, or it is
// not the record's refund (TRUTH-2).
func TestARefundOfAnotherAmountIsNotTheRecords(t *testing.T) {
	t.Parallel()
	w := refunded()
	w.refunds = []*amendsv1.Refund{refundOf("rf_5521", "pay_8472_b", 100000, amendsv1.RefundStatus_REFUND_STATUS_PENDING)}
	if got := run(t, w, refundedText); !slices.Contains(got, reasonNotInRecord) {
		t.Errorf("reasons %v, want %s", got, reasonNotInRecord)
	}
}

func TestFailsClosed(t *testing.T) {
	t.Parallel()
	down := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusServiceUnavailable) }))
	t.Cleanup(down.Close)
	d := desk(t, down.URL)
	d.Assign(task(d, refunded(), refundedText))
	if e := taskworktest.Answer[*amendsv1.TaskError](d); e.GetReason() != reasonLookupFailed || !e.GetRetryable() || len(e.GetCalls()) != 3 {
		t.Errorf("provider down: %v", e)
	}
	expired := task(d, refunded(), refundedText)
	expired.Contract.PermittedTools = []string{roles.ToolReadState}
	d.Assign(expired)
	if e := taskworktest.Answer[*amendsv1.TaskError](d); e.GetReason() != reasonLookupFailed {
		t.Errorf("look-ups refused: %v", e)
	}
}

func TestConfig(t *testing.T) {
	t.Parallel()
	good := Defaults()
	good.Payments.URL, good.Payments.KeyFile = "http://127.0.0.1:1", "/key"
	if err := good.Validate(); err != nil {
		t.Error(err)
	}
	bad := good
	bad.Payments.KeyFile, bad.Workers, bad.Payments.Timeout = "", 0, 0
	if bad.Validate() == nil {
		t.Error("accepted")
	}
}
