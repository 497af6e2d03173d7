package sandbox

import (
	"encoding/json"
	"net/http"
)

// faultList is the body of the fault routes.
type faultList struct {
	Faults Faults `json:"faults"`
}

func (s *Server) readFaults(*call) (answer, error) {
	return reply(http.StatusOK, 0, faultList{s.faults.list()})
}

// putFaults takes the whole list or, when one is not right, nothing of it.
func (s *Server) putFaults(c *call) (answer, error) {
	var q faultList
	if err := decode(c.body, &q); err != nil {
		return answer{}, invalid(err)
	}
	if err := s.faults.set(q.Faults); err != nil {
		return answer{}, invalid(err)
	}
	return s.readFaults(c)
}

func (s *Server) clearFaults(c *call) (answer, error) {
	if err := s.faults.set(nil); err != nil {
		return answer{}, err
	}
	return s.readFaults(c)
}

// find says what a request is about, for the faults that look for it. What
// cannot be read matches no filter.
func (b *book) find(r *call) subject {
	var q struct {
		Tenant    string `json:"tenant"`
		OrderID   string `json:"order_id"`
		PaymentID string `json:"payment_id"`
		Reference string `json:"reference"`
	}
	if len(r.body) > 0 {
		if err := json.Unmarshal(r.body, &q); err != nil {
			return subject{}
		}
		if payment := r.PathValue("payment"); payment != "" {
			b.mu.RLock()
			defer b.mu.RUnlock()
			return subject{q.Tenant, b.payments[id{q.Tenant, payment}], some(payment), nil}
		}
		return subject{q.Tenant, q.OrderID, some(q.PaymentID), some(q.Reference)}
	}
	about := subject{tenant: r.URL.Query().Get("tenant"), order: r.PathValue("order")}
	if refundID := r.PathValue("refund"); refundID != "" {
		f, _, _ := b.refund(about.tenant, refundID)
		return subject{about.tenant, f.OrderID, some(f.PaymentID), some(f.Reference)}
	}
	a := b.account(about.tenant, about.order)
	if a == nil {
		return about
	}
	for _, p := range a.captures {
		about.payments = append(about.payments, p.PaymentID)
	}
	for _, f := range a.refunds {
		about.references = append(about.references, f.Reference)
	}
	return about
}

func some(s string) []string {
	if s == "" {
		return nil
	}
	return []string{s}
}
