package sandbox_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/amends-dev/amends/internal/sandbox"
	"github.com/amends-dev/amends/internal/sandbox/sandboxtest"
)

// node is a part of the document.
type node = map[string]any

// document is the served API document.
type document struct{ root node }

func readDocument(t *testing.T, s *sandboxtest.Sandbox) document {
	t.Helper()
	got := send(t, s.URL, request{method: "GET", path: "/openapi.yaml"})
	var d document
	if err := yaml.Unmarshal([]byte(got.body), &d.root); err != nil {
		t.Fatal(err)
	}
	return d
}

// at follows names through the document, and references on the way.
func (d document) at(n node, path ...string) node {
	for _, name := range path {
		n = d.resolve(n)
		next, _ := n[name].(node)
		n = next
	}
	return d.resolve(n)
}

func (d document) resolve(n node) node {
	ref, ok := n["$ref"].(string)
	if !ok {
		return n
	}
	return d.at(d.root, strings.Split(strings.TrimPrefix(ref, "#/"), "/")...)
}

// check compares a JSON value with a schema, as far as this document uses them.
func (d document) check(where string, schema node, v any) []string {
	schema = d.resolve(schema)
	var types []string
	switch t := schema["type"].(type) {
	case string:
		types = []string{t}
	case []any:
		for _, one := range t {
			types = append(types, fmt.Sprint(one))
		}
	}
	if !slices.Contains(types, jsonType(v)) {
		return []string{fmt.Sprintf("%s: %s, documented as %v", where, jsonType(v), types)}
	}
	var wrong []string
	switch v := v.(type) {
	case string:
		if p, ok := schema["pattern"].(string); ok && !regexp.MustCompile(p).MatchString(v) {
			wrong = append(wrong, fmt.Sprintf("%s: %q does not match %s", where, v, p))
		}
	case []any:
		items, _ := schema["items"].(node)
		for i, item := range v {
			wrong = append(wrong, d.check(fmt.Sprintf("%s[%d]", where, i), items, item)...)
		}
	case node:
		properties, _ := schema["properties"].(node)
		required, _ := schema["required"].([]any)
		for _, name := range required {
			if _, ok := v[name.(string)]; !ok {
				wrong = append(wrong, fmt.Sprintf("%s: %v is missing", where, name))
			}
		}
		for name, value := range v {
			p, ok := properties[name].(node)
			if !ok {
				wrong = append(wrong, fmt.Sprintf("%s: %s is not documented", where, name))
				continue
			}
			wrong = append(wrong, d.check(where+"."+name, p, value)...)
		}
	}
	return wrong
}

func jsonType(v any) string {
	switch v.(type) {
	case nil:
		return "null"
	case bool:
		return "boolean"
	case json.Number:
		return "integer"
	case string:
		return "string"
	case []any:
		return "array"
	}
	return "object"
}

func TestEveryRouteIsDocumented(t *testing.T) {
	t.Parallel()
	d := readDocument(t, sandboxtest.Start(t))
	documented := map[string]bool{}
	for path, item := range d.at(d.root, "paths") {
		for method := range item.(node) {
			if method != "parameters" {
				documented[strings.ToUpper(method)+" "+path] = true
			}
		}
	}
	for _, op := range sandbox.Operations() {
		name := op.Method + " " + op.Path
		if !documented[name] {
			t.Errorf("%s is not documented", name)
			continue
		}
		delete(documented, name)
		operation := d.at(d.root, "paths", op.Path, strings.ToLower(op.Method))
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
		get("/v1/orders/{order}", "8472", sandboxtest.ReadKey),
		get("/v1/orders/{order}", "9001", sandboxtest.ReadKey),
		get("/v1/orders/{order}/captures", "8472", sandboxtest.ReadKey),
		get("/v1/orders/{order}/refunds", "8472", sandboxtest.ReadKey),
		get("/v1/orders/{order}/settlement", "8472", sandboxtest.ReadKey),
		get("/v1/refunds/{refund}", "rf_5521", sandboxtest.ReadKey),
		get("/v1/admin/ledger", "", sandboxtest.AdminKey),
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
		responses := d.at(d.root, "paths", st.path, strings.ToLower(st.method), "responses")
		documented := d.at(responses, fmt.Sprint(got.status))
		if got.status >= http.StatusBadRequest {
			documented = d.at(responses, "default")
		}
		schema := d.at(documented, "content", got.header.Get("Content-Type"), "schema")
		if schema == nil {
			t.Errorf("%s: status %d as %s is not documented", name, got.status, got.header.Get("Content-Type"))
			continue
		}
		dec := json.NewDecoder(strings.NewReader(got.body))
		dec.UseNumber()
		var v any
		if err := dec.Decode(&v); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		for _, wrong := range d.check(name, schema, v) {
			t.Error(wrong)
		}
	}
	for _, op := range sandbox.Operations() {
		if !called[op.Method+" "+op.Path] {
			t.Errorf("%s %s was not called", op.Method, op.Path)
		}
	}
}
