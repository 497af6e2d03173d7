package sweep

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/amends-dev/amends/internal/bus"
	"github.com/amends-dev/amends/internal/reconcile"
	"github.com/amends-dev/amends/internal/roles"
	"github.com/amends-dev/amends/internal/subject"
	amendsv1 "github.com/amends-dev/amends/proto/amends/v1"
	"github.com/amends-dev/amends/services/refund-executor/ledger"
	"github.com/amends-dev/amends/services/refund-executor/provider"
)

const (
	// maxPages bounds the provider's list of a run, which always begins with the
	// window; maxWalk the ledger entries that are walked in one: the next goes on.
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
	return out, fmt.Errorf("list refunds: %d pages: %w", maxPages, errBound)
}

// errBound: there is more to read than one run does.
var errBound = errors.New("more than one run reads")

// reasonOf gives the reason for which a run that met an error is incomplete.
func reasonOf(err error, otherwise string) string {
	if errors.Is(err, errBound) {
		return reconcile.ReasonTooMany
	}
	return otherwise
}

// indexes know the orders of each tenant's ledger. They spare walking all of it
// in every run.
type indexes struct {
	mu sync.Mutex
	of map[string]*index
	// brokers counts the changes of brokers.
	brokers atomic.Uint64
}

type index struct {
	// cursor is how far the ledger was walked, at the broker of that number.
	cursor reconcile.Cursor
	broker uint64
	orders map[string]known
	// from is where a run that could not compare all of them left off.
	from string
}

// known is what is remembered of an order's newest entry.
type known struct {
	at        time.Time
	unsettled bool
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
	err := ix.check(ctx, b, tenant, x.brokers.Load())
	if err == nil {
		err = ix.walk(ctx, b, tenant)
	}
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

// check begins anew when another broker answers and its ledger is not the one
// that was walked.
func (ix *index) check(ctx context.Context, b Bus, tenant string, broker uint64) error {
	if ix.broker == broker {
		return nil
	}
	same, err := ix.cursor.Holds(ctx, b, roles.StreamEffects, subject.Effect(tenant, "*"))
	if err != nil {
		return fmt.Errorf("walk the ledger: %w", err)
	}
	if !same {
		ix.cursor = reconcile.Cursor{}
		clear(ix.orders)
	}
	ix.broker = broker
	return nil
}

func (ix *index) walk(ctx context.Context, b Bus, tenant string) error {
	for range maxWalk {
		m, err := ix.cursor.Next(ctx, b, roles.StreamEffects, subject.Effect(tenant, "*"))
		if errors.Is(err, bus.ErrNotFound) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("walk the ledger: %w", err)
		}
		at, err := subject.Parse(m.Subject)
		if err != nil || subject.ReservedOrder(at.CaseID) {
			continue
		}
		e := new(amendsv1.EffectEntry)
		unreadable := proto.Unmarshal(m.Data, e) != nil // then every run says so, when it reads the order's entry
		ix.orders[at.CaseID] = known{at: m.Time, unsettled: unreadable || ledger.Unsettled(e)}
	}
	return fmt.Errorf("walk the ledger: %d entries: %w", maxWalk, errBound)
}

// next gives the orders a run compares, at most so many, beginning where the
// last run left off, and whether they are all.
func (x *indexes) next(tenant string, orders map[string]bool, most int) ([]string, bool) {
	ix := x.tenant(tenant)
	all := slices.Sorted(maps.Keys(orders))
	i, _ := slices.BinarySearch(all, ix.from)
	out := slices.Concat(all[i:], all[:i])
	if ix.from = ""; len(out) <= most {
		return out, true
	}
	ix.from = out[most-1] + "\x00" // the one after it
	return out[:most], false
}

// leave has the next run begin with an order.
func (x *indexes) leave(tenant, order string) { x.tenant(tenant).from = order }
