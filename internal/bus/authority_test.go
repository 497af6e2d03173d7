package bus_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/amends-dev/amends/internal/broker"
	"github.com/amends-dev/amends/internal/bus"
	"github.com/amends-dev/amends/internal/bus/bustest"
	"github.com/amends-dev/amends/internal/provision"
	"github.com/amends-dev/amends/internal/roles"
)

// probe is a client on a service's credential that learns what the broker
// refuses it.
type probe struct {
	tb testing.TB
	nc *nats.Conn

	mu      sync.Mutex
	refused map[string]bool
	marks   int
}

func newProbe(tb testing.TB, b *bustest.Broker, s roles.Service) *probe {
	p := &probe{tb: tb, refused: make(map[string]bool)}
	p.nc = b.Raw(s, nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) {
		text := err.Error()
		p.mu.Lock()
		defer p.mu.Unlock()
		if i := strings.Index(text, `"`); i >= 0 {
			p.refused[strings.SplitN(text[i+1:], `"`, 2)[0]] = true
		}
	}))
	return p
}

// settle waits until the broker has said everything about what was sent: it
// answers in order, so the refusal of a last, forbidden publish is its end.
func (p *probe) settle() {
	p.tb.Helper()
	p.mu.Lock()
	p.marks++
	mark := fmt.Sprintf("no.such.grant.%d", p.marks)
	p.mu.Unlock()
	p.publish(mark, "")
	bustest.Await(p.tb, "the broker's refusals", func() bool { return p.isRefused(mark) })
}

func (p *probe) publish(subj, reply string) {
	p.tb.Helper()
	if err := p.nc.PublishMsg(&nats.Msg{Subject: subj, Reply: reply}); err != nil {
		p.tb.Fatal(err)
	}
}

func (p *probe) isRefused(subj string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.refused[subj]
}

// fill puts tokens in place of a pattern's wildcards.
func fill(pattern string, first string) string {
	s := strings.Replace(pattern, "*", first, 1)
	return strings.ReplaceAll(s, "*", "x")
}

// cells lists every subject by which a service could do something to the
// streams, and whether the manifest lets the service s do it.
func cells(m roles.Manifest, s roles.Service) map[string]bool {
	role, _ := m.Role(s)
	out := make(map[string]bool)
	tokens := []string{"x", "name-x"}
	for _, r := range m.Roles {
		tokens = append(tokens, string(r.Service), string(r.Service)+"-x")
	}
	for _, stream := range m.Streams {
		for _, pattern := range stream.Subjects {
			for _, tok := range tokens {
				subj := fill(pattern, tok)
				out[subj] = slices.ContainsFunc(role.Publishes, func(p string) bool { return matches(p, subj) })
				live := "live." + subj
				out[live] = false // nobody publishes there
			}
		}
	}
	api := func(call string, allowed bool) {
		out[bus.DefaultAPIPrefix+"."+call] = allowed
		out["$JS.API."+call] = false // the services' account holds nothing
	}
	for _, c := range append(m.Consumers, roles.Consumer{Name: "mine", Stream: roles.StreamCases}, roles.Consumer{Name: "x-tasks", Stream: roles.StreamTasks}) {
		own, name := c.Service == s, c.Stream+"."+c.Name
		api("CONSUMER.MSG.NEXT."+name, own)
		api("CONSUMER.INFO."+name, own || slices.Contains(role.Watches, c.Name))
		api("CONSUMER.RESET."+name, own && c.Resettable)
		for _, call := range []string{"CREATE", "DURABLE.CREATE", "DELETE", "PAUSE", "UNPIN", "LEADER.STEPDOWN"} {
			api("CONSUMER."+call+"."+name, false)
		}
		out["$JS.ACK."+name+".1.1.1.1.0"] = own
	}
	for _, st := range m.Streams {
		api("STREAM.MSG.GET."+st.Name, slices.Contains(role.LeaderReads, st.Name))
		for _, call := range []string{"CREATE", "UPDATE", "DELETE", "PURGE", "INFO", "MSG.DELETE", "SNAPSHOT", "RESTORE", "PEER.REMOVE", "LEADER.STEPDOWN"} {
			api("STREAM."+call+"."+st.Name, false)
		}
		api("CONSUMER.NAMES."+st.Name, false)
		api("CONSUMER.LIST."+st.Name, false)
		api("CONSUMER.CREATE."+st.Name, false)
		api("DIRECT.GET."+st.Name, false)
		for _, pattern := range st.Subjects {
			subj := fill(pattern, "x")
			api("DIRECT.GET."+st.Name+"."+subj, slices.ContainsFunc(role.DirectReads, func(d roles.DirectRead) bool {
				return d.Stream == st.Name && matches(d.Filter, subj)
			}))
		}
	}
	for _, call := range []string{"INFO", "STREAM.NAMES", "STREAM.LIST", "META.LEADER.STEPDOWN", "SERVER.REMOVE", "ACCOUNT.PURGE.JS"} {
		api(call, false)
	}
	for _, subj := range []string{"$SYS.REQ.SERVER.PING", "$SYS.REQ.USER.INFO", "$SYS.REQ.ACCOUNT.JS.CONNZ", "_R_.x", "_INBOX.x", "$JS.FC.x", "x"} {
		out[subj] = false
	}
	for _, r := range m.Roles {
		out[bus.InboxPrefix(r.Service)+".x"] = false
	}
	return out
}

func matches(pattern, subj string) bool {
	p, s := strings.Split(pattern, "."), strings.Split(subj, ".")
	if len(p) != len(s) {
		return false
	}
	for i := range p {
		if p[i] != "*" && p[i] != s[i] {
			return false
		}
	}
	return true
}

// AUTH-1, B53, B54: every credential by every stream by everything one can do
// to it; only what the manifest says passes.
func TestAuthorityMatrixAUTH1B53B54(t *testing.T) {
	t.Parallel()
	b := bustest.Desk(t, bustest.Options{})
	m := b.Manifest()
	for _, r := range m.Roles {
		t.Run(string(r.Service), func(t *testing.T) {
			p := newProbe(t, b, r.Service)
			want := cells(m, r.Service)
			for _, subj := range slices.Sorted(maps.Keys(want)) {
				p.publish(subj, "")
			}
			p.settle()
			var allowed int
			for subj, may := range want {
				if may == p.isRefused(subj) {
					t.Errorf("%s: the manifest allows it: %t; the broker: %t", subj, may, !p.isRefused(subj))
				}
				if may {
					allowed++
				}
			}
			t.Logf("%d of %d cells allowed", allowed, len(want))
		})
	}
	nc, js, err := provision.Connect(b.URL(), b.Seed(broker.Provisioner))
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	if err := provision.Check(t.Context(), js, m, provision.Options{}); err != nil {
		t.Errorf("after the probes: %v", err)
	}
}

// What the manifest grants works: each publish is stored in the stream it is
// meant for, and each read and each consumer answers.
func TestEveryGrantWorks(t *testing.T) {
	t.Parallel()
	b := bustest.Desk(t, bustest.Options{})
	m := b.Manifest()
	for _, r := range m.Roles {
		t.Run(string(r.Service), func(t *testing.T) {
			c := b.Connect(r.Service) // asks for every consumer and every read
			for _, pattern := range r.Publishes {
				subj := fill(pattern, "x")
				if _, err := c.Publish(t.Context(), subj, []byte("x")); err != nil {
					t.Errorf("publish: %v", err)
				}
			}
			raw := b.Raw(r.Service)
			for _, spec := range m.ConsumersOf(r.Service) {
				resp, err := raw.Request(bus.DefaultAPIPrefix+".CONSUMER.MSG.NEXT."+spec.Stream+"."+spec.Name, []byte(`{"batch":1,"no_wait":true}`), 2*time.Second)
				if err != nil {
					t.Errorf("pull %s: %v", spec.Name, err)
				} else if strings.HasPrefix(resp.Reply, "$JS.ACK.") && resp.Respond(nil) != nil {
					t.Errorf("acknowledge on %s", spec.Name)
				}
			}
			if err := c.Ready(); err != nil {
				t.Error(err)
			}
		})
	}
}

// B52: replies and live copies are read by whom they are for.
func TestSubscriptionsB52(t *testing.T) {
	t.Parallel()
	b := bustest.Desk(t, bustest.Options{})
	m := b.Manifest()
	for _, r := range m.Roles {
		t.Run(string(r.Service), func(t *testing.T) {
			p := newProbe(t, b, r.Service)
			want := map[string]bool{
				">": false, "*": false, "*.>": false, "_INBOX.>": false, "_INBOX_*.>": false, "_R_.>": false, "$JS.>": false, "$SYS.>": false,
				"JS.>": false, bus.DefaultAPIPrefix + ".>": false, "live.>": false, "live.view.>": false,
				"live.view.*.*": slices.Contains(r.Live, "live.view.*.*"),
			}
			for _, s := range m.Streams {
				for _, subj := range s.Subjects {
					want[subj] = false
				}
			}
			for _, other := range append(m.Roles, roles.Role{Service: broker.Provisioner}, roles.Role{Service: broker.Operator}) {
				want[bus.InboxPrefix(other.Service)+".>"] = other.Service == r.Service
				want[bus.InboxPrefix(other.Service)+"-x.>"] = false
			}
			for subj := range want {
				if _, err := p.nc.SubscribeSync(subj); err != nil {
					t.Fatal(err)
				}
			}
			p.settle()
			for subj, may := range want {
				if may == p.isRefused(subj) {
					t.Errorf("%s: the manifest allows it: %t; the broker: %t", subj, may, !p.isRefused(subj))
				}
			}
		})
	}
}

// AUTH-1: an answer is never stored, not even where the asker may publish.
// Every request a service may make, with every stream's subjects as its reply.
func TestHostileReplySubjectsStoreNothingAUTH1(t *testing.T) {
	t.Parallel()
	b := bustest.Desk(t, bustest.Options{})
	targets := everySubject(b.Manifest())
	giveEverybodyATask(t, b)
	for _, r := range b.Manifest().Roles {
		t.Run(string(r.Service), func(t *testing.T) {
			h := newHostile(t, b, r)
			for _, call := range h.calls {
				for _, target := range targets {
					h.send(&nats.Msg{Subject: call, Reply: target})
				}
			}
			h.stored(func(string) bool { return false })
		})
	}
}

// The broker traces a message to a subject its header names, but only where
// the service may publish by itself.
func TestHostileTraceDestinationsAUTH1(t *testing.T) {
	t.Parallel()
	b := bustest.Desk(t, bustest.Options{})
	targets := everySubject(b.Manifest())
	giveEverybodyATask(t, b)
	for _, r := range b.Manifest().Roles {
		t.Run(string(r.Service), func(t *testing.T) {
			h := newHostile(t, b, r)
			for _, call := range h.calls {
				for _, target := range targets {
					h.send(&nats.Msg{Subject: call, Header: nats.Header{"Nats-Trace-Dest": {target}}})
				}
			}
			h.stored(func(subj string) bool {
				return slices.ContainsFunc(r.Publishes, func(p string) bool { return matches(p, subj) })
			})
		})
	}
}

// everySubject gives subjects of every stream, one for each sender token.
func everySubject(m roles.Manifest) []string {
	var out []string
	for _, s := range m.Streams {
		for _, pattern := range s.Subjects {
			for _, r := range m.Roles {
				if subj := fill(pattern, string(r.Service)); !slices.Contains(out, subj) {
					out = append(out, subj)
				}
			}
		}
	}
	return out
}

func giveEverybodyATask(t *testing.T, b *bustest.Broker) {
	t.Helper()
	orchestrator := b.Connect(roles.Orchestrator)
	for _, r := range b.Manifest().Roles {
		if _, err := orchestrator.Publish(t.Context(), "task."+string(r.Service)+".t.c", []byte("task")); err != nil {
			t.Fatal(err)
		}
	}
}

// hostile makes every request a service may make, in a form the bus never
// would.
type hostile struct {
	*probe
	b      *bustest.Broker
	calls  []string
	own    []string // the calls that are publishes
	before map[string]map[string]int
}

func newHostile(t *testing.T, b *bustest.Broker, r roles.Role) *hostile {
	h := &hostile{probe: newProbe(t, b, r.Service), b: b, before: counts(t, b)}
	for _, pattern := range r.Publishes {
		h.own = append(h.own, fill(pattern, "own"))
	}
	h.calls = slices.Clone(h.own)
	for _, grant := range bus.PublishGrants(b.Manifest(), r, bus.DefaultAPIPrefix) {
		if strings.HasPrefix(grant, bus.DefaultAPIPrefix) && !strings.Contains(grant, ".RESET.") {
			h.calls = append(h.calls, fill(grant, "x"))
		}
	}
	return h
}

func (h *hostile) send(m *nats.Msg) {
	h.tb.Helper()
	if strings.Contains(m.Subject, "STREAM.MSG.GET") {
		m.Data = []byte(`{"seq":1}`)
	}
	if err := h.nc.PublishMsg(m); err != nil {
		h.tb.Fatal(err)
	}
}

// stored checks that only the publishes themselves were stored, and what may
// accepts.
func (h *hostile) stored(may func(subj string) bool) {
	h.tb.Helper()
	h.settle()
	for _, call := range h.calls { // answered after all that came before
		body := `{"seq":1}`
		if strings.Contains(call, "MSG.NEXT") {
			body = `{"batch":1,"no_wait":true}`
		}
		if _, err := h.nc.Request(call, []byte(body), 2*time.Second); err != nil {
			h.tb.Errorf("%s: %v", call, err)
		}
	}
	for stream, subjects := range counts(h.tb, h.b) {
		for subj, n := range subjects {
			if n != h.before[stream][subj] && !slices.Contains(h.own, subj) && !may(subj) {
				h.tb.Errorf("%s has %d new messages on %s", stream, n-h.before[stream][subj], subj)
			}
		}
	}
}

// counts gives the number of messages of every subject of every stream.
func counts(t testing.TB, b *bustest.Broker) map[string]map[string]int {
	t.Helper()
	out := make(map[string]map[string]int)
	for _, s := range b.Manifest().Streams {
		out[s.Name] = make(map[string]int)
		for _, m := range stored(t, b, s.Name) {
			out[s.Name][m.Subject]++
		}
	}
	return out
}
