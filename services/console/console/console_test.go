package console

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"github.com/amends-dev/amends/internal/approval"
	"github.com/amends-dev/amends/internal/boot"
	"github.com/amends-dev/amends/internal/bus"
	"github.com/amends-dev/amends/internal/deskapi"
	"github.com/amends-dev/amends/internal/deskclient"
	"github.com/amends-dev/amends/internal/envelope"
	"github.com/amends-dev/amends/internal/roles"
	amendsv1 "github.com/amends-dev/amends/proto/amends/v1"
)

const casePath = "/v1/cases/acme-in/req-8472"

func TestRecordShowsWhatStaffNeed(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	r := record(5)
	d.commit(t, r)
	a := d.ask(t, http.MethodGet, casePath, "", bearer(acmeToken))
	var got deskapi.Record
	if err := json.Unmarshal([]byte(a.body), &got); err != nil || a.status != http.StatusOK {
		t.Fatalf("%d %s", a.status, a.body)
	}
	rec := new(amendsv1.CaseRecord)
	if err := protojson.Unmarshal(got.Record, rec); err != nil {
		t.Fatal(err)
	}
	want := proto.CloneOf(r)
	want.BodySha256, want.Handled = "", nil
	if got.Version != 5 || got.State != "AWAITING_APPROVAL" || !proto.Equal(rec, want) {
		t.Errorf("record %v\nwant %v", rec, want)
	}
}

// TENANT-1: staff of another tenant get what they get for an unknown case.
func TestForeignTenantsAreAnsweredLikeUnknownCasesTENANT1(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.commit(t, record(5))
	unknown := d.ask(t, http.MethodGet, "/v1/cases/beta/req-none", "", bearer(betaToken))
	if unknown.status != http.StatusNotFound {
		t.Fatalf("unknown case: %d %s", unknown.status, unknown.body)
	}
	for _, path := range []string{casePath, casePath + "/action", "/v1/cases/acme-in/req-none", "/v1/cases/beta/a%3Eb"} {
		if a := d.ask(t, http.MethodGet, path, "", bearer(betaToken)); a.status != unknown.status || a.body != unknown.body {
			t.Errorf("%s: %d %s", path, a.status, a.body)
		}
	}
	body, err := protojson.Marshal(signed(t, record(5)))
	if err != nil {
		t.Fatal(err)
	}
	if a := d.ask(t, http.MethodPost, casePath+"/decisions", string(body), bearer(betaToken)); a.status != unknown.status || a.body != unknown.body {
		t.Errorf("decision: %d %s", a.status, a.body)
	}
	if n := len(d.stored(t)); n != 0 {
		t.Errorf("%d messages stored", n)
	}
}

func TestActionIsShownInItsSignedForm(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	r := record(5)
	r.Approvals = []*amendsv1.SignedDecision{signed(t, r)}
	d.commit(t, r)
	desk, err := deskclient.NewConsole(deskclient.Config{URL: d.url, Token: acmeToken})
	if err != nil {
		t.Fatal(err)
	}
	got, action, err := desk.Action(t.Context(), "acme-in", "req-8472", 5)
	if err != nil {
		t.Fatal(err)
	}
	text, err := approval.ActionText(r.GetAction())
	if err != nil {
		t.Fatal(err)
	}
	sum, err := approval.ActionSHA256(r.GetAction())
	if err != nil {
		t.Fatal(err)
	}
	if !proto.Equal(action, r.GetAction()) || got.ActionText != text || got.ActionSHA256 != sum ||
		got.ApprovalsRecorded != 1 || got.NextApprovalID != "apr-8472-2" || got.ApproversNeeded != 1 || got.State != "AWAITING_APPROVAL" || got.Version != 5 {
		t.Errorf("action %+v", got)
	}
	e := got.Evidence
	if !e.Complete || e.Reason != "duplicate_settled_capture" || len(e.Captures) != 2 || e.Captures[1].PaymentID != "pay_8472_b" ||
		e.Captures[1].Status != "settled" || e.OrderTotal.Minor != 200000 || e.Conflicts[0].ResolvedBy != "system_of_record" || e.CallIDs[0] != "call-8472-p1" {
		t.Errorf("evidence %+v", e)
	}
	r = record(6)
	r.Action = nil
	d.commit(t, r)
	if a := d.ask(t, http.MethodGet, casePath+"/action", "", bearer(acmeToken)); a.status != http.StatusConflict || a.code() != deskapi.CodeNoAction {
		t.Errorf("without an action: %d %s", a.status, a.body)
	}
}

func TestRecordSaysWhatBecameOfDecisions(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	r := record(5)
	d.commit(t, r)
	desk, err := deskclient.NewConsole(deskclient.Config{URL: d.url, Token: acmeToken})
	if err != nil {
		t.Fatal(err)
	}
	if got, err := desk.Record(t.Context(), "acme-in", "req-8472", 5); err != nil || got.Decisions == nil || len(got.Decisions) != 0 {
		t.Fatalf("before any decision: %+v, %v", got.Decisions, err)
	}
	var want []deskapi.Judgement
	for i, judged := range []struct {
		state   amendsv1.CaseState
		refused string
	}{
		{amendsv1.CaseState_CASE_STATE_AWAITING_APPROVAL, approval.ReasonSignature},
		{amendsv1.CaseState_CASE_STATE_REFUND_REQUESTED, ""},
	} {
		relayed, err := desk.Decide(t.Context(), signed(t, r))
		if err != nil {
			t.Fatal(err)
		}
		version := 6 + uint64(i)
		r.Timeline = append(r.Timeline, &amendsv1.TimelineEntry{Version: version, State: judged.state})
		r.Handled = append(r.Handled, &amendsv1.HandledInput{Sender: "console", MessageId: relayed.MessageID, Version: version, Refused: judged.refused})
		want = append(want, deskapi.Judgement{MessageID: relayed.MessageID, Version: version, State: stateName(judged.state), Refused: judged.refused})
	}
	// The case has moved on; the judgements say what was.
	r.Version, r.State = 8, amendsv1.CaseState_CASE_STATE_REFUNDED
	r.Timeline = append(r.Timeline, &amendsv1.TimelineEntry{Version: 8, State: r.GetState()})
	r.Handled = append(r.Handled, &amendsv1.HandledInput{Sender: "refund-executor", MessageId: strings.Repeat("1", 36), Version: 8})
	d.commit(t, r)
	got, err := desk.Record(t.Context(), "acme-in", "req-8472", 8)
	if err != nil || !slices.Equal(got.Decisions, want) || got.State != "REFUNDED" {
		t.Errorf("%+v, %v\nwant %+v", got.Decisions, err, want)
	}
}

func TestVersionIsWaitedFor(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	got := make(chan answer, 2)
	for _, path := range []string{casePath + "?min_version=5", casePath + "/action?min_version=5"} {
		go func() { got <- d.ask(t, http.MethodGet, path, "", bearer(acmeToken)) }()
	}
	d.commit(t, record(4))
	d.commit(t, record(5))
	for range 2 {
		if a := <-got; a.status != http.StatusOK || !strings.Contains(a.body, `"version":5`) {
			t.Errorf("%d %s", a.status, a.body)
		}
	}
	a := d.ask(t, http.MethodGet, casePath+"?min_version=6", "", bearer(acmeToken))
	if a.status != http.StatusServiceUnavailable || a.code() != deskapi.CodeVersionNotReached || a.header.Get("Retry-After") == "" {
		t.Errorf("a version that never comes: %d %s", a.status, a.body)
	}
	if a := d.ask(t, http.MethodGet, casePath+"?min_version=x", "", bearer(acmeToken)); a.status != http.StatusBadRequest {
		t.Errorf("no number: %d", a.status)
	}
}

func TestDecisionIsRelayedAsItIs(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	r := record(5)
	d.commit(t, r)
	decision := signed(t, r)
	desk, err := deskclient.NewConsole(deskclient.Config{URL: d.url, Token: acmeToken})
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		relayed, err := desk.Decide(t.Context(), decision)
		if err != nil || relayed.ApprovalID != "apr-8472-1" || relayed.MessageID != decisionID(decision) {
			t.Fatalf("%+v, %v", relayed, err)
		}
	}
	stored := d.stored(t)
	if len(stored) != 2 || stored[0].GetMessageId() != stored[1].GetMessageId() {
		t.Fatalf("a retry is not the same message: %v", stored)
	}
	env := stored[0]
	if env.GetType() != envelope.ApprovalDecision || env.GetCaseId() != "req-8472" || env.GetTenant() != "acme-in" || env.GetCustomerId() != "cust_5519" ||
		env.GetTraceId() != traceID || env.GetPurpose() != "decision relayed by maya" {
		t.Errorf("envelope %v", env)
	}
	got := new(amendsv1.SignedDecision)
	if err := proto.Unmarshal(env.GetPayload(), got); err != nil || !proto.Equal(got, decision) {
		t.Errorf("relayed %v, want %v", got, decision)
	}
	other := proto.CloneOf(decision)
	other.Signature[0] ^= 1
	if decisionID(other) == decisionID(decision) {
		t.Error("another signature is the same message")
	}
}

func TestMalformedDecisionsAreRefused(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	r := record(5)
	d.commit(t, r)
	good := signed(t, r)
	changed := func(f func(*amendsv1.SignedDecision)) string {
		c := proto.CloneOf(good)
		f(c)
		body, err := protojson.Marshal(c)
		if err != nil {
			t.Fatal(err)
		}
		return string(body)
	}
	for name, c := range map[string]struct {
		body   string
		auth   func(*http.Request)
		status int
	}{
		"no token":          {changed(func(*amendsv1.SignedDecision) {}), nil, 401},
		"wrong token":       {changed(func(*amendsv1.SignedDecision) {}), bearer("x"), 401},
		"browser's sign-in": {changed(func(*amendsv1.SignedDecision) {}), basic(acmeToken), 401},
		"no JSON":           {"approve", bearer(acmeToken), 400},
		"unknown field":     {`{"approvalId":"a","force":true}`, bearer(acmeToken), 400},
		"empty":             {`{}`, bearer(acmeToken), 400},
		"too large":         {`{"reason":"` + strings.Repeat("x", maxDecision) + `"}`, bearer(acmeToken), 413},
		"another case":      {changed(func(c *amendsv1.SignedDecision) { c.CaseId = "req-1" }), bearer(acmeToken), 400},
		"another tenant":    {changed(func(c *amendsv1.SignedDecision) { c.Tenant = "beta" }), bearer(acmeToken), 400},
		"no verdict":        {changed(func(c *amendsv1.SignedDecision) { c.Verdict = 0 }), bearer(acmeToken), 400},
		"no signature":      {changed(func(c *amendsv1.SignedDecision) { c.Signature = nil }), bearer(acmeToken), 400},
		"short signature":   {changed(func(c *amendsv1.SignedDecision) { c.Signature = c.Signature[:63] }), bearer(acmeToken), 400},
		"no expiry":         {changed(func(c *amendsv1.SignedDecision) { c.Expires = nil }), bearer(acmeToken), 400},
		"long reason":       {changed(func(c *amendsv1.SignedDecision) { c.Reason = strings.Repeat("x", 513) }), bearer(acmeToken), 400},
	} {
		a := d.ask(t, http.MethodPost, casePath+"/decisions", c.body, c.auth)
		if a.status != c.status || a.code() == "" {
			t.Errorf("%s: %d %s, want %d", name, a.status, a.body, c.status)
		}
	}
	if a := d.ask(t, http.MethodPost, "/v1/cases/acme-in/req-1/decisions", changed(func(c *amendsv1.SignedDecision) { c.CaseId = "req-1" }), bearer(acmeToken)); a.status != http.StatusNotFound {
		t.Errorf("unknown case: %d %s", a.status, a.body)
	}
	if n := len(d.stored(t)); n != 0 {
		t.Errorf("%d messages stored", n)
	}
}

// flaky is the real broker whose acknowledgements get lost.
type flaky struct {
	broker
	lose int
}

func (f *flaky) Send(ctx context.Context, subj string, env *amendsv1.Envelope, payload proto.Message, opts ...bus.PublishOption) (uint64, error) {
	seq, err := f.broker.Send(ctx, subj, env, payload, opts...)
	if f.lose > 0 && err == nil {
		f.lose--
		return 0, bus.ErrUncertain
	}
	return seq, err
}

func TestLostAcknowledgementOfADecision(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	r := record(5)
	d.commit(t, r)
	body, err := protojson.Marshal(signed(t, r))
	if err != nil {
		t.Fatal(err)
	}
	conn := d.broker.Connect(roles.Console)
	for lose, want := range []int{http.StatusAccepted, http.StatusAccepted, http.StatusServiceUnavailable} {
		h, err := build(testConfig(), Deps{}, &flaky{broker: conn, lose: lose}, nil)
		if err != nil {
			t.Fatal(err)
		}
		req := httptest.NewRequestWithContext(t.Context(), http.MethodPost, casePath+"/decisions", strings.NewReader(string(body)))
		bearer(acmeToken)(req)
		rec := httptest.NewRecorder()
		h.ServeHTTP(rec, req)
		if rec.Code != want || (want == 503) != (rec.Header().Get("Retry-After") != "") {
			t.Errorf("%d acknowledgements lost: %d %s, want %d", lose, rec.Code, rec.Body, want)
		}
	}
	ids := map[string]bool{}
	for _, env := range d.stored(t) {
		ids[env.GetMessageId()] = true
	}
	if len(ids) != 1 {
		t.Errorf("%d different messages, want 1", len(ids))
	}
}

func TestPageShowsTheCaseAndRunsNothing(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.commit(t, record(5))
	a := d.ask(t, http.MethodGet, "/cases/acme-in/req-8472", "", basic(acmeToken))
	if a.status != http.StatusOK || !strings.HasPrefix(a.header.Get("Content-Type"), "text/html") {
		t.Fatalf("%d %s", a.status, a.body)
	}
	for _, want := range []string{
		"AWAITING_APPROVAL · v5", "approval asked for", "task-8472-pay", "payment-investigator", "₹2,000.00", "refund=pay_8472_b INR 200000",
		"&lt;img src=x onerror=alert(1)&gt;", `order \u202e2748\u202c`, "We are &lt;checking&gt;.", "POL-REF-004 v4", "unsupported_customer_claim",
	} {
		if !strings.Contains(a.body, want) {
			t.Errorf("the page lacks %q", want)
		}
	}
	for _, bad := range []string{"<img", "\u202e", "<script", "http://", "https://", "ZgotmplZ"} {
		if strings.Contains(a.body, bad) {
			t.Errorf("the page holds %q", bad)
		}
	}
	if csp := a.header.Get("Content-Security-Policy"); !strings.HasPrefix(csp, "default-src 'none'; style-src 'sha256-") || strings.Contains(csp, "unsafe") {
		t.Errorf("policy %q", csp)
	}
	if !strings.Contains(a.body, "<style>"+pageStyle+"</style>") {
		t.Error("the style is not the one the policy allows")
	}
}

// A token in a URL ends in logs and histories.
func TestPageTakesNoTokenFromTheURL(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.commit(t, record(5))
	for name, a := range map[string]answer{
		"none":   d.ask(t, http.MethodGet, "/cases/acme-in/req-8472", "", nil),
		"query":  d.ask(t, http.MethodGet, "/cases/acme-in/req-8472?token="+acmeToken, "", nil),
		"bearer": d.ask(t, http.MethodGet, "/cases/acme-in/req-8472", "", bearer(acmeToken)),
		"wrong":  d.ask(t, http.MethodGet, "/cases/acme-in/req-8472", "", basic("x")),
	} {
		if a.status != http.StatusUnauthorized || !strings.HasPrefix(a.header.Get("WWW-Authenticate"), "Basic ") {
			t.Errorf("%s: %d %v", name, a.status, a.header)
		}
	}
	if a := d.ask(t, http.MethodGet, "/cases/beta/req-8472", "", basic(acmeToken)); a.status != http.StatusNotFound {
		t.Errorf("another tenant: %d", a.status)
	}
}

func TestPageOfABareRecord(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	r := record(1)
	d.commit(t, &amendsv1.CaseRecord{Tenant: r.GetTenant(), CaseId: r.GetCaseId(), Version: 1, State: amendsv1.CaseState_CASE_STATE_RECEIVED})
	if a := d.ask(t, http.MethodGet, "/cases/acme-in/req-8472", "", basic(acmeToken)); a.status != http.StatusOK || !strings.Contains(a.body, "none sent") {
		t.Errorf("%d %s", a.status, a.body)
	}
}

func TestConfigIsCheckedAsAWhole(t *testing.T) {
	t.Parallel()
	good := testConfig()
	if err := good.Validate(); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		change func(*Config)
		want   string
	}{
		"no listener": {func(c *Config) { c.Listen = "" }, "listen"},
		"no staff":    {func(c *Config) { c.Staff = nil }, "staff"},
		"no tenants":  {func(c *Config) { c.Staff[0].Tenants = nil }, "staff[0]: tenants"},
		"tenant B55":  {func(c *Config) { c.Staff[0].Tenants[0] = "*" }, "staff[0]: tenants"},
		"tenant all":  {func(c *Config) { c.Staff[0].Tenants[0] = "all" }, "stands for every tenant"},
		"id":          {func(c *Config) { c.Staff[1].ID = "" }, "staff[1]: id"},
		"plain token": {func(c *Config) { c.Staff[0].TokenSHA256 = acmeToken }, "token_sha256"},
		"token twice": {func(c *Config) { c.Staff[1].TokenSHA256 = c.Staff[0].TokenSHA256 }, "staff[1]: token_sha256"},
	} {
		cfg := testConfig()
		c.change(&cfg)
		if err := cfg.Validate(); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}

func TestBadCertificateRefusesToStart(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	cfg := testConfig()
	cfg.TLS.CertFile = "missing.pem"
	if err := cfg.Validate(); err == nil || !strings.Contains(err.Error(), "tls: want both") {
		t.Errorf("%v", err)
	}
	cfg.TLS.KeyFile = "missing.pem"
	if err := Run(t.Context(), cfg, Deps{Bus: d.broker.Connect(roles.Console)}); !errors.Is(err, boot.ErrConfig) {
		t.Errorf("%v", err)
	}
}
