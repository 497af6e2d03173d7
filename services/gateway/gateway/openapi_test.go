package gateway

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/amends-dev/amends/internal/bus"
	"github.com/amends-dev/amends/internal/deskapi"
	"github.com/amends-dev/amends/internal/envelope"
	"github.com/amends-dev/amends/internal/ident"
	"github.com/amends-dev/amends/internal/openapitest"
	"github.com/amends-dev/amends/internal/readmodel"
	"github.com/amends-dev/amends/internal/roles"
	"github.com/amends-dev/amends/internal/subject"
	"github.com/amends-dev/amends/internal/webhook"
	amendsv1 "github.com/amends-dev/amends/proto/amends/v1"
)

func readAPI(t *testing.T) openapitest.Document {
	t.Helper()
	text, err := openAPIJSON()
	if err != nil {
		t.Fatal(err)
	}
	d, err := openapitest.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func TestEveryRouteIsDocumented(t *testing.T) {
	t.Parallel()
	var served, documented, ids []string
	for _, op := range new(gateway).operations() {
		served = append(served, op.method+" "+op.path)
	}
	api := readAPI(t)
	for _, op := range api.Operations() {
		documented = append(documented, op.String())
		id, _ := api.Operation(op)["operationId"].(string)
		if id == "" || slices.Contains(ids, id) || api.Operation(op)["summary"] == nil {
			t.Errorf("%s: operationId %q; want one of its own, and a summary", op, id)
		}
		ids = append(ids, id)
	}
	slices.Sort(served)
	if !slices.Equal(served, documented) {
		t.Errorf("served     %q\ndocumented %q", served, documented)
	}
}

// The schemas have the fields of the types that are encoded, and require those
// that are always there.
func TestSchemasAreTheTypes(t *testing.T) {
	t.Parallel()
	api := readAPI(t)
	types := map[string]any{
		"Post": deskapi.Post{}, "Accepted": deskapi.Accepted{}, "Message": deskapi.Message{}, "AcceptedMessage": deskapi.AcceptedMessage{},
		"Links": deskapi.Links{}, "View": deskapi.View{}, "CaseSummary": deskapi.CaseSummary{}, "CaseList": deskapi.CaseList{},
		"Request": deskapi.Request{}, "Problem": deskapi.Problem{}, "Cancel": struct{}{},
		"Deliveries": deskapi.Deliveries{}, "Delivery": deskapi.Delivery{}, "DeliveryAttempt": deskapi.DeliveryAttempt{},
		"ProviderEvent": struct { // as decodeEvent reads it
			Type      string     `json:"type"`
			Timestamp *time.Time `json:"timestamp,omitempty"`
			Data      any        `json:"data"`
		}{},
	}
	for name := range api.At("components", "schemas") {
		schema := api.At("components", "schemas", name)
		if schema["type"] != "object" {
			continue
		}
		v, ok := types[name]
		if !ok {
			t.Errorf("schema %s: name its type here", name)
			continue
		}
		delete(types, name)
		var fields, always []string
		for f := range reflect.TypeOf(v).Fields() {
			field, option, _ := strings.Cut(f.Tag.Get("json"), ",")
			if field == "-" || f.Tag.Get("api") == "console" {
				continue
			}
			if fields = append(fields, field); option == "" {
				always = append(always, field)
			}
		}
		documented := slices.Sorted(maps.Keys(api.At("components", "schemas", name, "properties")))
		var required []string
		if list, ok := schema["required"].([]any); ok {
			for _, field := range list {
				required = append(required, fmt.Sprint(field))
			}
		}
		for _, list := range [][]string{fields, always, required} {
			slices.Sort(list)
		}
		if !slices.Equal(fields, documented) || !slices.Equal(always, required) {
			t.Errorf("%s: has %q, always %q\ndocumented %q, required %q", name, fields, always, documented, required)
		}
	}
	for name := range types {
		t.Errorf("there is no schema %s", name)
	}
}

func TestTheDocumentIsServedToAnybody(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	a := ask(t, http.MethodGet, d.gateway(t)+deskapi.OpenAPIPath, "", "")
	var doc struct{ OpenAPI string }
	if err := json.Unmarshal([]byte(a.body), &doc); err != nil || a.status != http.StatusOK || doc.OpenAPI != "3.1.0" || a.header.Get("Content-Type") != "application/json" {
		t.Errorf("%d %v, %v", a.status, a.header, err)
	}
}

// broken is the real broker that refuses what it is told to.
type broken struct {
	broker
	send, read error
}

func (b *broken) Send(ctx context.Context, subj string, env *amendsv1.Envelope, payload proto.Message, opts ...bus.PublishOption) (uint64, error) {
	if b.send != nil {
		return 0, b.send
	}
	return b.broker.Send(ctx, subj, env, payload, opts...)
}

func (b *broken) LastDirect(ctx context.Context, stream, subj string) (bus.Stored, error) {
	if b.read != nil {
		return bus.Stored{}, b.read
	}
	return b.broker.LastDirect(ctx, stream, subj)
}

// States a gateway is probed in.
const (
	sound      = ""
	brokerless = "the broker is away"
	faulty     = "what it makes is refused"
	slow       = "over its rate limits"
	full       = "all places taken"
	busy       = "the desk is busy"
	emptied    = "the read model is empty"
	unprovided = "no webhooks of a provider"
)

// tokens of a login's customers, by what is wrong with them.
const (
	noScopeToken = "without the scope"
	tenantToken  = "of another tenant"
	nobodyToken  = "of no customer"
	goodToken    = "of the customer"
	awayToken    = "of an issuer that is away"
)

// logins gives such tokens and the channels they are for.
func logins(t *testing.T) (map[string]string, func(*Config)) {
	t.Helper()
	m, away := openID(t, ""), openID(t, "")
	tokens := map[string]string{
		noScopeToken: issued(t, m, map[string]any{"scope": "openid"}), tenantToken: issued(t, m, map[string]any{"tid": "other"}),
		nobodyToken: issued(t, m, map[string]any{"sub": "8472.>"}), goodToken: issued(t, m, nil), awayToken: issued(t, away, nil),
	}
	if err := away.Shutdown(); err != nil {
		t.Fatal(err)
	}
	strict := func(ch *Channel) {
		ch.Tenant, ch.OIDC.TenantClaim, ch.OIDC.Tenants, ch.OIDC.RequiredScope = "", "tid", []string{"acme-in"}, "refunds"
	}
	return tokens, func(c *Config) {
		withLogin(m, strict)(c)
		withLogin(away, func(ch *Channel) { ch.Name = "away" })(c)
	}
}

// gateways gives one of each state, by its address.
func (d *desk) gateways(t *testing.T, login func(*Config)) map[string]string {
	t.Helper()
	conn := d.broker.Connect(roles.Gateway)
	urls := map[string]string{}
	serve := func(state string, b broker, deps Deps, change func(*Config), alter func(*gateway)) *gateway {
		g, h := d.handlerWith(t.Context(), t, b, deps, change)
		secrets, err := webhook.ParseSecrets(providerKey)
		if err != nil {
			t.Fatal(err)
		}
		g.provider = &hookSource{secrets: secrets, tenants: []string{"acme-in"}}
		alter(g)
		s := httptest.NewServer(h)
		t.Cleanup(s.Close)
		urls[state] = s.URL
		return g
	}
	as, is := func(*Config) {}, func(*gateway) {}
	g := serve(sound, conn, Deps{}, login, is)
	readyModel(t, g)
	ctx, cancel := context.WithCancel(t.Context())
	var projecting sync.WaitGroup
	projecting.Go(func() { g.projection.run(ctx) })
	t.Cleanup(func() {
		cancel()
		projecting.Wait()
	})
	serve(brokerless, &broken{broker: conn, send: bus.ErrUnavailable, read: bus.ErrUnavailable}, Deps{}, as, is)
	serve(faulty, &broken{broker: conn, send: &envelope.Rejection{Reason: "too_large"}}, Deps{}, as, is)
	serve(full, conn, Deps{}, as, func(g *gateway) { g.requests.limit, g.streams.limit = 0, 0 })
	serve(busy, conn, Deps{}, as, func(g *gateway) { g.pressure.read, g.pressure.load = time.Now().Add(time.Hour), g.pressure.limit })
	serve(unprovided, conn, Deps{}, as, func(g *gateway) { g.provider = nil })
	serve(emptied, conn, Deps{}, as, func(g *gateway) { g.model = readmodel.New(d.client(t), "other") })
	// Once refused it stays so: its clock stands still.
	at := time.Now()
	serve(slow, conn, Deps{Now: func() time.Time { return at }}, func(c *Config) {
		c.Limits.CustomerPosts, c.Limits.CustomerReads = Rate{1, 1}, Rate{1, 1}
	}, func(g *gateway) { g.porch.strangers.SetBurstAt(at, 0) })
	for range 2 {
		ask(t, http.MethodGet, urls[slow]+"/v1/cases", webKey, "")
		ask(t, http.MethodPost, urls[slow]+"/v1/cases", webKey, "")
	}
	return urls
}

// probe is one request and the way it must end.
type probe struct {
	state  string
	op     string // as documented
	id     string // in place of {id}
	query  string
	token  string // webKey when empty
	body   string
	key    string
	header string // name and value
	signed bool   // as the provider signs
	status int
	code   deskapi.Code
}

const (
	opPost    = "POST /v1/cases"
	opList    = "GET /v1/cases"
	opShow    = "GET /v1/cases/{id}"
	opEvents  = "GET /v1/cases/{id}/events"
	opMessage = "POST /v1/cases/{id}/messages"
	opCancel  = "POST /v1/cases/{id}/cancel"
	opRequest = "GET /v1/requests/{id}"
	opHooks   = "GET /v1/cases/{id}/deliveries"
	opTell    = "POST /v1/provider/events"
)

// probes ask every operation for every documented outcome. A new operation needs
// its lines in openapi.yaml and its probes here.
func probes() []probe {
	out := []probe{
		{op: "GET /openapi.json", status: 200},
		{op: opPost, body: founding, key: "k-1", status: 202},
		{op: opPost, body: `{"message":"m","case_id":"req-9"}`, key: "k-1", status: 403, code: deskapi.CodeCaseIDNotAllowed},
		{op: opPost, body: `{"message":"another"}`, key: "k-seen", status: 409, code: deskapi.CodeKeyReused},
		{op: opPost, body: founding, key: "k-unseen", status: 503, code: deskapi.CodeNotConfirmed},
		{state: busy, op: opPost, body: founding, key: "k-2", status: 503, code: deskapi.CodeOverloaded},
		{op: opList, status: 200},
		{op: opList, query: "?limit=1", status: 200},
		{op: opList, query: "?limit=0", status: 400, code: deskapi.CodeQueryInvalid},
		{state: emptied, op: opList, status: 503, code: deskapi.CodeListUnavailable},
		{op: opShow, id: "req-8472", status: 200},
		{op: opShow, id: "req-8472", header: `If-None-Match="5"`, status: 304},
		{op: opEvents, id: "req-1", status: 200},
		{op: opEvents, id: "req-1", header: "Last-Event-ID=7", status: 204},
		{op: opMessage, id: "req-8472", body: `{"message":"it is 8472"}`, key: "k-1", status: 202},
		{op: opMessage, id: "req-8472", body: `{"message":"it is 8473"}`, key: "k-1", status: 409, code: deskapi.CodeKeyReused},
		{op: opMessage, id: "req-8472", body: `{"message":"it is 8472"}`, key: "k-unseen", status: 503, code: deskapi.CodeNotConfirmed},
		{op: opCancel, id: "req-8472", key: "k-1", status: 202},
		{op: opCancel, id: "req-1", key: "k-1", status: 409, code: deskapi.CodeCaseClosed},
		{op: opRequest, id: "req-8472", status: 200},
		{op: opHooks, id: "req-8472", status: 200},
		{op: opTell, body: eventBody("capture.settled", "8472", "pay_1", ""), signed: true, status: 202},
		{op: opTell, body: eventBody("capture.settled", "8472", "pay_1", ""), status: 401, code: deskapi.CodeUnauthenticated},
		{op: opTell, body: "[]", signed: true, status: 400, code: deskapi.CodeBodyInvalid},
		{op: opTell, body: strings.Repeat("x", maxEvent+1), status: 413, code: deskapi.CodeBodyTooLarge},
		{state: unprovided, op: opTell, body: "{}", status: 404, code: deskapi.CodeNotFound},
		{state: full, op: opTell, body: "{}", signed: true, status: 503, code: deskapi.CodeOverloaded},
		{state: slow, op: opTell, body: "{}", signed: true, status: 429, code: deskapi.CodeRateLimited},
		{state: emptied, op: opTell, body: eventBody("capture.settled", "8472", "pay_1", ""), signed: true, status: 503, code: deskapi.CodeUnavailable},
	}
	for _, op := range []string{opPost, opList, opShow, opEvents, opMessage, opCancel, opRequest, opHooks} {
		good := probe{op: op, id: "req-8472", body: `{"message":"m"}`, key: "k-1"}
		if op == opCancel {
			good.body = "{}"
		}
		add := func(status int, code deskapi.Code, change func(*probe)) {
			p := good
			p.status, p.code = status, code
			change(&p)
			out = append(out, p)
		}
		add(401, deskapi.CodeUnauthenticated, func(p *probe) { p.token = "nobody" })
		add(400, deskapi.CodeCustomerMissing, func(p *probe) { p.token = appKey })
		add(403, deskapi.CodeInsufficient, func(p *probe) { p.token = noScopeToken })
		add(403, deskapi.CodeTenantNotAllowed, func(p *probe) { p.token = tenantToken })
		add(403, deskapi.CodeCustomerInvalid, func(p *probe) { p.token = nobodyToken })
		add(403, deskapi.CodeCustomerNotAllowed, func(p *probe) { p.token, p.header = goodToken, deskapi.HeaderCustomer+"=cust_7001" })
		add(503, deskapi.CodeUnavailable, func(p *probe) { p.token = awayToken })
		add(429, deskapi.CodeRateLimited, func(p *probe) { p.state = slow })
		add(503, deskapi.CodeOverloaded, func(p *probe) { p.state = full })
		if op != opList {
			add(503, deskapi.CodeUnavailable, func(p *probe) { p.state = brokerless })
		}
		if strings.Contains(op, "{id}") {
			add(404, deskapi.CodeNotFound, func(p *probe) { p.id = "req-none" })
		}
		if !strings.HasPrefix(op, http.MethodPost) {
			continue
		}
		add(400, deskapi.CodeKeyMissing, func(p *probe) { p.key = "" })
		add(400, deskapi.CodeKeyInvalid, func(p *probe) { p.key = "a b" })
		add(400, deskapi.CodeBodyInvalid, func(p *probe) { p.body = "[]" })
		add(413, deskapi.CodeBodyTooLarge, func(p *probe) { p.body = strings.Repeat("x", maxBody+1) })
		add(500, deskapi.CodeInternal, func(p *probe) { p.state, p.key = faulty, "k-3" })
	}
	return out
}

// Status, code, headers and body are as documented, and nothing that is
// documented is left out.
func TestAnswersAreAsDocumented(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	tokens, login := logins(t)
	urls := d.gateways(t, login)
	for _, v := range []*amendsv1.CaseView{view("req-8472", 5, "AWAITING_APPROVAL"), view("req-1", 7, "VERIFIED_CLOSED")} {
		v.OrderId, v.Next, v.NextAt, v.ContinuedByCaseId = "8472", "approval", v.GetUpdatedAt(), "req-1-2"
		v.Channel = "web"
		known := laterID(caller{tenant: "acme-in", channel: &Channel{Name: "web"}}, v.GetCaseId(), envelope.CaseMessage, "k-1")
		v.Messages = []*amendsv1.ViewMessage{{MessageId: known, BodySha256: requestOf(t, `{"message":"it is 8472"}`)}}
		v.Replies = []*amendsv1.ViewReply{{Kind: "acknowledged", Text: "We look into it.", SentAt: v.GetUpdatedAt(), Version: 2}}
		d.publish(t, v)
		d.list(t, v)
	}
	log := mustMarshal(t, &amendsv1.DeliveryLog{Tenant: "acme-in", CaseId: "req-8472", Channel: "web", Deliveries: []*amendsv1.Delivery{{
		Version: 2, WebhookId: "msg_1", Kind: "acknowledged", Status: amendsv1.DeliveryStatus_DELIVERY_STATUS_PENDING, Begun: 1, CreatedAt: nowStamp(), NextAt: nowStamp(),
		Attempts: []*amendsv1.DeliveryAttempt{{Number: 1, At: nowStamp(), StatusCode: 500, Reason: "status"}, {Number: 2, At: nowStamp(), Reason: "timeout"}},
	}}})
	if _, err := d.broker.Connect(roles.Gateway).Publish(t.Context(), subject.Delivery("acme-in", "req-8472"), log); err != nil {
		t.Fatal(err)
	}
	seen := view(ident.Case("acme-in", "web", deskapi.CasesPath, "k-seen"), 1, "RECEIVED")
	d.publish(t, seen)
	for _, key := range []string{"k-seen", "k-unseen"} {
		if a := ask(t, http.MethodPost, urls[sound]+"/v1/cases", webKey, founding, "Idempotency-Key", key); a.status != http.StatusAccepted {
			t.Fatalf("%d %s", a.status, a.body)
		}
	}
	api := readAPI(t)
	left := map[openapitest.Outcome]bool{}
	for _, o := range api.Outcomes() {
		left[o] = true
	}
	var mu sync.Mutex
	t.Run("probes", func(t *testing.T) {
		for _, p := range probes() {
			t.Run(fmt.Sprint(p.op, " ", p.status, " ", p.code), func(t *testing.T) {
				t.Parallel()
				if token, ok := tokens[p.token]; ok {
					p.token = token
				}
				end := p.send(t, api, urls[p.state])
				mu.Lock()
				defer mu.Unlock()
				delete(left, end)
			})
		}
	})
	for o := range left {
		t.Errorf("%s is documented and was not met", o)
	}
}

// send asks, and compares the answer with the document and with what was expected.
func (p probe) send(t *testing.T, api openapitest.Document, url string) openapitest.Outcome {
	t.Helper()
	method, path, _ := strings.Cut(p.op, " ")
	token := p.token
	if token == "" {
		token = webKey
	}
	var header []string
	if p.key != "" {
		header = append(header, "Idempotency-Key", p.key)
	}
	if p.signed {
		for name, values := range signed(t, "evt_1", p.body) {
			header = append(header, name, values[0])
		}
	}
	if name, value, ok := strings.Cut(p.header, "="); ok {
		header = append(header, name, value)
	}
	a := ask(t, method, url+strings.Replace(path, "{id}", p.id, 1)+p.query, token, p.body, header...)
	end, wrong := api.Compare(openapitest.Operation{Method: method, Path: path}, openapitest.Answer{Status: a.status, Header: a.header, Body: a.body})
	for _, w := range wrong {
		t.Error(w)
	}
	if end.Status != p.status || end.Code != string(p.code) {
		t.Errorf("%s %s, %s: ended as %s, want %d %s: %s", p.op, p.id, p.state, end, p.status, p.code, a.body)
	}
	if end.Status >= http.StatusBadRequest {
		a.problem(t)
	}
	return end
}
