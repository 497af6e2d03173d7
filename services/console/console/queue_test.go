package console

import (
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/amends-dev/amends/internal/deskapi"
	"github.com/amends-dev/amends/internal/deskclient"
	"github.com/amends-dev/amends/internal/ident"
	"github.com/amends-dev/amends/internal/readmodel"
	amendsv1 "github.com/amends-dev/amends/proto/amends/v1"
)

// listed puts cases into the read model, as the gateways' projector does.
func (d *desk) listed(t *testing.T, records ...*amendsv1.CaseRecord) {
	t.Helper()
	client, err := readmodel.Access{Addr: d.redis.Addr()}.Open(nil, "test", time.Second)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = client.Close() }() // only a test
	m := readmodel.New(client, readmodel.Prefix)
	for i, r := range records {
		if err := m.Put(t.Context(), readmodel.Entry{
			Tenant: r.GetTenant(), CaseID: r.GetCaseId(), CustomerID: "cust_5519", State: stateName(r.GetState()), Queue: r.GetCustody().GetQueue(), Version: r.GetVersion(),
			OpenedAt: time.Unix(int64(1000+i), 0),
		}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := m.Claim(t.Context(), "", "t"); err != nil {
		t.Fatal(err)
	}
	if _, err := m.Finish(t.Context(), "t", ""); err != nil {
		t.Fatal(err)
	}
}

func TestQueuesShowCasesAsTheyAreNow(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	desk, err := deskclient.NewConsole(deskclient.Config{URL: d.url, Token: acmeToken})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := desk.Queue(t.Context(), "acme-in", "handoff", "", 0); err == nil || !strings.Contains(err.Error(), string(deskapi.CodeListUnavailable)) {
		t.Errorf("a model that is not ready: %v", err)
	}
	var all []*amendsv1.CaseRecord
	for n := 1; n <= 3; n++ {
		r := proto.CloneOf(handedOver(6))
		r.CaseId = "req-" + strconv.Itoa(n)
		all = append(all, r)
	}
	waiting := record(5)
	found := proto.CloneOf(handedOver(1))
	found.CaseId, found.CustomerId, found.Triage = "fnd-1", ident.Desk, nil
	found.Custody.Queue, found.Custody.Reason = "reconciliation", "refund_missing"
	found.Findings = []*amendsv1.EffectFinding{{FindingId: "find-1", Code: "refund_missing", Tenant: "acme-in", OrderId: "9024"}}
	all = append(all, waiting, found)
	d.listed(t, all...)
	all[0].Custody.Custodian, all[0].Custody.Since, all[0].Custody.Until = "sam", timestamppb.New(time.Unix(5000, 0)), timestamppb.New(time.Now().Add(time.Hour))
	all[2].Custody.Custodian, all[2].Custody.Until = "lee", timestamppb.Now() // it has run out
	all[1].State = amendsv1.CaseState_CASE_STATE_DECLINED                     // it has moved on since it was listed
	for _, r := range all {
		d.commit(t, r)
	}
	first, err := desk.Queue(t.Context(), "acme-in", "handoff", "", 2)
	if err != nil || len(first.Cases) != 1 || first.Next == "" {
		t.Fatalf("%+v, %v", first, err)
	}
	if got := first.Cases[0]; got.CaseID != "req-1" || got.Custodian != "sam" || got.Reason != "open_dispute" || !got.Since.Equal(time.Unix(5000, 0)) || got.Queue != "handoff" {
		t.Errorf("%+v", got)
	}
	rest, err := desk.Queue(t.Context(), "acme-in", "handoff", first.Next, 2)
	if err != nil || len(rest.Cases) != 1 || rest.Cases[0].CaseID != "req-3" || rest.Cases[0].Custodian != "" || rest.Next != "" {
		t.Errorf("%+v, %v", rest, err)
	}
	approvals, err := desk.Queue(t.Context(), "acme-in", "approval", "", 0)
	if err != nil || len(approvals.Cases) != 1 || approvals.Cases[0].CaseID != "req-8472" || !approvals.Cases[0].Since.Equal(waiting.GetAction().GetCreated().AsTime()) {
		t.Errorf("%+v, %v", approvals, err)
	}
	findings, err := desk.Queue(t.Context(), "acme-in", "reconciliation", "", 0)
	if err != nil || len(findings.Cases) != 1 || findings.Cases[0].CaseID != "fnd-1" || findings.Cases[0].OrderID != "9024" || findings.Cases[0].Queue != "reconciliation" || findings.Cases[0].Reason != "refund_missing" {
		t.Errorf("%+v, %v", findings, err)
	}
	d.redis.Close()
	if _, err := desk.Queue(t.Context(), "acme-in", "handoff", "", 0); err == nil || !strings.Contains(err.Error(), string(deskapi.CodeListUnavailable)) {
		t.Errorf("without Redis: %v", err)
	}
}

func TestQueueQueriesAreStrictTENANT1(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.listed(t, handedOver(6))
	for query, status := range map[string]int{
		"?tenant=acme-in":                         200,
		"?tenant=acme-in&queue=handoff&limit=100": 200,
		"":                           404,
		"?tenant=beta":               404,
		"?tenant=acme-in.>":          404,
		"?tenant=acme-in&queue=desk": 400,
		"?tenant=acme-in&queue=handoff&queue=desk": 400,
		"?tenant=acme-in&limit=0":                  400,
		"?tenant=acme-in&limit=101":                400,
		"?tenant=acme-in&cursor=x":                 400,
		"?tenant=acme-in&state=x":                  400,
	} {
		if a := d.ask(t, http.MethodGet, deskapi.QueuePath+query, "", bearer(acmeToken)); a.status != status {
			t.Errorf("%s: %d %s, want %d", query, a.status, a.body, status)
		}
	}
	if a := d.ask(t, http.MethodGet, deskapi.QueuePath+"?tenant=acme-in", "", nil); a.status != 401 {
		t.Errorf("no token: %d", a.status)
	}
	if a := d.ask(t, http.MethodGet, deskapi.QueuePath+"?tenant=acme-in", "", bearer(betaToken)); a.status != 404 {
		t.Errorf("another tenant's staff: %d %s", a.status, a.body)
	}
}
