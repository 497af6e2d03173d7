package bus

import (
	"fmt"
	"strconv"
	"strings"
	"sync"

	"github.com/nats-io/nats.go"
)

// replies matches answers to requests on one inbox subscription. The inbox
// carries a random part, so nobody else can name it as a reply subject.
type replies struct {
	prefix string

	mu      sync.Mutex
	last    uint64
	waiting map[uint64]*waiter
}

type waiter struct {
	subject string
	// link numbers the connection it was sent on.
	link   uint64
	answer chan answer // holds one
}

type answer struct {
	msg *nats.Msg
	err error
}

func listenReplies(nc *nats.Conn) (*replies, error) {
	r := &replies{prefix: nc.NewInbox() + ".", waiting: make(map[uint64]*waiter)}
	sub, err := nc.Subscribe(r.prefix+"*", r.receive)
	if err != nil {
		return nil, err
	}
	// Bounded by the requests in flight, not by the library's defaults.
	if err := sub.SetPendingLimits(-1, -1); err != nil {
		return nil, fmt.Errorf("lift the pending limits: %w", err)
	}
	return r, nil
}

// expect registers a request to subj and gives its reply subject.
func (r *replies) expect(subj string, link uint64) (id uint64, reply string, w *waiter) {
	w = &waiter{subject: subj, link: link, answer: make(chan answer, 1)}
	r.mu.Lock()
	r.last++
	id = r.last
	r.waiting[id] = w
	r.mu.Unlock()
	return id, r.prefix + strconv.FormatUint(id, 36), w
}

func (r *replies) forget(id uint64) {
	r.mu.Lock()
	delete(r.waiting, id)
	r.mu.Unlock()
}

func (r *replies) receive(m *nats.Msg) {
	id, err := strconv.ParseUint(strings.TrimPrefix(m.Subject, r.prefix), 36, 64)
	if err != nil {
		return
	}
	r.mu.Lock()
	w := r.waiting[id]
	delete(r.waiting, id)
	r.mu.Unlock()
	if w != nil {
		w.answer <- answer{msg: m}
	}
}

// failAll ends every request in flight.
func (r *replies) failAll(err error) {
	r.fail(err, func(*waiter) bool { return true })
}

// failLinks ends the requests that were sent on a connection up to last.
func (r *replies) failLinks(last uint64, err error) {
	r.fail(err, func(w *waiter) bool { return w.link <= last })
}

// failSubject ends the requests in flight to one subject.
func (r *replies) failSubject(subj string, err error) {
	r.fail(err, func(w *waiter) bool { return w.subject == subj })
}

func (r *replies) fail(err error, which func(*waiter) bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for id, w := range r.waiting {
		if which(w) {
			delete(r.waiting, id)
			w.answer <- answer{err: err} // its one place: whoever removes a waiter fills it
		}
	}
}
