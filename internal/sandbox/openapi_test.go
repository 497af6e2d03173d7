package sandbox_test

import (
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/amends-dev/amends/internal/openapitest"
	"github.com/amends-dev/amends/internal/sandbox"
	"github.com/amends-dev/amends/internal/sandbox/sandboxtest"
)

func readDocument(t *testing.T, s *sandboxtest.Sandbox) openapitest.Document {
	t.Helper()
	d, err := openapitest.Parse([]byte(send(t, s.URL, request{method: "GET", path: "/openapi.yaml"}).body))
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func TestEveryRouteIsDocumented(t *testing.T) {
	t.Parallel()
	d := readDocument(t, sandboxtest.Start(t))
	documented := map[string]bool{}
	for _, op := range d.Operations() {
		documented[op.String()] = true
	}
	for _, op := range sandbox.Operations() {
		name := op.Method + " " + op.Path
		if !documented[name] {
			t.Errorf("%s is not documented", name)
			continue
		}
		delete(documented, name)
		operation := d.Operation(openapitest.Operation{Method: op.Method, Path: op.Path})
		var scopes []sandbox.Scope
		for _, s := range list(operation["x-scopes"]) {
			scopes = append(scopes, sandbox.Scope(s.(string)))
		}
		if !reflect.DeepEqual(scopes, op.Scopes) {
			t.Errorf("%s: scopes %v, documented %v", name, op.Scopes, scopes)
		}
		if operation["operationId"] == nil || operation["summary"] == nil {
			t.Errorf("%s has no operationId or summary", name)
		}
	}
	if len(documented) > 0 {
		t.Errorf("documented and not served: %v", slices.Collect(maps.Keys(documented)))
	}
}

func list(v any) []any { l, _ := v.([]any); return l }

// Every operation is called and answered with exactly the documented fields.
func TestAnswersHaveTheDocumentedFields(t *testing.T) {
	t.Parallel()
	s := sandboxtest.Start(t)
	d := readDocument(t, s)
	ledger := strings.Replace(caseLedger, `"authorized", "captured": false, "settled": false, "captured_at": null, "settled_at": null`,
		`"settled", "captured": true, "settled": true, "captured_at": "2026-03-10T09:00:07Z", "settled_at": "2026-03-11T02:00:00Z"`, 1)
	type step struct {
		path string // as documented
		request
	}
	get := func(path, item, token string) step {
		concrete := regexp.MustCompile(`\{.*\}`).ReplaceAllString(path, item)
		if token != sandboxtest.AdminKey {
			concrete += "?tenant=acme-in"
		}
		return step{path, request{method: "GET", path: concrete, token: token}}
	}
	steps := []step{
		{"/v1/admin/ledger", request{method: "PUT", path: "/v1/admin/ledger", token: sandboxtest.AdminKey, body: ledger}},
		{"/v1/orders/verify-owner", request{method: "POST", path: "/v1/orders/verify-owner", token: sandboxtest.VerifyOwnerKey, body: `{"tenant":"acme-in","order_id":"8472","customer_id":"cust_5519"}`}},
		{"/v1/refunds", refund("k", duplicateRefund)},
		{"/v1/refunds", refund("k", duplicateRefund)},
		{"/v1/admin/refunds/{refund}", request{method: "POST", path: "/v1/admin/refunds/rf_5521", token: sandboxtest.AdminKey, body: `{"status":"succeeded"}`}},
		{"/v1/admin/captures/{payment}", request{method: "POST", path: "/v1/admin/captures/pay_8472_a", token: sandboxtest.AdminKey, body: `{"tenant":"acme-in","status":"settled"}`}},
		get("/v1/orders/{order}", "8472", sandboxtest.ReadKey),
		get("/v1/orders/{order}", "9001", sandboxtest.ReadKey),
		get("/v1/orders/{order}/captures", "8472", sandboxtest.ReadKey),
		get("/v1/orders/{order}/refunds", "8472", sandboxtest.ReadKey),
		get("/v1/orders/{order}/settlement", "8472", sandboxtest.ReadKey),
		get("/v1/refunds/{refund}", "rf_5521", sandboxtest.ReadKey),
		get("/v1/refunds", "", sandboxtest.ReadKey),
		get("/v1/admin/ledger", "", sandboxtest.AdminKey),
		{"/v1/admin/faults", request{method: "PUT", path: "/v1/admin/faults", token: sandboxtest.AdminKey, body: `{"faults":[
			{"kind":"unknown_enum","on":["orders.captures"],"tenant":"acme-in","order":"8472","payment":"pay_8472_a","times":2,"status":"odd","record":"capture"},
			{"kind":"delay","for":"1ms","when":"after","reference":"r"},{"kind":"error_after","code":502,"times":1},{"kind":"webhook_copies","copies":2}]}`}},
		get("/v1/orders/{order}/captures", "8472", sandboxtest.ReadKey),
		get("/v1/admin/faults", "", sandboxtest.AdminKey),
		{"/v1/refunds", refund("k", duplicateRefund)},
		{"/v1/admin/faults", request{method: "DELETE", path: "/v1/admin/faults", token: sandboxtest.AdminKey}},
		{"/v1/admin/faults", request{method: "PUT", path: "/v1/admin/faults", token: sandboxtest.AdminKey, body: `{"faults":[{"kind":"gremlins"}]}`}},
		// Problems.
		get("/v1/orders/{order}", "77", sandboxtest.ReadKey),
		get("/v1/orders/{order}", "8472", "wrong"),
		{"/v1/refunds", refund("k2", `{"x":1}`)},
	}
	called := map[string]bool{"GET /openapi.yaml": true}
	for _, st := range steps {
		name := st.method + " " + st.path
		called[name] = true
		got := send(t, s.URL, st.request)
		_, wrong := d.Compare(openapitest.Operation{Method: st.method, Path: st.path}, openapitest.Answer{Status: got.status, Header: got.header, Body: got.body})
		for _, w := range wrong {
			t.Error(w)
		}
	}
	for _, op := range sandbox.Operations() {
		if !called[op.Method+" "+op.Path] {
			t.Errorf("%s %s was not called", op.Method, op.Path)
		}
	}
}
