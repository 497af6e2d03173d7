package console

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/amends-dev/amends/internal/approval"
	"github.com/amends-dev/amends/internal/bus"
	"github.com/amends-dev/amends/internal/bus/bustest"
	"github.com/amends-dev/amends/internal/deskapi"
	"github.com/amends-dev/amends/internal/money"
	"github.com/amends-dev/amends/internal/roles"
	"github.com/amends-dev/amends/internal/subject"
	amendsv1 "github.com/amends-dev/amends/proto/amends/v1"
)

const (
	acmeToken = "acme-staff-token"
	betaToken = "beta-staff-token"
	traceID   = "7f3a91aaaaaaaaaaaaaaaaaaaaaaaaaa"
)

var at = time.Date(2026, 3, 12, 10, 14, 0, 0, time.UTC)

func hashOf(s string) string {
	sum := sha256.Sum256([]byte(s))
	return hex.EncodeToString(sum[:])
}

func testConfig() Config {
	cfg := Defaults()
	cfg.Listen = "127.0.0.1:0"
	cfg.Redis.Addr = "127.0.0.1:1" // nobody listens there
	cfg.Staff = []Staff{
		{ID: "maya", TokenSHA256: hashOf(acmeToken), Tenants: []string{"acme-in"}},
		{ID: "ravi", TokenSHA256: hashOf(betaToken), Tenants: []string{"beta"}},
		{ID: "head", TokenSHA256: hashOf(headToken), Tenants: []string{"acme-in", "beta"}, MayStopAll: true, MayResume: true},
	}
	return cfg
}

type desk struct {
	broker *bustest.Broker
	redis  *miniredis.Miniredis
	writes *bus.Conn
	url    string
}

func newDesk(t *testing.T) *desk {
	t.Helper()
	b := bustest.Desk(t, bustest.Options{RequestTimeout: time.Second})
	d := &desk{broker: b, writes: b.Connect(roles.Orchestrator), redis: miniredis.RunT(t)}
	cfg := testConfig()
	cfg.Redis.Addr = d.redis.Addr()
	ready, ended := make(chan string, 1), make(chan error, 1)
	deps := Deps{Bus: b.Connect(roles.Console), Ready: func(addr string) { ready <- addr }}
	ctx, cancel := context.WithCancel(context.Background())
	go func() { ended <- Run(ctx, cfg, deps) }()
	select {
	case addr := <-ready:
		d.url = "http://" + addr
	case err := <-ended:
		cancel()
		t.Fatalf("the console did not start: %v", err)
	}
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("the console ended with %v", err)
		}
	})
	return d
}

// record gives req-8472 as it awaits approval.
func record(version uint64) *amendsv1.CaseRecord {
	action := &amendsv1.ActionRecord{
		Tenant: "acme-in", CaseId: "req-8472", OrderId: "8472", CaseVersion: 5, Proposal: 1,
		Refunds: []*amendsv1.ActionRefund{{
			PaymentId: "pay_8472_b", Amount: money.New(200000, "INR"), Kind: "duplicate_capture",
			IdempotencyKey: approval.Key("req-8472", "pay_8472_b"),
		}},
		EvidenceSha256: strings.Repeat("ab", 32), Created: timestamppb.New(at), Expires: timestamppb.New(at.Add(30 * time.Minute)),
	}
	capture := func(id string) *amendsv1.Capture {
		return &amendsv1.Capture{
			PaymentId: id, Amount: money.New(200000, "INR"), Status: amendsv1.CaptureStatus_CAPTURE_STATUS_SETTLED, Captured: true, Settled: true, SettledAt: timestamppb.New(at),
		}
	}
	return &amendsv1.CaseRecord{
		Tenant: "acme-in", CaseId: "req-8472", RequestId: "req-8472", CustomerId: "cust_5519", Channel: "web",
		Version: version, State: amendsv1.CaseState_CASE_STATE_AWAITING_APPROVAL, OpenedAt: timestamppb.New(at), UpdatedAt: timestamppb.New(at),
		TraceId: traceID, BodySha256: hashOf("the body"),
		Messages: []*amendsv1.RecordedMessage{{
			MessageId: strings.Repeat("0", 36), ReceivedAt: timestamppb.New(at),
			Text: &amendsv1.UntrustedText{
				Text:   "Order 8472 <img src=x onerror=alert(1)> order \u202e2748\u202c",
				Origin: amendsv1.TextOrigin_TEXT_ORIGIN_CUSTOMER, Flags: []amendsv1.TextFlag{amendsv1.TextFlag_TEXT_FLAG_MARKUP},
			},
		}},
		Tasks: []*amendsv1.TaskNode{{
			TaskId: "task-8472-pay", Target: "payment-investigator", Slice: amendsv1.Slice_SLICE_PAYMENT, Status: amendsv1.TaskStatus_TASK_STATUS_SUCCEEDED,
			Attempts: []*amendsv1.Attempt{{Number: 1, Status: amendsv1.AttemptStatus_ATTEMPT_STATUS_ACCEPTED}},
		}},
		Payment: &amendsv1.PaymentEvidence{
			Order: &amendsv1.Order{OrderId: "8472", Total: money.New(200000, "INR")}, Complete: true,
			Captures: []*amendsv1.Capture{capture("pay_8472_a"), capture("pay_8472_b")},
		},
		Policy: &amendsv1.PolicyReading{Passage: &amendsv1.PolicyPassage{Citation: "POL-REF-004 v4", Quote: &amendsv1.UntrustedText{Text: "refundable in full"}}},
		Decision: &amendsv1.Decision{
			Refund: true, Reason: "duplicate_settled_capture", EvidenceComplete: true, NeedsApproval: true, ApproversNeeded: 1,
			CallIds: []string{"call-8472-p1"}, PolicyCitation: "POL-REF-004 v4",
		},
		Action:    action,
		Conflicts: []*amendsv1.Conflict{{Kind: "unsupported_customer_claim", OneSide: "refund has not arrived", OtherSide: "no refund on record", ResolvedBy: "system_of_record"}},
		Timeline: []*amendsv1.TimelineEntry{{
			Version: version, Row: "merge", State: amendsv1.CaseState_CASE_STATE_AWAITING_APPROVAL, At: timestamppb.New(at), Actor: "orchestrator", Note: "approval asked for",
		}},
		Handled: []*amendsv1.HandledInput{{Sender: "gateway", MessageId: "handled-" + strings.Repeat("0", 28)}},
		Replies: []*amendsv1.SentReply{{Kind: amendsv1.ReplyKind_REPLY_KIND_HOLDING, Text: "We are <checking>.", Version: 3}},
	}
}

func (d *desk) commit(t *testing.T, r *amendsv1.CaseRecord) {
	t.Helper()
	data, err := proto.Marshal(&amendsv1.CaseCommit{FirstVersion: r.GetVersion(), Record: r})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := d.writes.Publish(t.Context(), subject.Case(r.GetTenant(), r.GetCaseId()), data); err != nil {
		t.Fatal(err)
	}
}

// signed gives an approver's decision about a record's action.
func signed(t *testing.T, r *amendsv1.CaseRecord) *amendsv1.SignedDecision {
	t.Helper()
	key, err := approval.NewKey("maya", "maya-1", rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	sum, err := approval.ActionSHA256(r.GetAction())
	if err != nil {
		t.Fatal(err)
	}
	d := &amendsv1.SignedDecision{
		ApprovalId: "apr-8472-1", Verdict: amendsv1.Verdict_VERDICT_APPROVE, Tenant: "acme-in", CaseId: "req-8472",
		ActionSha256: sum, SignedAt: timestamppb.New(at), Expires: r.GetAction().GetExpires(),
	}
	if err := approval.Sign(key, d); err != nil {
		t.Fatal(err)
	}
	return d
}

// stored gives every message of INTAKE.
func (d *desk) stored(t *testing.T) []*amendsv1.Envelope {
	t.Helper()
	stream, err := d.broker.Admin().Stream(t.Context(), roles.StreamIntake)
	if err != nil {
		t.Fatal(err)
	}
	info, err := stream.Info(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var out []*amendsv1.Envelope
	for seq := info.State.FirstSeq; seq <= info.State.LastSeq && info.State.Msgs > 0; seq++ {
		m, err := stream.GetMsg(t.Context(), seq)
		if err != nil {
			t.Fatal(err)
		}
		if want := subject.Intake("console", "acme-in", "req-8472"); m.Subject != want {
			t.Errorf("stored on %s, want %s", m.Subject, want)
		}
		env := new(amendsv1.Envelope)
		if err := proto.Unmarshal(m.Data, env); err != nil {
			t.Fatal(err)
		}
		out = append(out, env)
	}
	return out
}

type answer struct {
	status int
	header http.Header
	body   string
}

func (a answer) code() deskapi.Code {
	var p deskapi.Problem
	if json.Unmarshal([]byte(a.body), &p) != nil {
		return ""
	}
	return p.Code
}

func bearer(token string) func(*http.Request) {
	return func(r *http.Request) { r.Header.Set("Authorization", "Bearer "+token) }
}

func basic(token string) func(*http.Request) {
	return func(r *http.Request) { r.SetBasicAuth("maya", token) }
}

func (d *desk) ask(t *testing.T, method, path, body string, auth func(*http.Request)) answer {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, d.url+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	if auth != nil {
		auth(req)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer{status: resp.StatusCode, header: resp.Header, body: string(data)}
}
