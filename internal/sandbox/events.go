package sandbox

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/amends-dev/amends/internal/webhook"
)

// Events says where webhooks go; without a URL there are none.
type Events struct {
	URL string
	// Secret they are signed with, whsec_...
	Secret string
}

const (
	// maxEvents bounds the webhooks that wait; what is over is dropped and
	// logged, as a provider's may be.
	maxEvents    = 4096
	eventWorkers = 8
	// answerWait bounds how long WebhookBeforeAnswer holds an answer.
	answerWait = 10 * time.Second
)

// eventDelays are short: those who try the sandbox wait for it.
var eventDelays = []time.Duration{100 * time.Millisecond, time.Second, 5 * time.Second, 30 * time.Second, 2 * time.Minute}

// event is one webhook on its way.
type event struct {
	id   string
	body []byte
	// seq is the journal entry it tells of: it is durable before it is told.
	seq    uint64
	failed int
	// skew is how far the provider's clock is off.
	skew time.Duration
	// sent is told when it was tried for the first time.
	sent func()
}

// notifier sends webhooks, a bounded number of times each. What waits is in
// memory and ends with the process: receivers compare with the ledger now and
// then, as they must with any provider.
type notifier struct {
	log    *slog.Logger
	now    func() time.Time
	book   *book
	faults *faults
	queue  chan *event
	work   sync.WaitGroup
	end    context.CancelFunc
	ctx    context.Context //nolint:containedctx // ends the retries that timers start

	mu      sync.Mutex
	url     string
	secrets webhook.Secrets
	// told holds, per journal entry, the webhooks not sent once yet; kept
	// only where answers wait for them.
	told map[uint64]*sync.WaitGroup

	client *webhook.Client
	// waiting counts those that are to be queued later.
	waiting atomic.Int64
}

func newNotifier(c Config, b *book, f *faults) *notifier {
	n := &notifier{
		log: c.Log, now: c.Now, book: b, faults: f, queue: make(chan *event, maxEvents), told: map[uint64]*sync.WaitGroup{},
		client: webhook.NewClient(webhook.Options{Private: true}), // it is a sandbox: its receivers are on the same machine
	}
	n.ctx, n.end = context.WithCancel(context.Background())
	for range eventWorkers {
		n.work.Go(n.run)
	}
	return n
}

// SendEvents sends the webhooks of all further changes to an endpoint.
func (s *Server) SendEvents(e Events) error {
	secrets, err := webhook.ParseSecrets(e.Secret)
	if err == nil {
		err = webhook.CheckURL(e.URL, true)
	}
	if err != nil {
		return fmt.Errorf("sandbox webhooks: %w", err)
	}
	s.notifier.mu.Lock()
	defer s.notifier.mu.Unlock()
	s.notifier.url, s.notifier.secrets = e.URL, secrets
	return nil
}

// notify takes the changes of one journal entry. The book calls it, locked, in
// the order of the journal; it does not wait.
func (n *notifier) notify(seq uint64, changes []change) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.url == "" {
		return
	}
	for i, c := range changes {
		if _, lost := n.fault(WebhookLost, c); lost {
			continue
		}
		skewed, _ := n.fault(ClockSkew, c)
		c.Timestamp = c.Timestamp.Add(skewed.For)
		body, err := json.Marshal(c)
		if err != nil { // texts and a time always encode
			n.log.Error("webhook not encoded", slog.Any("error", err))
			continue
		}
		sum := sha256.Sum256(body)
		id := "evt_" + strconv.FormatUint(seq, 10) + "_" + strconv.Itoa(i) + "_" + hex.EncodeToString(sum[:6])
		copies, _ := n.fault(WebhookCopies, c)
		_, first := n.fault(WebhookBeforeAnswer, c)
		late, _ := n.fault(WebhookDelay, c)
		for range max(copies.Copies, 1) {
			ev := &event{id: id, body: body, seq: seq, skew: skewed.For, sent: func() {}}
			if first {
				group := n.told[seq]
				if group == nil {
					group = new(sync.WaitGroup)
					n.told[seq] = group
				}
				group.Add(1)
				ev.sent = sync.OnceFunc(group.Done)
			}
			n.later(ev, late.For)
		}
	}
}

// fault strikes a change's webhook with a kind of fault.
func (n *notifier) fault(kind FaultKind, c change) (Fault, bool) {
	return n.faults.one(kind, onWebhooks, subject{c.Data.Tenant, c.Data.OrderID, some(c.payment), some(c.Data.Reference)})
}

// later puts a webhook into the queue after a while.
func (n *notifier) later(ev *event, d time.Duration) {
	if d <= 0 {
		n.put(ev)
		return
	}
	if n.waiting.Add(1) > maxEvents {
		n.waiting.Add(-1)
		n.drop(ev)
		return
	}
	time.AfterFunc(d, func() {
		n.waiting.Add(-1)
		if n.ctx.Err() == nil {
			n.put(ev)
		}
	})
}

func (n *notifier) put(ev *event) {
	select {
	case n.queue <- ev:
	default:
		n.drop(ev)
	}
}

func (n *notifier) drop(ev *event) {
	n.log.Warn("webhook dropped: too many wait", slog.String("event_id", ev.id))
	ev.sent()
}

func (n *notifier) run() {
	for {
		select {
		case <-n.ctx.Done():
			return
		case ev := <-n.queue:
			n.send(ev)
		}
	}
}

func (n *notifier) send(ev *event) {
	defer ev.sent()
	if err := n.book.journal.wait(ev.seq); err != nil {
		return // perhaps it never happened
	}
	n.mu.Lock()
	url, secrets := n.url, n.secrets
	n.mu.Unlock()
	header, err := secrets.Sign(ev.id, n.now().Add(ev.skew), ev.body)
	if err != nil {
		n.log.Error("webhook not signed", slog.Any("error", err))
		return
	}
	out := n.client.Send(n.ctx, url, header, ev.body)
	if out.Reason == webhook.ReasonDelivered || n.ctx.Err() != nil {
		return
	}
	given := ev.failed >= len(eventDelays)
	n.log.Info("webhook not taken", slog.String("event_id", ev.id), slog.String("reason", string(out.Reason)), slog.Int("status", out.Status), slog.Bool("given_up", given))
	if !given {
		wait := eventDelays[ev.failed]
		ev.failed++
		n.later(ev, wait)
	}
}

// await holds an answer until the webhooks of its journal entry were sent once,
// where the faults say so.
func (n *notifier) await(ctx context.Context, seq uint64) {
	n.mu.Lock()
	group := n.told[seq]
	delete(n.told, seq)
	n.mu.Unlock()
	if group == nil {
		return
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		group.Wait()
	}()
	limit := time.NewTimer(answerWait)
	defer limit.Stop()
	select {
	case <-done:
	case <-ctx.Done():
	case <-n.ctx.Done():
	case <-limit.C:
	}
}

// forget says that no answer waits for the webhooks of a journal entry.
func (n *notifier) forget(seq uint64) {
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.told, seq)
}

func (n *notifier) close() {
	n.end()
	n.work.Wait()
	n.client.Close()
	for { // those that never ran: nobody waits for them any more
		select {
		case ev := <-n.queue:
			ev.sent()
		default:
			return
		}
	}
}

// change is one thing that changed at an order, as it is told: a hint where to
// look, and none of what there is to be seen.
type change struct {
	Type      string     `json:"type"`
	Timestamp time.Time  `json:"timestamp"`
	Data      changeData `json:"data"`
	// payment it is about; faults go by it.
	payment string
}

type changeData struct {
	Tenant   string `json:"tenant"`
	OrderID  string `json:"order_id"`
	ObjectID string `json:"object_id"`
	// Reference is what the refund was made with.
	Reference string `json:"reference,omitempty"`
}

// changes says what is different at an order that was there before.
func changes(before, after *account, at time.Time) []change {
	if before == nil {
		return nil
	}
	var out []change
	add := func(kind, payment, object, reference string) {
		out = append(out, change{kind, at, changeData{after.order.Tenant, after.order.OrderID, object, reference}, payment})
	}
	for _, r := range after.refunds {
		switch old, known := before.refund(r.RefundID); {
		case !known:
			add("refund.created", r.PaymentID, r.RefundID, r.Reference)
		case old.counts() && !r.counts():
			add("refund.failed", r.PaymentID, r.RefundID, r.Reference)
		case !sameRefund(old, r):
			add("refund.updated", r.PaymentID, r.RefundID, r.Reference)
		}
	}
	for _, c := range after.captures {
		i := slices.IndexFunc(before.captures, func(o Capture) bool { return o.PaymentID == c.PaymentID })
		switch {
		case i >= 0 && sameCapture(before.captures[i], c):
		case i >= 0 && c.Settled && !before.captures[i].Settled:
			add("capture.settled", c.PaymentID, c.PaymentID, "")
		case i >= 0 && c.Status == statusExpired && before.captures[i].Status != statusExpired:
			add("authorization.expired", c.PaymentID, c.PaymentID, "")
		default:
			add("capture.updated", c.PaymentID, c.PaymentID, "")
		}
	}
	for _, d := range after.disputes {
		i := slices.IndexFunc(before.disputes, func(o Dispute) bool { return o.DisputeID == d.DisputeID })
		switch {
		case i < 0:
			add("dispute.opened", d.PaymentID, d.DisputeID, "")
		case before.disputes[i] != d:
			add("dispute.updated", d.PaymentID, d.DisputeID, "")
		}
	}
	return out
}

func sameRefund(a, b Refund) bool {
	made := a.CreatedAt.Equal(b.CreatedAt)
	a.CreatedAt, b.CreatedAt = time.Time{}, time.Time{}
	return made && a == b
}

func sameCapture(a, b Capture) bool {
	same := func(x, y *time.Time) bool { return x == nil && y == nil || x != nil && y != nil && x.Equal(*y) }
	times := same(a.CapturedAt, b.CapturedAt) && same(a.SettledAt, b.SettledAt)
	a.CapturedAt, a.SettledAt, b.CapturedAt, b.SettledAt = nil, nil, nil, nil
	return times && a == b
}
