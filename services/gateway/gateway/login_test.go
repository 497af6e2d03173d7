package gateway

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/oauth2-proxy/mockoidc"
	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/amends-dev/amends/internal/deskapi"
	"github.com/amends-dev/amends/internal/ident"
	"github.com/amends-dev/amends/internal/identity"
)

// openID runs an OpenID provider; addr may be empty.
func openID(t *testing.T, addr string) *mockoidc.MockOIDC {
	t.Helper()
	if addr == "" {
		addr = "127.0.0.1:0"
	}
	m, err := mockoidc.NewServer(nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := m.Keypair.KeyID(); err != nil { // computed here, as its handlers race for it
		t.Fatal(err)
	}
	ln, err := new(net.ListenConfig).Listen(t.Context(), "tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	if err := m.Start(ln, nil); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = m.Shutdown() })
	return m
}

// issued signs claims as the provider does; nil takes one away.
func issued(t *testing.T, m *mockoidc.MockOIDC, change map[string]any) string {
	t.Helper()
	now := time.Now()
	claims := map[string]any{
		"iss": m.Issuer(), "aud": "desk", "sub": "cust_5519", "scope": "openid refunds", "tid": "acme-in",
		"iat": now.Unix(), "exp": now.Add(time.Hour).Unix(),
	}
	maps.Copy(claims, change)
	kid, err := m.Keypair.KeyID()
	if err != nil {
		t.Fatal(err)
	}
	s, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.RS256, Key: m.Keypair.PrivateKey}, new(jose.SignerOptions).WithHeader("kid", kid))
	if err != nil {
		t.Fatal(err)
	}
	payload, err := json.Marshal(claims)
	if err != nil {
		t.Fatal(err)
	}
	jws, err := s.Sign(payload)
	if err != nil {
		t.Fatal(err)
	}
	token, err := jws.CompactSerialize()
	if err != nil {
		t.Fatal(err)
	}
	return token
}

// withLogin adds a channel of the provider's customers.
func withLogin(m *mockoidc.MockOIDC, change ...func(*Channel)) func(*Config) {
	return func(c *Config) {
		ch := Channel{Name: "login", Tenant: "acme-in", OIDC: &OIDC{Config: identity.Config{
			Issuer: m.Issuer(), Audiences: []string{"desk"}, Keys: identity.Keys{Refresh: time.Second},
		}}}
		for _, f := range change {
			f(&ch)
		}
		c.Channels = append(c.Channels, ch)
	}
}

// One customer's token opens and reads that customer's cases (TENANT-1).
func TestTokensSpeakForTheirCustomer(t *testing.T) {
	t.Parallel()
	d, m := newDesk(t), openID(t, "")
	d.recordPosts(t)
	gw := d.gatewayWith(t, withLogin(m)) + deskapi.CasesPath
	mine, theirs := issued(t, m, nil), issued(t, m, map[string]any{"sub": "cust_7001"})
	a := ask(t, http.MethodPost, gw, mine, founding, "Idempotency-Key", "k-1", deskapi.HeaderCustomer, "cust_5519")
	if a.status != http.StatusAccepted {
		t.Fatalf("%d %s", a.status, a.body)
	}
	var got deskapi.Accepted
	if err := json.Unmarshal([]byte(a.body), &got); err != nil {
		t.Fatal(err)
	}
	posts := d.stored(t)
	if len(posts) != 1 || posts[0].GetTenant() != "acme-in" || posts[0].GetCustomerId() != "cust_5519" {
		t.Fatalf("stored %v", posts)
	}
	if a := ask(t, http.MethodGet, gw+"/"+got.CaseID, mine, ""); a.status != http.StatusOK {
		t.Errorf("own case: %d %s", a.status, a.body)
	}
	strangers := ask(t, http.MethodGet, gw+"/"+got.CaseID, theirs, "")
	if nobodys := ask(t, http.MethodGet, gw+"/req-none", theirs, ""); strangers.status != http.StatusNotFound || strangers.body != nobodys.body {
		t.Errorf("somebody else's case: %d %s, no case: %s", strangers.status, strangers.body, nobodys.body)
	}
	// The credential is no part of the case's id, and a key of the same tenant
	// is another channel.
	if a := ask(t, http.MethodPost, gw, issued(t, m, map[string]any{"iat": time.Now().Unix() - 5}), founding, "Idempotency-Key", "k-1"); !strings.Contains(a.body, got.CaseID) {
		t.Errorf("a retry with a newer token: %d %s", a.status, a.body)
	}
	if a := ask(t, http.MethodPost, gw, webKey, founding, "Idempotency-Key", "k-1"); strings.Contains(a.body, got.CaseID) {
		t.Errorf("another channel's key opened the same case: %s", a.body)
	}
	for _, named := range []string{"cust_7001", "", "8472.>"} {
		a := ask(t, http.MethodPost, gw, mine, founding, "Idempotency-Key", "k-2", deskapi.HeaderCustomer, named)
		if a.status != http.StatusForbidden || a.problem(t).Code != deskapi.CodeCustomerNotAllowed {
			t.Errorf("naming customer %q: %d %s", named, a.status, a.body)
		}
	}
}

// Each signed-in customer has Idempotency-Keys of their own; those of a channel
// with an API key are the channel's, for all its customers (LOSS-1, TENANT-1).
func TestKeysOfSignedInCustomersAreTheirOwn(t *testing.T) {
	t.Parallel()
	d, m := newDesk(t), openID(t, "")
	d.recordPosts(t)
	gw := d.gatewayWith(t, withLogin(m)) + deskapi.CasesPath
	opened := func(token string, header ...string) string {
		a := ask(t, http.MethodPost, gw, token, founding, append(header, "Idempotency-Key", "1")...)
		var got deskapi.Accepted
		if err := json.Unmarshal([]byte(a.body), &got); err != nil || a.status != http.StatusAccepted {
			t.Fatalf("%d %s", a.status, a.body)
		}
		return got.CaseID
	}
	theirs, mine := opened(issued(t, m, map[string]any{"sub": "cust_7001"})), opened(issued(t, m, nil))
	if theirs == mine || mine != opened(issued(t, m, map[string]any{"scope": "openid"})) {
		t.Errorf("cases %s and %s", theirs, mine)
	}
	if got := opened(appKey, deskapi.HeaderCustomer, "cust_1"); got != ident.Case("acme-in", "app", deskapi.CasesPath, "1") {
		t.Errorf("the case of an API key's channel is %s", got)
	}
	a := ask(t, http.MethodPost, gw, appKey, founding, "Idempotency-Key", "1", deskapi.HeaderCustomer, "cust_2")
	if a.status != http.StatusConflict {
		t.Errorf("another customer of an API key's channel: %d %s", a.status, a.body)
	}
	if n := len(d.stored(t)); n != 3 {
		t.Errorf("%d posts stored", n)
	}
}

// Whatever is wrong with a token, the answer is the same; what a good one may
// not do is said. Bug B55: identifiers are checked before anything is built of
// them.
func TestTokensRefusedB55(t *testing.T) {
	t.Parallel()
	d, m := newDesk(t), openID(t, "")
	reader := metric.NewManualReader()
	gw := d.gatewayOf(t, withLogin(m, func(ch *Channel) {
		ch.Tenant = ""
		ch.OIDC.TenantClaim, ch.OIDC.Tenants = "tid", []string{"acme-in", "acme-uk"}
		ch.OIDC.RequiredScope, ch.OIDC.RequiredClaims = "refunds", map[string]string{"aud": "desk"}
	}), Deps{Meter: metric.NewMeterProvider(metric.WithReader(reader)).Meter("test")}) + deskapi.CasesPath
	good := issued(t, m, nil)
	head, rest, _ := strings.Cut(good, ".")
	with := func(name string, value any) string { return issued(t, m, map[string]any{name: value}) }
	now := time.Now()
	type refused struct{ token, reason string }
	for name, c := range map[string]refused{
		"no token":        {"no-such-key", "malformed"},
		"other issuer":    {with("iss", "https://elsewhere.example"), "issuer_unknown"},
		"other audience":  {with("aud", "billing"), "issuer_unknown"},
		"ended":           {with("exp", now.Add(-time.Minute).Unix()), "expired"},
		"not yet":         {with("nbf", now.Add(time.Minute).Unix()), "not_yet_valid"},
		"forged":          {head + "." + rest[:len(rest)-8] + "AAAAAAAA", "signature"},
		"oversized":       {with("pad", strings.Repeat("x", 8000)), "oversized"},
		"not signed":      {encoded(`{"alg":"none"}`) + "." + strings.Split(good, ".")[1] + ".", "algorithm"},
		"two audiences":   {with("aud", []string{"desk", "other"}), "party"},
		"an issuer's key": {m.ClientSecret, "malformed"},
	} {
		a := ask(t, http.MethodPost, gw, c.token, founding, "Idempotency-Key", "k-1")
		if a.status != http.StatusUnauthorized || a.header.Get("WWW-Authenticate") != `Bearer error="invalid_token"` {
			t.Errorf("%s: %d %q", name, a.status, a.header.Get("WWW-Authenticate"))
		}
		if want := ask(t, http.MethodPost, gw, "", founding, "Idempotency-Key", "k-1"); a.body != want.body || want.header.Get("WWW-Authenticate") != "Bearer" {
			t.Errorf("%s is answered %s, no credential %s %q", name, a.body, want.body, want.header.Get("WWW-Authenticate"))
		}
		if n := counted(t, reader, c.reason); n == 0 {
			t.Errorf("%s: reason %s is not counted", name, c.reason)
		}
	}
	for name, c := range map[string]struct {
		token string
		want  deskapi.Code
	}{
		"tenant not listed":      {with("tid", "other"), deskapi.CodeTenantNotAllowed},
		"every tenant":           {with("tid", "all"), deskapi.CodeTenantNotAllowed},
		"tenant of wildcards":    {with("tid", ">"), deskapi.CodeTenantNotAllowed},
		"no tenant":              {with("tid", nil), deskapi.CodeTenantNotAllowed},
		"several tenants":        {with("tid", []string{"acme-in"}), deskapi.CodeTenantNotAllowed},
		"no scope":               {with("scope", "openid"), deskapi.CodeInsufficient},
		"customer of wildcards":  {with("sub", "8472.>"), deskapi.CodeCustomerInvalid},
		"customer of a star":     {with("sub", "*"), deskapi.CodeCustomerInvalid},
		"customer with a space":  {with("sub", "a b"), deskapi.CodeCustomerInvalid},
		"long customer":          {with("sub", strings.Repeat("c", 300)), deskapi.CodeCustomerInvalid},
		"reordered customer":     {with("sub", "cust_\u202e9155"), deskapi.CodeCustomerInvalid},
		"customer with a hidden": {with("sub", "cust_\u200b5519"), deskapi.CodeCustomerInvalid},
		"no customer":            {with("sub", ""), deskapi.CodeCustomerInvalid},
		"the desk's own name":    {with("sub", "_desk"), deskapi.CodeCustomerInvalid},
	} {
		a := ask(t, http.MethodPost, gw, c.token, founding, "Idempotency-Key", "k-1")
		if a.status != http.StatusForbidden || a.problem(t).Code != c.want {
			t.Errorf("%s: %d %s, want %s", name, a.status, a.body, c.want)
		}
		if c.want == deskapi.CodeInsufficient && a.header.Get("WWW-Authenticate") != `Bearer error="insufficient_scope", scope="refunds"` {
			t.Errorf("%s: %q", name, a.header.Get("WWW-Authenticate"))
		}
	}
	if n := len(d.stored(t)); n != 0 {
		t.Errorf("%d messages were stored", n)
	}
	for _, tenant := range []string{"acme-in", "acme-uk"} {
		if a := ask(t, http.MethodPost, gw, with("tid", tenant), founding, "Idempotency-Key", "k-1"); a.status != http.StatusAccepted {
			t.Errorf("tenant %s: %d %s", tenant, a.status, a.body)
		}
	}
	if posts := d.stored(t); len(posts) != 2 || posts[0].GetCaseId() == posts[1].GetCaseId() || counted(t, reader, "accepted") != 2 {
		t.Errorf("one key in two tenants gave %v", posts)
	}
}

func encoded(s string) string { return base64.RawURLEncoding.EncodeToString([]byte(s)) }

// counted sums the credentials that came to an outcome.
func counted(t *testing.T, reader metric.Reader, outcome string) (n int64) {
	t.Helper()
	var all metricdata.ResourceMetrics
	if err := reader.Collect(context.WithoutCancel(t.Context()), &all); err != nil {
		t.Fatal(err)
	}
	for _, scope := range all.ScopeMetrics {
		for _, m := range scope.Metrics {
			sum, ok := m.Data.(metricdata.Sum[int64])
			if m.Name != "amends_gateway_credentials_total" || !ok {
				continue
			}
			for _, p := range sum.DataPoints {
				if v, _ := p.Attributes.Value("outcome"); v.AsString() == outcome {
					n += p.Value
				}
			}
		}
	}
	return n
}

// An issuer that is down at the start holds up its own callers only; its keys
// outlive it.
func TestIssuerDown(t *testing.T) {
	t.Parallel()
	d, m := newDesk(t), openID(t, "")
	addr := strings.TrimPrefix(m.Addr(), "http://")
	token := issued(t, m, nil)
	if err := m.Shutdown(); err != nil {
		t.Fatal(err)
	}
	gw := d.gatewayWith(t, withLogin(m)) + deskapi.CasesPath
	if a := ask(t, http.MethodPost, gw, webKey, founding, "Idempotency-Key", "k-1"); a.status != http.StatusAccepted {
		t.Errorf("with an API key: %d %s", a.status, a.body)
	}
	if a := ask(t, http.MethodPost, gw, token, founding, "Idempotency-Key", "k-2"); a.status != http.StatusServiceUnavailable || a.problem(t).Code != deskapi.CodeUnavailable || a.header.Get("Retry-After") == "" {
		t.Errorf("with a token: %d %s", a.status, a.body)
	}
	again := openID(t, addr)
	for deadline := time.Now().Add(20 * time.Second); ; {
		a := ask(t, http.MethodPost, gw, token, founding, "Idempotency-Key", "k-2")
		if a.status == http.StatusAccepted {
			break
		}
		if a.status != http.StatusServiceUnavailable || time.Now().After(deadline) {
			t.Fatalf("when the issuer is back: %d %s", a.status, a.body)
		}
	}
	if err := again.Shutdown(); err != nil {
		t.Fatal(err)
	}
	if a := ask(t, http.MethodPost, gw, issued(t, m, map[string]any{"sub": "cust_7001"}), founding, "Idempotency-Key", "k-3"); a.status != http.StatusAccepted {
		t.Errorf("on the keys of an issuer that is down: %d %s", a.status, a.body)
	}
}

// Bug B78: a credential in a span or a log.
func TestNoTokenIsLoggedOrTracedB78(t *testing.T) {
	t.Parallel()
	d, m := newDesk(t), openID(t, "")
	spans := tracetest.NewSpanRecorder()
	var log lockedBuffer
	gw := d.gatewayOf(t, withLogin(m), Deps{
		Log:    slog.New(slog.NewJSONHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug})),
		Tracer: sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(spans)).Tracer("test"),
	}) + deskapi.CasesPath
	canary := func(change map[string]any) string {
		change["canary"] = "canary"
		return issued(t, m, change)
	}
	good := canary(map[string]any{})
	tokens := []string{
		good, canary(map[string]any{"exp": 1}), canary(map[string]any{"iss": "https://canary.example"}), canary(map[string]any{"sub": "canary.>"}),
		canary(map[string]any{"exp": "canary"}), good + "canary", encoded(`{"alg":"canary"}`) + ".e30.canary", "canary-key", "canary.canary.canary",
	}
	for _, token := range tokens {
		ask(t, http.MethodPost, gw, token, founding, "Idempotency-Key", "k-1")
		ask(t, http.MethodGet, gw+"/req-none/events", token, "")
	}
	said := log.String()
	for _, s := range spans.Ended() {
		said += s.Name()
		for _, a := range s.Attributes() {
			said += a.Value.String()
		}
		for _, e := range s.Events() {
			said += e.Name
		}
	}
	if len(spans.Ended()) == 0 || !strings.Contains(said, `"reason":"expired"`) {
		t.Errorf("%d spans, and logged:\n%s", len(spans.Ended()), said)
	}
	if strings.Contains(said, "canary") {
		t.Errorf("logged or traced:\n%s", said)
	}
	for _, token := range tokens {
		for part := range strings.SplitSeq(token, ".") {
			if len(part) > 20 && strings.Contains(said, part[:20]) {
				t.Errorf("a part of a token was logged or traced: %s", part[:20])
			}
		}
	}
}

type lockedBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}
