package e2e_test

import (
	"bytes"
	"fmt"
	"strings"
	"sync"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nkeys"

	"github.com/amends-dev/amends/internal/bus"
	"github.com/amends-dev/amends/internal/roles"
)

// thief holds one service's credential.
type thief struct {
	s  *siege
	nc *nats.Conn

	mu      sync.Mutex
	refused map[string]bool
	marks   int
}

// steal connects on a service's real credential.
func (s *siege) steal(service roles.Service) *thief {
	s.t.Helper()
	if h := s.thieves[service]; h != nil {
		return h
	}
	kp, err := nkeys.FromSeed(s.Seed(service))
	if err != nil {
		s.t.Fatal(err)
	}
	key, err := kp.PublicKey()
	if err != nil {
		s.t.Fatal(err)
	}
	h := &thief{s: s, refused: map[string]bool{}}
	h.nc, err = nats.Connect(s.BrokerURL(), nats.Nkey(key, kp.Sign), nats.CustomInboxPrefix(bus.InboxPrefix(service)),
		nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) {
			if parts := strings.SplitN(err.Error(), `"`, 3); len(parts) == 3 {
				h.mu.Lock()
				defer h.mu.Unlock()
				h.refused[parts[1]] = true
			}
		}))
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(h.nc.Close)
	s.thieves[service] = h
	return h
}

const denied = "denied by the broker"

// try publishes and says what the broker made of it: it answers in order, so
// after the refusal of a forbidden subject everything before is decided.
func (h *thief) try(m *nats.Msg) string {
	h.s.t.Helper()
	h.mu.Lock()
	h.marks++
	mark := fmt.Sprintf("no.such.grant.%d", h.marks)
	delete(h.refused, m.Subject)
	h.mu.Unlock()
	for _, m := range []*nats.Msg{m, {Subject: mark}} {
		if err := h.nc.PublishMsg(m); err != nil {
			h.s.t.Fatal(err)
		}
	}
	h.s.await("the broker's refusal of "+mark, func() bool { return h.isRefused(mark) })
	if h.isRefused(m.Subject) {
		return denied
	}
	return "sent"
}

func (h *thief) isRefused(subj string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.refused[subj]
}

// put stores a message where the credential may, and fails otherwise.
func (h *thief) put(subj string, data []byte) {
	h.s.t.Helper()
	answer, err := h.nc.RequestMsgWithContext(h.s.ctx, &nats.Msg{Subject: subj, Data: data})
	if err != nil || bytes.Contains(answer.Data, []byte(`"error"`)) {
		h.s.t.Fatalf("%s: %s, %v", subj, answer.Data, err)
	}
}
