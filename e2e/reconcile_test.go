package e2e_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/amends-dev/amends/internal/allinone"
	"github.com/amends-dev/amends/internal/casework"
	"github.com/amends-dev/amends/internal/deskapi"
	"github.com/amends-dev/amends/internal/ident"
	"github.com/amends-dev/amends/internal/money"
	"github.com/amends-dev/amends/internal/reconcile"
	"github.com/amends-dev/amends/internal/sandbox"
	"github.com/amends-dev/amends/internal/subject"
	amendsv1 "github.com/amends-dev/amends/proto/amends/v1"
)

// comparing is a desk in which what came to be within the grace may be under
// way, with two orchestrators that compare the same.
func comparing(t *testing.T, grace time.Duration) *world {
	t.Helper()
	return start(t, allinone.Options{NoSync: true, Orchestrators: 2, Reconcile: func(c *reconcile.Config) { c.Grace, c.Poll = grace, 20*time.Millisecond }})
}

// reconcile asks for a run and waits for both reports.
func (w *world) reconcile(dry bool) deskapi.Reconciliation {
	w.t.Helper()
	asked, err := w.staff.Reconcile(w.ctx, deskapi.ReconciliationRequest{Tenant: allinone.Tenant, DryRun: dry})
	if err != nil {
		w.t.Fatal(err)
	}
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for range tick.C { // the context bounds it
		run, err := w.staff.Reconciliation(w.ctx, allinone.Tenant, asked.RunID)
		if w.ctx.Err() != nil {
			w.t.Fatalf("no report: %+v, %v", run, err)
		}
		if err == nil && run.Status == deskapi.RunComplete {
			return run
		}
	}
	return deskapi.Reconciliation{}
}

// codesOf gives the codes a run found, sorted.
func codesOf(run deskapi.Reconciliation) []string {
	var out []string
	for _, r := range run.Reports {
		for _, f := range r.Findings {
			out = append(out, f.Code)
		}
		if r.Incomplete != "" {
			out = append(out, r.Service+" is incomplete: "+r.Incomplete)
		}
	}
	slices.Sort(out)
	return out
}

// recordOf waits until the newest record of a case satisfies cond.
func (w *world) recordOf(id string, cond func(*amendsv1.CaseRecord) bool) *amendsv1.CaseRecord {
	w.t.Helper()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	var last *amendsv1.CaseRecord
	for range tick.C { // the context bounds it
		if w.ctx.Err() != nil {
			w.t.Fatalf("case %s is %v", id, last)
		}
		if log := w.logs()[id]; len(log) > 0 {
			if last = log[len(log)-1].GetRecord(); cond(last) {
				return last
			}
		}
	}
	return nil
}

func foundAs(code string) func(*amendsv1.CaseRecord) bool {
	return func(rec *amendsv1.CaseRecord) bool {
		return slices.ContainsFunc(rec.GetFindings(), func(f *amendsv1.EffectFinding) bool { return f.GetCode() == code })
	}
}

// publish writes into a stream as nobody of the desk can: what a store that
// lost something holds afterwards.
func (w *world) publish(subj string, m proto.Message) {
	w.t.Helper()
	js, done, err := w.Inspect()
	if err != nil {
		w.t.Fatal(err)
	}
	defer done()
	data, err := proto.Marshal(m)
	if err != nil {
		w.t.Fatal(err)
	}
	if _, err := js.Publish(w.ctx, subj, data); err != nil {
		w.t.Fatal(err)
	}
}

// After twenty cases that went well all agrees (MONEY-3).
func TestReconcileAgrees(t *testing.T) {
	t.Parallel()
	const n = 20
	w := comparing(t, 0)
	w.orders(n, true)
	w.each(n, 8, func(i int) error {
		if err := w.post(i); err != nil {
			return err
		}
		_, err := w.finish(i, closed)
		return err
	})
	run := w.reconcile(false)
	if !run.Agrees || len(run.Reports) != 2 || run.Reports[0].Orders != n || run.Reports[0].Refunds != n || run.Reports[1].Cases != n {
		t.Errorf("the run is %+v", run)
	}
	w.sound(n, amendsv1.CaseState_CASE_STATE_VERIFIED_CLOSED)
	w.noDeadLetters()
}

// A refund made in the provider's dashboard becomes one case for people,
// however often it is found; a dry run tells of it and opens none (MONEY-3, B18).
func TestDashboardRefundBecomesOneCase(t *testing.T) {
	t.Parallel()
	w := comparing(t, 0)
	w.orders(1, true)
	if err := w.Provider.Load(w.ctx, sandbox.Ledger{Refunds: []sandbox.Refund{{
		RefundID: "rf_dash", Tenant: allinone.Tenant, PaymentID: "pay_8472_b", AmountMinor: 5000, Currency: "INR", Status: "succeeded", CreatedAt: time.Now(),
	}}}); err != nil {
		t.Fatal(err)
	}
	want := []string{"refund_without_intent"}
	if run := w.reconcile(true); !slices.Equal(codesOf(run), want) || !run.DryRun || run.Agrees {
		t.Fatalf("the dry run is %+v", run)
	}
	if cases := w.logs(); len(cases) != 0 {
		t.Fatalf("a dry run opened %d cases", len(cases))
	}
	var id string
	for range 3 {
		run := w.reconcile(false)
		if !slices.Equal(codesOf(run), want) {
			t.Fatalf("the run is %+v", run)
		}
		id = run.Reports[0].Findings[0].CaseID
		w.recordOf(id, foundAs("refund_without_intent"))
	}
	rec := w.recordOf(id, func(*amendsv1.CaseRecord) bool { return true })
	if rec.GetState() != amendsv1.CaseState_CASE_STATE_HUMAN_HANDOFF || rec.GetCustody().GetQueue() != casework.QueueReconciliation || len(rec.GetFindings()) != 1 || rec.GetCustomerId() != ident.Desk {
		t.Errorf("the case is %v", rec)
	}
	w.queuedForReconciliation(id)
	w.sound(1, amendsv1.CaseState_CASE_STATE_HUMAN_HANDOFF)
	w.noDeadLetters()
}

// queuedForReconciliation waits until people see exactly this case in the queue.
func (w *world) queuedForReconciliation(id string) {
	w.t.Helper()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for range tick.C { // the context bounds it
		page, err := w.staff.Queue(w.ctx, allinone.Tenant, casework.QueueReconciliation, "", 0)
		if w.ctx.Err() != nil {
			w.t.Fatalf("LIVE-1: the queue holds %+v, %v", page, err)
		}
		if len(page.Cases) == 1 && page.Cases[0].CaseID == id {
			return
		}
	}
}

// A refund that failed later and of which no webhook told goes to people with
// the case that made it, once the executor has read it, and the customer hears
// (MONEY-3, TRUTH-2).
func TestFailedLaterWithoutWebhook(t *testing.T) {
	t.Parallel()
	w := comparing(t, time.Minute)
	w.orders(1, true)
	if err := w.post(0); err != nil {
		t.Fatal(err)
	}
	if _, err := w.finish(0, closed); err != nil {
		t.Fatal(err)
	}
	if err := w.SetFaults(sandbox.Faults{{Kind: sandbox.WebhookLost}}); err != nil {
		t.Fatal(err)
	}
	if err := w.Provider.SetRefundStatus(w.ctx, w.refunds()["pay_8472_b"].RefundID, "failed"); err != nil {
		t.Fatal(err)
	}
	if run := w.reconcile(true); !slices.Equal(codesOf(run), []string{"refund_failed_later"}) || run.Reports[0].Updated != 0 {
		t.Fatalf("the dry run is %+v", run)
	}
	if run := w.reconcile(false); !slices.Equal(codesOf(run), []string{"refund_failed_later"}) {
		t.Fatalf("the run is %+v", run)
	}
	w.recordOf(caseID(0), foundAs("refund_failed_later"))
	v := w.until(caseID(0), 0, func(v deskapi.View) bool { return v.State == "HUMAN_HANDOFF" && len(v.Replies) == 2 })
	if said := v.Replies[1].Text; !strings.Contains(said, "passed to a specialist") {
		t.Errorf("the customer was told %q", said)
	}
	if c := w.recordOf(caseID(0), foundAs("refund_failed_later")).GetCustody(); c.GetQueue() != casework.QueueHandoff || c.GetReason() != "refund_failed_later" {
		t.Errorf("custody is %v", c)
	}
	if run := w.reconcile(false); !run.Agrees {
		t.Errorf("the next run is %+v", run)
	}
	w.noDeadLetters()
}

// A ledger that lost what it knew of a refund, and a case that is gone, are both
// found, from both sides (B51).
func TestStoreLossIsFound(t *testing.T) {
	t.Parallel()
	w := comparing(t, 0)
	w.orders(2, true)
	if err := w.post(0); err != nil {
		t.Fatal(err)
	}
	if _, err := w.finish(0, closed); err != nil {
		t.Fatal(err)
	}
	if run := w.reconcile(false); !run.Agrees {
		t.Fatalf("before the loss: %+v", run)
	}
	refund := w.refunds()["pay_8472_b"]

	// The ledger's entry is as it was before it was begun.
	w.publish(subject.Effect(allinone.Tenant, orderID(0)), &amendsv1.EffectEntry{Tenant: allinone.Tenant, OrderId: orderID(0), Revision: 1})
	// The ledger and the provider have a refund of a case nobody has.
	const lostKey = "refund:req-lost:pay_8473_b"
	if err := w.Provider.Load(w.ctx, sandbox.Ledger{Refunds: []sandbox.Refund{{
		RefundID: "rf_lost", Tenant: allinone.Tenant, PaymentID: "pay_8473_b", AmountMinor: 200000, Currency: "INR", Status: "succeeded", Reference: lostKey, CreatedAt: time.Now(),
	}}}); err != nil {
		t.Fatal(err)
	}
	amount, at := money.New(200000, "INR"), timestamppb.New(time.Now().Add(-time.Minute))
	w.publish(subject.Effect(allinone.Tenant, orderID(1)), &amendsv1.EffectEntry{
		Tenant: allinone.Tenant, OrderId: orderID(1), Revision: 1, OrderSum: amount, Sums: []*amendsv1.PaymentSum{{PaymentId: "pay_8473_b", Refunded: amount}},
		Intents: []*amendsv1.EffectIntent{{
			IdempotencyKey: lostKey, CaseId: "req-lost", PaymentId: "pay_8473_b", Amount: amount, ActionSha256: strings.Repeat("ab", 32), ApprovalIds: []string{"apr-lost-1"},
			Body: []byte(`{"reason":"duplicate_capture"}`), BegunAt: at, CallBefore: at, Calls: 1,
			Outcome: &amendsv1.EffectOutcome{Class: amendsv1.EffectClass_EFFECT_CLASS_ACKNOWLEDGED, RefundId: "rf_lost", ProviderStatus: amendsv1.RefundStatus_REFUND_STATUS_SUCCEEDED, At: at},
		}},
	})

	want := []string{casework.CodeCaseWithoutRefund, "refund_unknown_reference", casework.CodeRefundWithoutCase}
	var opened []string
	for range 2 {
		run := w.reconcile(false)
		if !slices.Equal(codesOf(run), want) {
			t.Fatalf("the run is %+v", run)
		}
		opened = nil
		for _, r := range run.Reports {
			for _, f := range r.Findings {
				opened = append(opened, f.CaseID)
				rec := w.recordOf(f.CaseID, foundAs(f.Code))
				if rec.GetState() != amendsv1.CaseState_CASE_STATE_HUMAN_HANDOFF {
					t.Errorf("%s left case %s in %s", f.Code, f.CaseID, rec.GetState())
				}
				if f.Code == casework.CodeCaseWithoutRefund && (f.CaseID != caseID(0) || f.RefundID != refund.RefundID) {
					t.Errorf("finding %+v", f)
				}
			}
		}
	}
	if cases := w.logs(); len(cases) != 3 { // the founding one and two of findings
		t.Errorf("%d cases, findings went to %v", len(cases), opened)
	}
	w.noDeadLetters()
}
