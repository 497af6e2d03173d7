package gateway

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/go-redis/redis_rate/v10"
	"github.com/redis/go-redis/v9"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/amends-dev/amends/internal/bus"
	"github.com/amends-dev/amends/internal/bus/bustest"
	"github.com/amends-dev/amends/internal/deskapi"
	"github.com/amends-dev/amends/internal/readmodel"
	"github.com/amends-dev/amends/internal/roles"
	"github.com/amends-dev/amends/internal/subject"
	amendsv1 "github.com/amends-dev/amends/proto/amends/v1"
)

// API keys of the test channels.
const (
	webKey   = "web-key"   // cust_5519 of acme-in
	otherKey = "other-key" // cust_7001 of acme-in
	appKey   = "app-key"   // any customer of acme-in
	demoKey  = "demo-key"  // cust_5519 of acme-in, names its cases
	betaKey  = "beta-key"  // cust_5519 of beta
)

var openedAt = time.Date(2026, 3, 12, 10, 14, 0, 0, time.UTC)

func hashOf(s string) string {
	sum := sha256.Sum256([]byte(s))
	return hex.EncodeToString(sum[:])
}

// requestOf gives the hash that a body is told by.
func requestOf(t *testing.T, body string) string {
	t.Helper()
	p, problem := decodePost([]byte(body))
	if problem != nil {
		t.Fatal(problem)
	}
	return p.sha256
}

func testConfig(redisAddr string) Config {
	cfg := Defaults()
	cfg.Listen = "127.0.0.1:0"
	cfg.Redis.Addr = redisAddr
	cfg.Limits.RedisTimeout = 5 * time.Second // a busy machine is not a Redis that is away
	plenty := Rate{10000, 10000}
	cfg.Limits.Posts, cfg.Limits.CustomerPosts, cfg.Limits.TenantPosts = plenty, plenty, plenty
	cfg.Limits.Reads, cfg.Limits.CustomerReads, cfg.Limits.TenantReads = plenty, plenty, plenty
	cfg.Channels = []Channel{
		{Name: "web", Tenant: "acme-in", KeySHA256: hashOf(webKey), Customer: "cust_5519"},
		{Name: "web", Tenant: "acme-in", KeySHA256: hashOf(otherKey), Customer: "cust_7001"},
		{Name: "app", Tenant: "acme-in", KeySHA256: hashOf(appKey), MayNameCustomer: true},
		{Name: "demo", Tenant: "acme-in", KeySHA256: hashOf(demoKey), Customer: "cust_5519", MayNameCaseIDs: true},
		{Name: "web", Tenant: "beta", KeySHA256: hashOf(betaKey), Customer: "cust_5519"},
	}
	return cfg
}

// desk is a broker, a Redis and what speaks for the orchestrator.
type desk struct {
	broker *bustest.Broker
	redis  *miniredis.Miniredis
	writes *bus.Conn
}

func newDesk(t *testing.T) *desk {
	t.Helper()
	b := bustest.Desk(t, bustest.Options{RequestTimeout: 2 * time.Second})
	return &desk{broker: b, redis: miniredis.RunT(t), writes: b.Connect(roles.Orchestrator)}
}

// gateway runs a gateway on the service's own credential and gives its address.
func (d *desk) gateway(t *testing.T) string {
	t.Helper()
	return d.gatewayWith(t, func(*Config) {})
}

func (d *desk) gatewayWith(t *testing.T, change func(*Config)) string {
	t.Helper()
	return d.gatewayOf(t, change, Deps{})
}

// gatewayOf gives the gateway some of its collaborators.
func (d *desk) gatewayOf(t *testing.T, change func(*Config), deps Deps) string {
	t.Helper()
	cfg := testConfig(d.redis.Addr())
	change(&cfg)
	if err := cfg.Validate(); err != nil {
		t.Fatal(err)
	}
	ready, ended := make(chan string, 1), make(chan error, 1)
	deps.Bus, deps.Ready = d.broker.Connect(roles.Gateway), func(addr string) { ready <- addr }
	ctx, cancel := context.WithCancel(context.Background())
	go func() { ended <- Run(ctx, cfg, deps) }()
	select {
	case addr := <-ready:
		t.Cleanup(func() {
			cancel()
			if err := <-ended; err != nil {
				t.Errorf("the gateway ended with %v", err)
			}
		})
		return "http://" + addr
	case err := <-ended:
		cancel()
		t.Fatalf("the gateway did not start: %v", err)
		return ""
	}
}

// view gives a view of a case of cust_5519 at acme-in.
func view(caseID string, version uint64, state string) *amendsv1.CaseView {
	v := &amendsv1.CaseView{
		Tenant: "acme-in", CaseId: caseID, RequestId: caseID, CustomerId: "cust_5519", Version: version, State: state,
		OpenedAt: timestamppb.New(openedAt), UpdatedAt: timestamppb.New(openedAt.Add(time.Duration(version) * time.Second)),
		Closed: state == "VERIFIED_CLOSED", TraceId: strings.Repeat("7f", 16), BodySha256: hashOf("the body"),
	}
	for i := uint64(1); i <= version; i++ {
		v.Timeline = append(v.Timeline, &amendsv1.ViewEntry{Version: i, State: state, At: v.GetUpdatedAt()})
	}
	return v
}

func (d *desk) publish(t *testing.T, v *amendsv1.CaseView) {
	t.Helper()
	data, err := proto.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := d.writes.Publish(t.Context(), subject.View(v.GetTenant(), v.GetCaseId()), data); err != nil {
		t.Fatal(err)
	}
}

// recordPosts does what the orchestrator does for a view: version 1 for a post,
// and one more for a message, which the case meets once.
func (d *desk) recordPosts(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	var one sync.Mutex
	go func() {
		ended <- d.writes.Consume(ctx, roles.ConsumerPosts, func(_ context.Context, m *bus.Message) error {
			var v *amendsv1.CaseView
			switch p := m.Payload.(type) {
			case *amendsv1.CaseOpened:
				v = view(m.Parts.CaseID, 1, "RECEIVED")
				v.Tenant, v.CustomerId, v.BodySha256 = m.Parts.Tenant, m.Envelope.GetCustomerId(), p.GetBodySha256()
			case *amendsv1.CustomerMessage:
				one.Lock()
				defer one.Unlock()
				last, err := d.writes.Last(ctx, roles.StreamViews, subject.View(m.Parts.Tenant, m.Parts.CaseID))
				if err != nil {
					return bus.Retry(err)
				}
				v = new(amendsv1.CaseView)
				if err := proto.Unmarshal(last.Data, v); err != nil {
					return err
				}
				if handled(v, m.Envelope.GetMessageId()) != nil {
					return nil
				}
				v.Version++
				v.Messages = append(v.Messages, &amendsv1.ViewMessage{MessageId: m.Envelope.GetMessageId(), BodySha256: p.GetBodySha256()})
			default:
				return nil
			}
			data, err := proto.Marshal(v)
			if err != nil {
				return err
			}
			_, err = d.writes.Publish(ctx, subject.View(v.GetTenant(), v.GetCaseId()), data)
			return err
		}, bus.ConsumeOptions{Workers: 4})
	}()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("the posts' consumer ended with %v", err)
		}
	})
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
		env := new(amendsv1.Envelope)
		if err := proto.Unmarshal(m.Data, env); err != nil {
			t.Fatal(err)
		}
		out = append(out, env)
	}
	return out
}

// answer is a response, read to its end.
type answer struct {
	status int
	header http.Header
	body   string
}

func (a answer) problem(t *testing.T) deskapi.Problem {
	t.Helper()
	var p deskapi.Problem
	if err := json.Unmarshal([]byte(a.body), &p); err != nil {
		t.Fatalf("%q is no problem document: %v", a.body, err)
	}
	if got := a.header.Get("Content-Type"); got != deskapi.ProblemType {
		t.Errorf("problem sent as %q", got)
	}
	if p.Status != a.status || p.Title == "" || !strings.HasSuffix(p.Type, string(p.Code)) {
		t.Errorf("problem %+v in an answer of status %d", p, a.status)
	}
	return p
}

// ask sends one request; header holds names and values in turn.
func ask(t *testing.T, method, url, key, body string, header ...string) answer {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	if key != "" {
		req.Header.Set("Authorization", "Bearer "+key)
	}
	for i := 0; i+1 < len(header); i += 2 {
		req.Header.Add(header[i], header[i+1])
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

const founding = `{"message":"Order 8472 was charged twice, and my refund has not arrived. Please investigate and resolve it."}`

func quiet() *slog.Logger { return slog.New(slog.DiscardHandler) }

// handler gives a gateway's handler over a broker of the test's choice.
func (d *desk) handler(ctx context.Context, t *testing.T, b broker) (*gateway, http.Handler) {
	t.Helper()
	return d.handlerWith(ctx, t, b, Deps{}, func(*Config) {})
}

func (d *desk) handlerWith(ctx context.Context, t *testing.T, b broker, deps Deps, change func(*Config)) (*gateway, http.Handler) {
	t.Helper()
	cfg := testConfig(d.redis.Addr())
	change(&cfg)
	client := d.client(t)
	g, h, err := build(ctx, cfg, deps.withDefaults(), b, redis_rate.NewLimiter(client), readmodel.New(client, readmodel.Prefix))
	if err != nil {
		t.Fatal(err)
	}
	stop, err := b.Live(t.Context(), liveViews, g.views.receive)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(stop)
	return g, h
}

// client gives a client of the desk's Redis.
func (d *desk) client(t *testing.T) *redis.Client {
	t.Helper()
	client, err := readmodel.Access{Addr: d.redis.Addr()}.Open(nil, clientName, listTimeout)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	return client
}

// list puts a view into the read model, as the projector does.
func (d *desk) list(t *testing.T, v *amendsv1.CaseView) {
	t.Helper()
	e, err := entryOf(subject.View(v.GetTenant(), v.GetCaseId()), mustMarshal(t, v))
	if err != nil {
		t.Fatal(err)
	}
	if err := readmodel.New(d.client(t), readmodel.Prefix).Put(t.Context(), e); err != nil {
		t.Fatal(err)
	}
}

// readyModel says that the read model is complete, where no projector runs.
func readyModel(t *testing.T, g *gateway) {
	t.Helper()
	_, err1 := g.model.Claim(t.Context(), "", "t")
	ok, err2 := g.model.Finish(t.Context(), "t", "")
	if err := errors.Join(err1, err2); err != nil || !ok {
		t.Fatalf("%t, %v", ok, err)
	}
}

// call is ask without a network.
func call(t *testing.T, h http.Handler, method, path, key, body string, header ...string) answer {
	t.Helper()
	req := httptest.NewRequestWithContext(t.Context(), method, path, strings.NewReader(body))
	req.Header.Set("Authorization", "Bearer "+key)
	for i := 0; i+1 < len(header); i += 2 {
		req.Header.Add(header[i], header[i+1])
	}
	rec := httptest.NewRecorder()
	h.ServeHTTP(rec, req)
	return answer{status: rec.Code, header: rec.Header(), body: rec.Body.String()}
}

func mustMarshal(t *testing.T, m proto.Message) []byte {
	t.Helper()
	data, err := proto.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	return data
}
