package orchestrator

import (
	"testing"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/amends-dev/amends/internal/bus"
	"github.com/amends-dev/amends/internal/envelope"
	"github.com/amends-dev/amends/internal/ident"
	"github.com/amends-dev/amends/internal/roles"
	"github.com/amends-dev/amends/internal/subject"
	amendsv1 "github.com/amends-dev/amends/proto/amends/v1"
)

// found is a delivery of what the executor's sweep found.
func (d *desk) found(caseID, code string) *bus.Message {
	d.t.Helper()
	return d.foundOn("8472", caseID, code)
}

func (d *desk) foundOn(order, caseID, code string) *bus.Message {
	d.t.Helper()
	d.n++
	f := &amendsv1.EffectFinding{
		FindingId: ident.Finding("acme-in", code, order, "rf_9"), Code: code, Tenant: "acme-in", OrderId: order, RefundId: "rf_9",
		Records: []*amendsv1.FindingRecord{{Source: "provider", Kind: "refund", Id: "rf_9", Status: "succeeded"}}, SeenAt: timestamppb.Now(),
	}
	env := &amendsv1.Envelope{
		MessageId: ident.Derive(time.Now(), code, string(rune(d.n))), CaseId: caseID, Tenant: "acme-in", RequestId: caseID,
		Sender: string(roles.RefundExecutor), Recipient: string(roles.Orchestrator),
	}
	data, err := envelope.Seal(env, f)
	if err != nil {
		d.t.Fatal(err)
	}
	subj := subject.Result(string(roles.RefundExecutor), "acme-in", caseID)
	parts, err := subject.Parse(subj)
	if err != nil {
		d.t.Fatal(err)
	}
	if _, _, err := envelope.Open(data, parts, time.Now()); err != nil {
		d.t.Fatal(err)
	}
	return &bus.Message{Envelope: env, Payload: f, Parts: parts, Stored: bus.Stored{Subject: subj, Time: time.Now(), Data: data}, Stream: roles.StreamResults, Delivered: 1}
}

// MONEY-3: a finding about a case that is lost, or about none, becomes a case
// for people, once; people find it by its view, and a repeat is no news.
func TestAFindingBecomesOneCase(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	o := d.build(nil)
	for code, about := range map[string]string{"refund_without_case": "req-lost", "refund_without_intent": ""} {
		id := ident.FindingCase(ident.Finding("acme-in", code, "8472", "rf_9"))
		if about == "" {
			about = id
		}
		first := d.found(about, code)
		again := d.found(about, code) // the next sweep's
		for _, m := range []*bus.Message{first, again, first} {
			m.Delivered++
			if err := o.handle(t.Context(), m); err != nil {
				t.Fatalf("%s: %v", code, err)
			}
		}
		rec := d.load(o, id)
		if rec.GetVersion() != 1 || rec.GetCustomerId() != ident.Desk || rec.GetCustody().GetReason() != code || len(rec.GetFindings()) != 1 {
			t.Errorf("%s: v%d, %v", code, rec.GetVersion(), rec.GetCustody())
		}
		stored, err := o.conn.Last(t.Context(), roles.StreamViews, subject.View("acme-in", id))
		if err != nil {
			t.Fatal(err)
		}
		v := new(amendsv1.CaseView)
		if err := proto.Unmarshal(stored.Data, v); err != nil || v.GetState() != "HUMAN_HANDOFF" || v.GetQueue() != "reconciliation" || v.GetCustomerId() != ident.Desk {
			t.Errorf("%s: view %v, %v", code, v, err)
		}
	}
	if err := o.handle(t.Context(), d.post("req-8472")); err != nil {
		t.Fatal(err)
	}
	if err := o.handle(t.Context(), d.found("req-8472", "amount_differs")); err != nil {
		t.Fatal(err)
	}
	if rec := d.load(o, "req-8472"); len(rec.GetFindings()) != 1 || rec.GetCustomerId() != "cust_5519" {
		t.Errorf("%v", rec.GetFindings())
	}
}

// A finding on an order whose id is no token of a subject becomes a case for
// people all the same; the id is text in it.
func TestAFindingOnAnOrderWithAnOddID(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	o := d.build(nil)
	id := ident.FindingCase(ident.Finding("acme-in", "refund_without_intent", "A.1", "rf_9"))
	if err := o.handle(t.Context(), d.foundOn("A.1", id, "refund_without_intent")); err != nil {
		t.Fatal(err)
	}
	rec := d.load(o, id)
	if rec.GetFindings()[0].GetOrderId() != "A.1" || rec.GetState() != amendsv1.CaseState_CASE_STATE_HUMAN_HANDOFF {
		t.Errorf("%v", rec)
	}
	if _, err := o.conn.Last(t.Context(), roles.StreamViews, subject.View("acme-in", id)); err != nil {
		t.Error(err)
	}
}
