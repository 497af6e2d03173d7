package gateway

import (
	"net/http"
	"slices"
	"strings"

	"github.com/amends-dev/amends/internal/deskapi"
	"github.com/amends-dev/amends/internal/edge"
)

// operation is one method of one path of the API.
type operation struct {
	method, path string
	handler      http.Handler
}

// operations lists the API: what is here is what is served and what openapi.yaml
// describes.
func (g *gateway) operations() []operation {
	post := func(h handler) http.Handler { return g.admit(g.posts, &g.requests, h) }
	read := func(h handler) http.Handler { return g.admit(g.reads, &g.requests, h) }
	return []operation{
		{http.MethodPost, "/v1/cases", post(g.openCase)},
		{http.MethodGet, "/v1/cases", read(g.listCases)},
		{http.MethodGet, "/v1/cases/{id}", read(g.showCase)},
		{http.MethodGet, "/v1/cases/{id}/events", g.admit(g.reads, &g.streams, g.followCase)},
		{http.MethodGet, "/v1/cases/{id}/deliveries", read(g.showDeliveries)},
		{http.MethodPost, "/v1/cases/{id}/messages", post(g.addMessage)},
		{http.MethodPost, "/v1/cases/{id}/cancel", post(g.cancelCase)},
		{http.MethodGet, "/v1/requests/{id}", read(g.showRequest)},
		{http.MethodPost, deskapi.ProviderEventsPath, edge.Handler(g.takeEvent)},
		{http.MethodGet, "/openapi.json", http.HandlerFunc(g.describe)},
	}
}

// route serves the operations; what is left are problems too.
func route(ops []operation) http.Handler {
	mux := http.NewServeMux()
	allow := map[string][]string{}
	for _, op := range ops {
		mux.Handle(op.method+" "+op.path, op.handler)
		allow[op.path] = append(allow[op.path], op.method)
		if op.method == http.MethodGet {
			allow[op.path] = append(allow[op.path], http.MethodHead)
		}
	}
	for path, methods := range allow {
		slices.Sort(methods)
		mux.Handle(path, edge.MethodNotAllowed(strings.Join(methods, ", ")))
	}
	mux.Handle("/", edge.NotFound)
	return mux
}
