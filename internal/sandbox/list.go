package sandbox

import (
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/amends-dev/amends/internal/ident"
)

// How many refunds a page of a tenant's refunds holds.
const (
	defaultPage = 100
	maxPage     = 500
)

// refundQuery asks for a page of a tenant's refunds.
type refundQuery struct {
	tenant string
	since  time.Time
	// after is how many of the tenant's refunds, in the order in which the
	// journal has them, were passed before; it is the cursor.
	after, limit int
}

// listTenantRefunds gives the refunds of a tenant, whoever made them, a page at
// a time. Refunds are only ever added at the end, so whoever follows the pages
// misses none that was there when the first was asked for.
func (s *Server) listTenantRefunds(c *call) (answer, error) {
	q, err := c.refundQuery()
	if err != nil {
		return answer{}, invalid(err)
	}
	page, next, seq, err := s.book.tenantRefunds(q)
	if err != nil {
		return answer{}, invalid(err)
	}
	return reply(http.StatusOK, seq, struct {
		Refunds []Refund `json:"refunds"`
		Next    string   `json:"next"`
	}{list(page), next})
}

func (c *call) refundQuery() (q refundQuery, err error) {
	q.limit = defaultPage
	for name, values := range c.URL.Query() {
		if len(values) != 1 {
			return q, fmt.Errorf("%q is given %d times", name, len(values))
		}
		value := values[0]
		switch name {
		case "tenant":
			q.tenant = value
		case "created_since":
			q.since, err = time.Parse(time.RFC3339Nano, value)
		case "cursor":
			if value != "" {
				q.after, err = strconv.Atoi(value)
			}
		case "limit":
			q.limit, err = strconv.Atoi(value)
		default:
			return q, fmt.Errorf("unknown parameter %q", name)
		}
		if err != nil {
			return q, fmt.Errorf("%s: %w", name, err)
		}
	}
	if q.limit < 1 || q.limit > maxPage {
		return q, fmt.Errorf("limit: want 1 to %d", maxPage)
	}
	return q, ident.Tokens("tenant", q.tenant)
}

var errCursor = errors.New("cursor: not one that was given")

// tenantRefunds gives a page, the cursor of the next one, if any, and the
// sequence number it all stands at.
func (b *book) tenantRefunds(q refundQuery) (page []Refund, next string, seq uint64, err error) {
	b.mu.RLock()
	defer b.mu.RUnlock()
	ids := b.byTenant[q.tenant]
	if q.after < 0 || q.after > len(ids) {
		return nil, "", 0, errCursor
	}
	for i, refundID := range ids[q.after:] {
		r, _ := b.accounts[b.refunds[refundID]].refund(refundID)
		if r.CreatedAt.Before(q.since) {
			continue
		}
		if len(page) == q.limit {
			return page, strconv.Itoa(q.after + i), b.seq, nil
		}
		page = append(page, r)
	}
	return page, "", b.seq, nil
}
