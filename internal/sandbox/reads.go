package sandbox

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/amends-dev/amends/internal/ident"
)

// The two answers there are to a question of ownership.
var ownerYes, ownerNo = []byte(`{"owner":true}`), []byte(`{"owner":false}`)

// verifyOwner says whether an order is this customer's, and nothing else: an
// order of somebody else and one that does not exist look the same.
func (s *Server) verifyOwner(c *call) (answer, error) {
	var q struct {
		Tenant     string `json:"tenant"`
		OrderID    string `json:"order_id"`
		CustomerID string `json:"customer_id"`
	}
	if err := decode(c.body, &q); err != nil {
		return answer{}, invalid(err)
	}
	if err := ident.Tokens("tenant", q.Tenant, "order_id", q.OrderID, "customer_id", q.CustomerID); err != nil {
		return answer{}, invalid(err)
	}
	a := s.book.account(q.Tenant, q.OrderID)
	if a == nil || a.order.CustomerID != q.CustomerID {
		return answer{status: http.StatusOK, body: ownerNo}, nil
	}
	return answer{status: http.StatusOK, body: ownerYes, seq: a.revision}, nil
}

// asked finds the order of the path in the tenant of the query.
func (s *Server) asked(c *call) (*account, error) {
	tenant, err := c.tenant()
	if err != nil {
		return nil, err
	}
	a := s.book.account(tenant, c.PathValue("order"))
	if a == nil {
		return nil, notFound(codeOrderNotFound)
	}
	return a, nil
}

// shown is an order as a reader sees it: whose it is has a question of its own.
func (a *account) shown() Order {
	o := a.order
	o.CustomerID = ""
	return o
}

// sourceVersion names the state of an order that an answer shows.
func (a *account) sourceVersion() string { return "v" + strconv.FormatUint(a.revision, 10) }

func (s *Server) readOrder(c *call) (answer, error) {
	a, err := s.asked(c)
	if err != nil {
		return answer{}, err
	}
	return reply(http.StatusOK, a.revision, struct {
		Order         Order     `json:"order"`
		Captures      []Capture `json:"captures"`
		Refunds       []Refund  `json:"refunds"`
		Disputes      []Dispute `json:"disputes"`
		SourceVersion string    `json:"source_version"`
	}{a.shown(), list(a.captures), list(a.refunds), list(a.disputes), a.sourceVersion()})
}

func (s *Server) listCaptures(c *call) (answer, error) {
	a, err := s.asked(c)
	if err != nil {
		return answer{}, err
	}
	return reply(http.StatusOK, a.revision, struct {
		Order         Order     `json:"order"`
		Captures      []Capture `json:"captures"`
		Disputes      []Dispute `json:"disputes"`
		SourceVersion string    `json:"source_version"`
	}{a.shown(), list(a.captures), list(a.disputes), a.sourceVersion()})
}

func (s *Server) listRefunds(c *call) (answer, error) {
	a, err := s.asked(c)
	if err != nil {
		return answer{}, err
	}
	return reply(http.StatusOK, a.revision, struct {
		OrderID       string   `json:"order_id"`
		Refunds       []Refund `json:"refunds"`
		SourceVersion string   `json:"source_version"`
	}{a.order.OrderID, list(a.refunds), a.sourceVersion()})
}

type settlement struct {
	PaymentID string     `json:"payment_id"`
	Settled   bool       `json:"settled"`
	SettledAt *time.Time `json:"settled_at"`
}

func (s *Server) getSettlement(c *call) (answer, error) {
	a, err := s.asked(c)
	if err != nil {
		return answer{}, err
	}
	payments := make([]settlement, len(a.captures))
	for i, p := range a.captures {
		payments[i] = settlement{p.PaymentID, p.Settled, p.SettledAt}
	}
	return reply(http.StatusOK, a.revision, struct {
		OrderID       string       `json:"order_id"`
		Payments      []settlement `json:"payments"`
		SourceVersion string       `json:"source_version"`
	}{a.order.OrderID, payments, a.sourceVersion()})
}

func (s *Server) getRefund(c *call) (answer, error) {
	tenant, err := c.tenant()
	if err != nil {
		return answer{}, err
	}
	r, seq, ok := s.book.refund(tenant, c.PathValue("refund"))
	if !ok {
		return answer{}, notFound(codeRefundNotFound)
	}
	return reply(http.StatusOK, seq, oneRefund{r})
}

type oneCapture struct {
	Capture Capture `json:"capture"`
}

type oneRefund struct {
	Refund Refund `json:"refund"`
}

func (s *Server) document(*call) (answer, error) {
	return answer{status: http.StatusOK, contentType: "application/yaml", body: openAPI}, nil
}

func reply(status int, seq uint64, body any) (answer, error) {
	data, err := json.Marshal(body)
	if err != nil {
		return answer{}, fmt.Errorf("encode answer: %w", err)
	}
	return answer{status: status, body: data, seq: seq}, nil
}

// list shows no entries as an empty list, never as null.
func list[T any](l []T) []T {
	if l == nil {
		return []T{}
	}
	return l
}
