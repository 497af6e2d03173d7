package sandbox_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/amends-dev/amends/internal/sandbox"
	"github.com/amends-dev/amends/internal/sandbox/sandboxtest"
)

// AUTH-1 at the provider: every key against every route.
func TestEveryKeyOnEveryRoute(t *testing.T) {
	t.Parallel()
	s := sandboxtest.Start(t)
	tokens := map[sandbox.Scope]string{
		sandbox.ScopeVerifyOwner: sandboxtest.VerifyOwnerKey, sandbox.ScopeRead: sandboxtest.ReadKey,
		sandbox.ScopeRefundWrite: sandboxtest.RefundWriteKey, sandbox.ScopeAdmin: sandboxtest.AdminKey,
	}
	want := map[string][]sandbox.Scope{
		"POST /v1/orders/verify-owner":      {sandbox.ScopeVerifyOwner},
		"GET /v1/orders/{order}":            {sandbox.ScopeRead, sandbox.ScopeRefundWrite},
		"GET /v1/orders/{order}/captures":   {sandbox.ScopeRead},
		"GET /v1/orders/{order}/refunds":    {sandbox.ScopeRead, sandbox.ScopeRefundWrite},
		"GET /v1/orders/{order}/settlement": {sandbox.ScopeRead},
		"GET /v1/refunds":                   {sandbox.ScopeRead, sandbox.ScopeRefundWrite},
		"GET /v1/refunds/{refund}":          {sandbox.ScopeRead, sandbox.ScopeRefundWrite},
		"POST /v1/refunds":                  {sandbox.ScopeRefundWrite},
		"GET /v1/admin/ledger":              {sandbox.ScopeAdmin},
		"PUT /v1/admin/ledger":              {sandbox.ScopeAdmin},
		"POST /v1/admin/refunds/{refund}":   {sandbox.ScopeAdmin},
		"POST /v1/admin/captures/{payment}": {sandbox.ScopeAdmin},
		"GET /v1/admin/faults":              {sandbox.ScopeAdmin},
		"PUT /v1/admin/faults":              {sandbox.ScopeAdmin},
		"DELETE /v1/admin/faults":           {sandbox.ScopeAdmin},
		"GET /openapi.yaml":                 nil,
	}
	for _, op := range sandbox.Operations() {
		name := op.Method + " " + op.Path
		may, listed := want[name]
		if !listed {
			t.Errorf("%s is not in the matrix", name)
		}
		path := strings.NewReplacer("{order}", "8472", "{refund}", "rf_1", "{payment}", "pay_1").Replace(op.Path)
		for scope, token := range tokens {
			got := send(t, s.URL, request{method: op.Method, path: path, token: token})
			denied := got.status == http.StatusForbidden && got.code(t) == "wrong_scope"
			if allowed := may == nil || slices.Contains(may, scope); denied == allowed {
				t.Errorf("%s with scope %s: status %d, allowed %t", name, scope, got.status, allowed)
			}
		}
		if may == nil {
			continue
		}
		for _, header := range [][]string{nil, {"Bearer wrong"}, {"Bearer "}, {"Basic " + sandboxtest.AdminKey}, {sandboxtest.AdminKey}, {"Bearer " + sandboxtest.AdminKey, "Bearer " + sandboxtest.AdminKey}} {
			got := send(t, s.URL, request{method: op.Method, path: path, header: http.Header{"Authorization": header}})
			if got.status != http.StatusUnauthorized || got.code(t) != "unauthorized" || got.header.Get("WWW-Authenticate") != "Bearer" {
				t.Errorf("%s with %q: status %d", name, header, got.status)
			}
		}
	}
}

func TestOwnerAnswersLeakNothing(t *testing.T) {
	t.Parallel()
	s := sandboxtest.Start(t)
	s.Load(t, sandboxtest.Duplicate())
	ask := func(tenant, order, customer string) response {
		r := send(t, s.URL, request{
			method: http.MethodPost, path: "/v1/orders/verify-owner", token: sandboxtest.VerifyOwnerKey,
			body: `{"tenant":"` + tenant + `","order_id":"` + order + `","customer_id":"` + customer + `"}`,
		})
		r.header.Del("Date")
		return r
	}
	if yes := ask("acme-in", "8472", "cust_5519"); yes.status != http.StatusOK || yes.body != `{"owner":true}` {
		t.Errorf("the owner: %d %s", yes.status, yes.body)
	}
	unknown := ask("acme-in", "9999", "cust_5519")
	if unknown.status != http.StatusOK || unknown.body != `{"owner":false}` {
		t.Errorf("an unknown order: %d %s", unknown.status, unknown.body)
	}
	for name, other := range map[string]response{
		"another customer": ask("acme-in", "8472", "cust_1"),
		"another tenant":   ask("globex", "8472", "cust_5519"),
	} {
		if other.body != unknown.body || other.status != unknown.status || len(other.header) != len(unknown.header) {
			t.Errorf("%s is answered %+v, an unknown order %+v", name, other, unknown)
		}
	}
}

// TENANT-1: another tenant's order and refund look exactly like unknown ones.
func TestReadsOfAnotherTenantLookUnknown(t *testing.T) {
	t.Parallel()
	s := sandboxtest.Start(t)
	s.Load(t, sandboxtest.Duplicate())
	id := parseRefund(t, send(t, s.URL, refund("k", duplicateRefund))).RefundID
	for _, path := range []string{"/v1/orders/%", "/v1/orders/%/captures", "/v1/orders/%/refunds", "/v1/orders/%/settlement", "/v1/refunds/%"} {
		exists, missing := "8472", "9999"
		if path == "/v1/refunds/%" {
			exists, missing = id, "rf_1"
		}
		get := func(item, tenant string) response {
			return send(t, s.URL, request{method: http.MethodGet, path: strings.Replace(path, "%", item, 1) + "?tenant=" + tenant, token: sandboxtest.ReadKey})
		}
		if own := get(exists, "acme-in"); own.status != http.StatusOK || strings.Contains(own.body, "cust_5519") {
			t.Errorf("%s: %d %s", path, own.status, own.body)
		}
		foreign, unknown := get(exists, "globex"), get(missing, "globex")
		if foreign.status != http.StatusNotFound || foreign.body != unknown.body {
			t.Errorf("%s: foreign %d %s, unknown %d %s", path, foreign.status, foreign.body, unknown.status, unknown.body)
		}
	}
}

func TestRequestsBesideTheAPI(t *testing.T) {
	t.Parallel()
	s := sandboxtest.Start(t)
	s.Load(t, sandboxtest.Duplicate())
	for name, c := range map[string]struct {
		request
		status int
		code   string
	}{
		"unknown path":    {request{method: "GET", path: "/v1/payouts"}, 404, "not_found"},
		"wrong method":    {request{method: "DELETE", path: "/v1/refunds"}, 405, "method_not_allowed"},
		"no tenant":       {request{method: "GET", path: "/v1/orders/8472", token: sandboxtest.ReadKey}, 400, "invalid_request"},
		"two tenants":     {request{method: "GET", path: "/v1/orders/8472?tenant=a&tenant=b", token: sandboxtest.ReadKey}, 400, "invalid_request"},
		"wild tenant":     {request{method: "GET", path: "/v1/orders/8472?tenant=*", token: sandboxtest.ReadKey}, 400, "invalid_request"},
		"other parameter": {request{method: "GET", path: "/v1/orders/8472?tenant=acme-in&limit=1", token: sandboxtest.ReadKey}, 400, "invalid_request"},
		"too large":       {refund("k", `{"reason":"`+strings.Repeat("x", 17<<10)+`"}`), 413, "body_too_large"},
		"no key":          {request{method: "POST", path: "/v1/refunds", token: sandboxtest.RefundWriteKey, body: duplicateRefund}, 400, "idempotency_key_required"},
		"empty key":       {refund("", duplicateRefund), 400, "idempotency_key_invalid"},
		"long key":        {refund(strings.Repeat("k", 256), duplicateRefund), 400, "idempotency_key_invalid"},
		"spaced key":      {refund("a b", duplicateRefund), 400, "idempotency_key_invalid"},
		"form body":       {request{method: "POST", path: "/v1/refunds", token: sandboxtest.RefundWriteKey, body: "a=b", header: http.Header{"Content-Type": {"application/x-www-form-urlencoded"}}}, 415, "unsupported_media_type"},
		"unknown refund":  {request{method: "POST", path: "/v1/admin/refunds/rf_1", token: sandboxtest.AdminKey, body: `{"status":"failed"}`}, 404, "refund_not_found"},
		"no status":       {request{method: "POST", path: "/v1/admin/refunds/rf_1", token: sandboxtest.AdminKey, body: `{}`}, 400, "invalid_request"},
	} {
		got := send(t, s.URL, c.request)
		if got.status != c.status || got.code(t) != c.code {
			t.Errorf("%s: %d %s, want %d %s", name, got.status, got.body, c.status, c.code)
		}
		if c.status == 405 && got.header.Get("Allow") != "GET, POST" {
			t.Errorf("%s: Allow is %q", name, got.header.Get("Allow"))
		}
	}
	if n := len(s.Ledger(t).Refunds); n != 0 {
		t.Errorf("%d refunds were made", n)
	}
}

func TestStartRefusesBadConfiguration(t *testing.T) {
	t.Parallel()
	good := sandboxtest.Start(t).Config
	for name, edit := range map[string]func(*sandbox.Config){
		"no file":  func(c *sandbox.Config) { c.File = "" },
		"no clock": func(c *sandbox.Config) { c.Now = nil },
		"unknown scope": func(c *sandbox.Config) {
			c.Keys = []sandbox.Key{{Name: "x", Scope: "all", SHA256: sandbox.HashKey("x")}}
		},
		"plain key":      func(c *sandbox.Config) { c.Keys = []sandbox.Key{{Name: "x", Scope: "read", SHA256: "secret"}} },
		"same name":      func(c *sandbox.Config) { c.Keys = append(sandboxtest.Keys(), sandboxtest.Keys()[0]) },
		"no directory":   func(c *sandbox.Config) { c.File = t.TempDir() + "/none/sandbox.jsonl" },
		"negative first": func(c *sandbox.Config) { c.FirstRefund = -1 },
	} {
		c := good
		c.File = t.TempDir() + "/sandbox.jsonl"
		edit(&c)
		if s, err := sandbox.Start(t.Context(), c); err == nil {
			t.Errorf("%s: started", name)
			_ = s.Close()
		}
	}
}
