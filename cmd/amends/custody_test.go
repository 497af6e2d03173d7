package main

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/encoding/protojson"

	"github.com/amends-dev/amends/internal/approval"
	"github.com/amends-dev/amends/internal/custody"
	"github.com/amends-dev/amends/internal/deskapi"
	"github.com/amends-dev/amends/internal/edge"
	amendsv1 "github.com/amends-dev/amends/proto/amends/v1"
)

// fakeCustody is a console with one case in custody. It can lie.
type fakeCustody struct {
	change  func(*deskapi.Custody)
	refused string
	// rejected is why the verifier sends a text back.
	rejected string
	// unsettled is why the executor does not take a settlement.
	unsettled string
	received  []*amendsv1.CustodyDecision
}

func (c *fakeCustody) serve(t *testing.T) string {
	t.Helper()
	packet := &amendsv1.CustodyPacket{
		Trigger: "partial_refund_exists", Custodian: "maya", OpenQuestions: []string{"is \x1b[2J\u202e4,500 owed?"},
		CustomerStatements: []*amendsv1.UntrustedText{{Text: "where is the rest\n  approve=yes"}},
	}
	mux := http.NewServeMux()
	mux.Handle("GET /v1/cases/acme-in/req-8472/custody", edge.Handler(func(w http.ResponseWriter, _ *http.Request) *deskapi.Problem {
		body, err := protojson.Marshal(packet)
		if err != nil {
			t.Error(err)
		}
		since := now.Add(-time.Hour)
		out := deskapi.Custody{
			Tenant: "acme-in", CaseID: "req-8472", OrderID: "8472", Version: 6, State: "HUMAN_HANDOFF", Queue: "handoff", Custodian: "maya", Since: &since,
			Packet: body, PacketText: custody.Text(packet), PacketSHA256: custody.SHA256(packet),
			Evidence: deskapi.Evidence{Captures: []deskapi.Capture{
				{PaymentID: "pay_8472_a", Amount: deskapi.Amount{Minor: 500000, Currency: "INR"}, Status: "settled"},
				{PaymentID: "pay_8472_b", Amount: deskapi.Amount{Minor: 500000, Currency: "INR"}, Status: "settled"},
			}},
			Transfers: []deskapi.CustodyTransfer{{From: "handoff", To: "maya", Reason: "taken", At: &since}},
		}
		if c.change != nil {
			c.change(&out)
		}
		edge.WriteJSON(w, 200, out)
		return nil
	}))
	mux.Handle("POST /v1/cases/acme-in/req-8472/custody", edge.Handler(func(w http.ResponseWriter, r *http.Request) *deskapi.Problem {
		body, err := io.ReadAll(r.Body)
		d := new(amendsv1.CustodyDecision)
		if err != nil || protojson.Unmarshal(body, d) != nil {
			return deskapi.NewProblem(400, deskapi.CodeDecisionMalformed, "")
		}
		c.received = append(c.received, d)
		edge.WriteJSON(w, 202, deskapi.Relayed{MessageID: "m-1"})
		return nil
	}))
	mux.Handle("GET /v1/cases/acme-in/req-8472", edge.Handler(func(w http.ResponseWriter, _ *http.Request) *deskapi.Problem {
		state := "VERIFIED_CLOSED"
		if c.unsettled != "" {
			body, err := protojson.Marshal(&amendsv1.CaseRecord{OutcomeUnknown: true, Tasks: []*amendsv1.TaskNode{
				{Slice: amendsv1.Slice_SLICE_SETTLE, Status: amendsv1.TaskStatus_TASK_STATUS_FAILED, Reason: c.unsettled},
			}})
			if err != nil {
				t.Error(err)
			}
			edge.WriteJSON(w, 200, deskapi.Record{Version: 9, State: stateReconciling, Record: body, Decisions: []deskapi.Judgement{{MessageID: "m-1", Version: 7, State: stateReconciling}}})
			return nil
		}
		rec := &amendsv1.CaseRecord{Replies: []*amendsv1.SentReply{
			{Kind: amendsv1.ReplyKind_REPLY_KIND_HANDOFF, Version: 5}, {Kind: amendsv1.ReplyKind_REPLY_KIND_WRITTEN, Version: 9},
		}}
		if c.rejected != "" {
			state, rec.Replies = stateHandoff, rec.Replies[:1]
			rec.Verification = &amendsv1.Verification{Checks: []*amendsv1.ClaimCheck{{What: "promise", Found: "soon", Reason: c.rejected}}}
		}
		body, err := protojson.Marshal(rec)
		if err != nil {
			t.Error(err)
		}
		edge.WriteJSON(w, 200, deskapi.Record{Version: 9, State: state, Record: body, Decisions: []deskapi.Judgement{
			{MessageID: "m-1", Version: 7, State: "AWAITING_APPROVAL", Refused: c.refused},
		}})
		return nil
	}))
	s := httptest.NewServer(mux)
	t.Cleanup(s.Close)
	return s.URL
}

func custodyArgs(verb, dir, url string, more ...string) []string {
	return append([]string{
		"custody", verb, "req-8472", "--key", filepath.Join(dir, "maya.key"), "--tenant", "acme-in", "--console", url, "--token-file", filepath.Join(dir, "token"),
	}, more...)
}

// Each decision of the command line is the one that is signed.
func TestCustodyDecisionsAreSignedAsSaid(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		verb string
		more []string
		step amendsv1.CustodyStep
		want func(*amendsv1.CustodyDecision) bool
	}{
		{"take", nil, amendsv1.CustodyStep_CUSTODY_STEP_TAKE, nil},
		{"release", nil, amendsv1.CustodyStep_CUSTODY_STEP_RELEASE, nil},
		{"decide", []string{"--decline", "--reason", "no"}, amendsv1.CustodyStep_CUSTODY_STEP_DECLINE, func(d *amendsv1.CustodyDecision) bool { return d.GetReason() == "no" }},
		{"decide", []string{"--investigate"}, amendsv1.CustodyStep_CUSTODY_STEP_INVESTIGATE, nil},
		{"decide", []string{"--ask", "Which one?"}, amendsv1.CustodyStep_CUSTODY_STEP_ASK, func(d *amendsv1.CustodyDecision) bool { return d.GetText() == "Which one?" }},
		{"decide", []string{"--reply", "Thank you."}, amendsv1.CustodyStep_CUSTODY_STEP_CLOSE, func(d *amendsv1.CustodyDecision) bool { return d.GetText() == "Thank you." }},
		{"decide", []string{"--refund", "pay_8472_b=4500", "--refund", "pay_8472_a=0.50", "--goodwill"}, amendsv1.CustodyStep_CUSTODY_STEP_PROPOSE, func(d *amendsv1.CustodyDecision) bool {
			r := d.GetRefunds()
			return len(r) == 2 && r[0].GetPaymentId() == "pay_8472_a" && r[0].GetAmount().GetMinor() == 50 && r[1].GetAmount().GetMinor() == 450000 &&
				r[1].GetKind() == approval.KindGoodwill && r[1].GetIdempotencyKey() == "refund:req-8472:pay_8472_b"
		}},
		{"decide", []string{"--settle", "pay_8472_b=rf_5521", "--settle", "refund:req-8472:pay_8472_a=none", "--reason", "seen there"}, amendsv1.CustodyStep_CUSTODY_STEP_SETTLE, func(d *amendsv1.CustodyDecision) bool {
			st := d.GetSettlements()
			return len(st) == 2 && st[0].GetIdempotencyKey() == "refund:req-8472:pay_8472_a" && st[0].GetRefundId() == "" &&
				st[1].GetIdempotencyKey() == "refund:req-8472:pay_8472_b" && st[1].GetRefundId() == "rf_5521" && d.GetReason() == "seen there"
		}},
		{"decide", []string{"--resolve", "made by hand, booked"}, amendsv1.CustodyStep_CUSTODY_STEP_RESOLVE, func(d *amendsv1.CustodyDecision) bool { return d.GetReason() == "made by hand, booked" }},
	} {
		dir, key := files(t)
		person := approval.Approver{ID: "maya", Roles: []string{approval.RoleCustodian}, Tenants: []string{"acme-in"}, Keys: []approval.PublicKey{key.PublicEntry(now.Add(-time.Hour))}}
		reg, err := approval.NewRegistry("1", person)
		if err != nil {
			t.Fatal(err)
		}
		console := &fakeCustody{}
		got := amends(t, nil, custodyArgs(c.verb, dir, console.serve(t), append(c.more, "--yes")...)...)
		if got.code != exitDone || len(console.received) != 1 {
			t.Errorf("%s %v: %+v", c.verb, c.more, got)
			continue
		}
		d := console.received[0]
		if err := approval.CheckCustody(reg, "acme-in", "req-8472", d, now); err != nil {
			t.Errorf("%s %v: %v", c.verb, c.more, err)
		}
		if d.GetStep() != c.step || c.want != nil && !c.want(d) {
			t.Errorf("%s %v signed %v", c.verb, c.more, d)
		}
		if strings.ContainsAny(got.out, "\x1b\u202e") || strings.Contains(got.out, "\n  approve=yes") {
			t.Errorf("%s %v shows what nobody can see: %q", c.verb, c.more, got.out)
		}
	}
}

func TestCustodyIsNotSigned(t *testing.T) {
	t.Parallel()
	no := "n\n"
	for name, c := range map[string]struct {
		change func(*deskapi.Custody)
		answer *string
		more   []string
		code   int
		says   string
	}{
		"said no":               {answer: &no, more: []string{"--decline"}, code: exitFailed, says: "you said no"},
		"nobody there":          {more: []string{"--decline"}, code: exitFailed, says: "nobody is there"},
		"another case":          {change: func(c *deskapi.Custody) { c.CaseID = "req-1" }, more: []string{"--decline", "--yes"}, code: exitFailed, says: "another case"},
		"another text":          {change: func(c *deskapi.Custody) { c.PacketText = "x" }, more: []string{"--decline", "--yes"}, code: exitFailed, says: "another text"},
		"no such payment":       {more: []string{"--refund", "pay_1=5", "--yes"}, code: exitFailed, says: "no such payment"},
		"not an amount":         {more: []string{"--refund", "pay_8472_b=4,500", "--yes"}, code: exitFailed, says: "not an amount"},
		"nothing decided":       {more: []string{"--yes"}, code: exitUsage, says: "say one of"},
		"two decisions":         {more: []string{"--decline", "--investigate"}, code: exitUsage, says: "say one of"},
		"no refund named":       {more: []string{"--settle", "pay_8472_b"}, code: exitUsage, says: "want KEY=REFUND"},
		"settled twice":         {more: []string{"--settle", "pay_8472_b=rf_1", "--settle", "refund:req-8472:pay_8472_b=none"}, code: exitUsage, says: "there twice"},
		"another case's refund": {more: []string{"--settle", "refund:req-1:pay_8472_b=rf_1", "--yes"}, code: exitFailed, says: "not a key of the case"},
		"not a refund id":       {more: []string{"--settle", "pay_8472_b=rf 1", "--yes"}, code: exitFailed, says: "refund id is not valid"},
		"settled and declined":  {more: []string{"--settle", "pay_8472_b=rf_1", "--decline"}, code: exitUsage, says: "say one of"},
		"resolved for reasons":  {more: []string{"--resolve", "done", "--reason", "x"}, code: exitUsage, says: "without --reason"},
		"goodwill of no refund": {more: []string{"--decline", "--goodwill"}, code: exitUsage, says: "--goodwill"},
	} {
		dir, _ := files(t)
		console := &fakeCustody{change: c.change}
		got := amends(t, c.answer, custodyArgs("decide", dir, console.serve(t), c.more...)...)
		if got.code != c.code || !strings.Contains(got.err, c.says) || len(console.received) != 0 {
			t.Errorf("%s: %+v, %d handed in", name, got, len(console.received))
		}
	}
}

// A text that the verifier sends back is a failure of the command.
func TestCustodyTextThatIsNotSent(t *testing.T) {
	t.Parallel()
	dir, _ := files(t)
	console := &fakeCustody{rejected: "promise_unsupported"}
	got := amends(t, nil, custodyArgs("decide", dir, console.serve(t), "--ask", "Shall we soon?", "--yes", "--json")...)
	var out custodyDecided
	if err := json.Unmarshal([]byte(got.out), &out); err != nil {
		t.Fatalf("%v in %q", err, got.out)
	}
	if got.code != exitFailed || out.Sent || len(out.Rejected) != 1 || out.Rejected[0] != "promise_unsupported: soon" || out.State != stateHandoff || !strings.Contains(got.err, "promise_unsupported") {
		t.Errorf("%+v, code %d, %s", out, got.code, got.err)
	}
}

// A settlement that the executor finds not to be so is a failure of the command.
func TestCustodySettlementThatIsNotSo(t *testing.T) {
	t.Parallel()
	for unsettled, code := range map[string]int{"settle_refund_unknown": exitFailed, "": exitDone} {
		dir, _ := files(t)
		console := &fakeCustody{unsettled: unsettled}
		got := amends(t, nil, custodyArgs("decide", dir, console.serve(t), "--settle", "pay_8472_b=rf_5521", "--yes", "--json")...)
		var out custodyDecided
		if err := json.Unmarshal([]byte(got.out), &out); err != nil {
			t.Fatalf("%v in %q", err, got.out)
		}
		if got.code != code || out.Settled != (unsettled == "") || !strings.Contains(got.err, unsettled) || out.Step != "settle" || unsettled != "" && (len(out.Rejected) != 1 || out.Rejected[0] != unsettled) {
			t.Errorf("%+v, code %d, %s", out, got.code, got.err)
		}
	}
}

func TestCustodyForMachines(t *testing.T) {
	t.Parallel()
	dir, _ := files(t)
	console := &fakeCustody{refused: "record_changed"}
	got := amends(t, nil, custodyArgs("decide", dir, console.serve(t), "--decline", "--yes", "--json")...)
	var out custodyDecided
	if err := json.Unmarshal([]byte(got.out), &out); err != nil {
		t.Fatalf("%v in %q", err, got.out)
	}
	if got.code != exitFailed || out.Refused != "record_changed" || !out.Recorded || out.Step != "decline" || out.Custodian != "maya" {
		t.Errorf("%+v, code %d", out, got.code)
	}
	show := amends(t, nil, "custody", "show", "req-8472", "--tenant", "acme-in", "--console", console.serve(t), "--token-file", filepath.Join(dir, "token"))
	if show.code != exitDone || !strings.Contains(show.out, `trigger="partial_refund_exists"`) || !strings.Contains(show.out, "in the custody of maya") {
		t.Errorf("%+v", show)
	}
}
