package sandbox

import (
	_ "embed" // the API document
	"net/http"
	"strings"
)

// Body limits. A ledger is large because a load run brings thousands of orders.
const (
	maxBody   = 16 << 10
	maxLedger = 32 << 20
)

//go:embed openapi.yaml
var openAPI []byte

// route is one operation. The table below is the whole API: the mux is built
// from it and the tests compare it with openapi.yaml.
type route struct {
	method, path string
	// name is what faults call it; those that have none never fail by a fault.
	name string
	// scopes that may call it; empty is open to everybody.
	scopes []Scope
	// limit on the body in bytes; 0 reads none.
	limit  int64
	handle func(*Server, *call) (answer, error)
}

// Names of the routes that faults can strike.
const (
	routeOwner        = "orders.owner"
	routeOrder        = "orders.read"
	routeCaptures     = "orders.captures"
	routeOrderRefunds = "orders.refunds"
	routeSettlement   = "orders.settlement"
	routeList         = "refunds.list"
	routeRefund       = "refunds.read"
	routeCreate       = "refunds.create"
)

var routes = []route{
	{method: http.MethodPost, path: "/v1/orders/verify-owner", name: routeOwner, scopes: []Scope{ScopeVerifyOwner}, limit: maxBody, handle: (*Server).verifyOwner},
	{method: http.MethodGet, path: "/v1/orders/{order}", name: routeOrder, scopes: []Scope{ScopeRead, ScopeRefundWrite}, handle: (*Server).readOrder},
	{method: http.MethodGet, path: "/v1/orders/{order}/captures", name: routeCaptures, scopes: []Scope{ScopeRead}, handle: (*Server).listCaptures},
	{method: http.MethodGet, path: "/v1/orders/{order}/refunds", name: routeOrderRefunds, scopes: []Scope{ScopeRead, ScopeRefundWrite}, handle: (*Server).listRefunds},
	{method: http.MethodGet, path: "/v1/orders/{order}/settlement", name: routeSettlement, scopes: []Scope{ScopeRead}, handle: (*Server).getSettlement},
	{method: http.MethodGet, path: "/v1/refunds", name: routeList, scopes: []Scope{ScopeRead, ScopeRefundWrite}, handle: (*Server).listTenantRefunds},
	{method: http.MethodGet, path: "/v1/refunds/{refund}", name: routeRefund, scopes: []Scope{ScopeRead, ScopeRefundWrite}, handle: (*Server).getRefund},
	{method: http.MethodPost, path: "/v1/refunds", name: routeCreate, scopes: []Scope{ScopeRefundWrite}, limit: maxBody, handle: (*Server).createRefund},
	{method: http.MethodGet, path: "/v1/admin/ledger", scopes: []Scope{ScopeAdmin}, handle: (*Server).readLedger},
	{method: http.MethodPut, path: "/v1/admin/ledger", scopes: []Scope{ScopeAdmin}, limit: maxLedger, handle: (*Server).mergeLedger},
	{method: http.MethodPost, path: "/v1/admin/refunds/{refund}", scopes: []Scope{ScopeAdmin}, limit: maxBody, handle: (*Server).setRefundStatus},
	{method: http.MethodPost, path: "/v1/admin/captures/{payment}", scopes: []Scope{ScopeAdmin}, limit: maxBody, handle: (*Server).setCaptureStatus},
	{method: http.MethodGet, path: "/v1/admin/faults", scopes: []Scope{ScopeAdmin}, handle: (*Server).readFaults},
	{method: http.MethodPut, path: "/v1/admin/faults", scopes: []Scope{ScopeAdmin}, limit: maxBody, handle: (*Server).putFaults},
	{method: http.MethodDelete, path: "/v1/admin/faults", scopes: []Scope{ScopeAdmin}, handle: (*Server).clearFaults},
	{method: http.MethodGet, path: "/openapi.yaml", handle: (*Server).document},
}

// mux serves the table, and problem documents for everything beside it.
func (s *Server) mux() *http.ServeMux {
	m := http.NewServeMux()
	for _, rt := range routes {
		m.HandleFunc(rt.method+" "+rt.path, func(w http.ResponseWriter, r *http.Request) { s.serve(rt, w, r) })
	}
	m.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) { beside(m, r).write(w) })
	return m
}

// beside says why a request meets no route.
func beside(m *http.ServeMux, r *http.Request) *problem {
	var allowed []string
	for _, method := range []string{http.MethodGet, http.MethodPost, http.MethodPut, http.MethodDelete} {
		other := r.Clone(r.Context())
		other.Method = method
		if _, pattern := m.Handler(other); pattern != "/" {
			allowed = append(allowed, method)
		}
	}
	if allowed == nil {
		return &problem{status: http.StatusNotFound, code: codeNotFound}
	}
	return &problem{status: http.StatusMethodNotAllowed, code: codeMethodNotAllowed, allow: strings.Join(allowed, ", ")}
}
