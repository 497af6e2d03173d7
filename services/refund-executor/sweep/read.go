package sweep

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/amends-dev/amends/internal/bus"
	"github.com/amends-dev/amends/internal/roles"
	"github.com/amends-dev/amends/internal/subject"
	amendsv1 "github.com/amends-dev/amends/proto/amends/v1"
	"github.com/amends-dev/amends/services/refund-executor/ledger"
	"github.com/amends-dev/amends/services/refund-executor/provider"
)

const (
	// maxPages bounds the provider's list, and maxWalk the ledger entries that
	// are walked in one run; the next goes on.
	maxPages = 1000
	maxWalk  = 200_000
)

// read gives an order as the provider has it; without an order when it has
// none.
func (p *pass) read(ctx context.Context, id string) (ledger.View, error) {
	o, err := p.Provider.ReadOrder(ctx, p.Tenant, id)
	switch {
	case errors.Is(err, provider.ErrNotFound):
		return ledger.View{Tenant: p.Tenant}, nil
	case err != nil:
		return ledger.View{}, fmt.Errorf("order %s: %w", id, err)
	}
	return ledger.View{Tenant: p.Tenant, Order: o.Order, Captures: o.Captures, Refunds: o.Refunds, Disputes: o.Disputes}, nil
}

// list gives the tenant's refunds since a moment, by order.
func (p *pass) list(ctx context.Context, since time.Time) (map[string][]*amendsv1.Refund, error) {
	out, cursor := map[string][]*amendsv1.Refund{}, ""
	for range maxPages {
		page, err := p.Provider.ListRefunds(ctx, p.Tenant, since, cursor)
		if err != nil {
			return out, fmt.Errorf("list refunds: %w", err)
		}
		for _, r := range page.Refunds {
			out[r.OrderID] = append(out[r.OrderID], r.Refund)
		}
		if cursor = page.Next; cursor == "" {
			return out, nil
		}
	}
	return out, fmt.Errorf("list refunds: more than %d pages", maxPages)
}

// indexes know the orders of each tenant's ledger. They spare walking all of it
// in every run.
type indexes struct {
	mu sync.Mutex
	of map[string]*index
}

type index struct {
	// seq is how far the ledger was walked.
	seq    uint64
	orders map[string]known
	// from is where a run that could not compare all of them left off.
	from string
}

// known is what is remembered of an order's newest entry.
type known struct {
	at        time.Time
	unsettled bool
}

func (x *indexes) forget() {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.of = nil
}

func (x *indexes) tenant(tenant string) *index {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.of == nil {
		x.of = map[string]*index{}
	}
	if x.of[tenant] == nil {
		x.of[tenant] = &index{orders: map[string]known{}}
	}
	return x.of[tenant]
}

// walk takes in what the ledger has gained, and gives the orders whose newest
// entry is not older than since, or is unsettled. With an error they are those
// that are known.
func (x *indexes) walk(ctx context.Context, b Bus, tenant string, since time.Time) (map[string]bool, error) {
	ix := x.tenant(tenant) // one run at a time uses it
	err := ix.walk(ctx, b, tenant)
	out := map[string]bool{}
	for id, k := range ix.orders {
		if k.unsettled || !k.at.Before(since) {
			out[id] = true
		} else {
			delete(ix.orders, id) // it comes again with its next entry
		}
	}
	return out, err
}

func (ix *index) walk(ctx context.Context, b Bus, tenant string) error {
	for range maxWalk {
		m, err := b.NextAfter(ctx, roles.StreamEffects, subject.Effect(tenant, "*"), ix.seq)
		if errors.Is(err, bus.ErrNotFound) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("walk the ledger: %w", err)
		}
		ix.seq = m.Seq
		at, err := subject.Parse(m.Subject)
		if err != nil || subject.ReservedOrder(at.CaseID) {
			continue
		}
		e := new(amendsv1.EffectEntry)
		unreadable := proto.Unmarshal(m.Data, e) != nil // then every run says so, when it reads the order's entry
		ix.orders[at.CaseID] = known{at: m.Time, unsettled: unreadable || ledger.Unsettled(e)}
	}
	return fmt.Errorf("walk the ledger: more than %d entries", maxWalk)
}

// next gives the orders a run compares, at most so many, beginning where the
// last run left off, and whether they are all.
func (x *indexes) next(tenant string, orders map[string]bool, most int) ([]string, bool) {
	ix := x.tenant(tenant)
	all := slices.Sorted(maps.Keys(orders))
	if len(all) <= most {
		ix.from = ""
		return all, true
	}
	i, _ := slices.BinarySearch(all, ix.from)
	out := slices.Concat(all[i:], all[:i])[:most]
	ix.from = out[most-1] + "\x00" // the one after it
	return out, false
}
