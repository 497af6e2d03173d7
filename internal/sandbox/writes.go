package sandbox

import (
	"crypto/sha256"
	"net/http"

	"github.com/amends-dev/amends/internal/ident"
)

// createRefund is the one route that moves money, and the one that takes an
// Idempotency-Key.
func (s *Server) createRefund(c *call) (answer, error) {
	key, err := idempotencyKey(c.Header)
	if err != nil {
		return answer{}, err
	}
	var req refundRequest
	if err := decode(c.body, &req); err != nil {
		return answer{}, invalid(err)
	}
	if err := req.validate(); err != nil {
		return answer{}, invalid(err)
	}
	r, seq, replayed, err := s.book.create(req, c.key, key, sha256.Sum256(c.body), s.now(), c)
	if err != nil {
		return answer{}, err
	}
	a, err := reply(http.StatusCreated, seq, oneRefund{r})
	if a.changed, a.replayed = !replayed, replayed; a.changed {
		a.made = &r
	}
	return a, err
}

// idempotencyKey takes exactly one key of 1 to 255 visible ASCII characters.
func idempotencyKey(h http.Header) (string, error) {
	values := h["Idempotency-Key"]
	if len(values) == 0 {
		return "", &problem{status: http.StatusBadRequest, code: codeKeyRequired}
	}
	key := values[0]
	ok := len(values) == 1 && key != "" && len(key) <= 255
	for i := range len(key) {
		ok = ok && key[i] > ' ' && key[i] < 0x7f
	}
	if !ok {
		return "", &problem{status: http.StatusBadRequest, code: codeKeyInvalid}
	}
	return key, nil
}

// validate checks the form; what the ledger allows is the book's matter.
func (r refundRequest) validate() error {
	if err := ident.Tokens("tenant", r.Tenant, "order_id", r.OrderID, "payment_id", r.PaymentID); err != nil {
		return err
	}
	if err := currency(r.Currency); err != nil {
		return err
	}
	return texts(text{"reference", r.Reference, 1, 160}, text{"reason", r.Reason, 0, 128})
}

func (s *Server) readLedger(*call) (answer, error) {
	l, seq := s.book.ledger()
	return reply(http.StatusOK, seq, l)
}

func (s *Server) mergeLedger(c *call) (answer, error) {
	var l Ledger
	if err := decode(c.body, &l); err != nil {
		return answer{}, invalid(err)
	}
	merged, seq, err := s.book.load(l, s.now())
	if err != nil {
		return answer{}, err
	}
	a, err := reply(http.StatusOK, seq, struct {
		Orders   int `json:"orders"`
		Captures int `json:"captures"`
		Refunds  int `json:"refunds"`
		Disputes int `json:"disputes"`
	}{len(merged.Orders), len(merged.Captures), len(merged.Refunds), len(merged.Disputes)})
	a.changed = true
	return a, err
}

// turn changes a refund's status by itself: nobody waits for what is told of it.
func (s *Server) turn(refundID, status string) error {
	_, seq, err := s.book.setStatus(refundID, status, s.now())
	if err == nil {
		s.notifier.forget(seq)
	}
	return err
}

func (s *Server) setRefundStatus(c *call) (answer, error) {
	var q struct {
		Status string `json:"status"`
	}
	if err := decode(c.body, &q); err != nil {
		return answer{}, invalid(err)
	}
	if err := texts(text{"status", q.Status, 1, 64}); err != nil {
		return answer{}, invalid(err)
	}
	r, seq, err := s.book.setStatus(c.PathValue("refund"), q.Status, s.now())
	if err != nil {
		return answer{}, err
	}
	a, err := reply(http.StatusOK, seq, oneRefund{r})
	a.changed = true
	return a, err
}

// setCaptureStatus says what became of a payment. A status the sandbox knows
// brings the other fields with it; any other is set alone.
func (s *Server) setCaptureStatus(c *call) (answer, error) {
	var q struct {
		Tenant string `json:"tenant"`
		Status string `json:"status"`
	}
	if err := decode(c.body, &q); err != nil {
		return answer{}, invalid(err)
	}
	if err := texts(text{"status", q.Status, 1, 64}); err != nil {
		return answer{}, invalid(err)
	}
	if err := ident.Tokens("tenant", q.Tenant); err != nil {
		return answer{}, invalid(err)
	}
	capture, seq, err := s.book.setCapture(q.Tenant, c.PathValue("payment"), q.Status, s.now(), c.stamp(s.now()))
	if err != nil {
		return answer{}, err
	}
	a, err := reply(http.StatusOK, seq, oneCapture{capture})
	a.changed = true
	return a, err
}
