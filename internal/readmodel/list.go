package readmodel

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/redis/go-redis/v9"

	"github.com/amends-dev/amends/internal/ident"
)

const (
	// MaxLimit bounds a page.
	MaxLimit = 100
	// MaxOfOrder is how many cases of one order are given, the newest.
	MaxOfOrder = 128
	// filterChunk and filterRounds bound how far one page looks for cases in
	// a given state.
	filterChunk, filterRounds = 200, 5
)

// Query says which part of a customer's list is wanted.
type Query struct {
	// After is where the page before ended; the zero value begins.
	After Cursor
	// Limit is from 1 to MaxLimit.
	Limit int
	// State, if set, leaves out cases in other states.
	State string
}

// Page is part of a list, newest case first. When Next is not zero there is, or
// with a state there may be, more after it; a page may then be short.
type Page struct {
	Entries []Entry
	Next    Cursor
}

// ByCustomer lists a customer's cases.
func (m *Model) ByCustomer(ctx context.Context, tenant, customer string, q Query) (Page, error) {
	if err := ident.Tokens("tenant", tenant, "customer_id", customer); err != nil {
		return Page{}, fmt.Errorf("list cases: %w", err)
	}
	limit := min(max(q.Limit, 1), MaxLimit)
	chunk, rounds := limit+1, 1
	if q.State != "" {
		chunk, rounds = filterChunk, filterRounds
	}
	var page Page
	at := q.After
	for range rounds {
		part, end, err := m.read(ctx, tenant, m.customerKey(tenant, customer), newestFirst(at, chunk))
		if err != nil {
			return Page{}, fmt.Errorf("list cases: %w", err)
		}
		for _, p := range part {
			if p.entry.CustomerID == customer && (q.State == "" || p.entry.State == q.State) {
				if len(page.Entries) == limit {
					page.Next = at
					return page, nil
				}
				page.Entries = append(page.Entries, p.entry)
			}
			at = Cursor{p.place}
		}
		if end {
			return page, nil
		}
	}
	page.Next = at
	return page, nil
}

// CasesOfOrder lists the cases that are about an order, newest first, at most
// MaxOfOrder.
func (m *Model) CasesOfOrder(ctx context.Context, tenant, order string) ([]Entry, error) {
	if err := ident.Tokens("tenant", tenant, "order_id", order); err != nil {
		return nil, fmt.Errorf("list cases of an order: %w", err)
	}
	part, _, err := m.read(ctx, tenant, m.orderKey(tenant, order), newestFirst(Cursor{}, MaxOfOrder))
	if err != nil {
		return nil, fmt.Errorf("list cases of an order: %w", err)
	}
	var out []Entry
	for _, p := range part {
		if p.entry.OrderID == order {
			out = append(out, p.entry)
		}
	}
	return out, nil
}

// Waiting lists the cases of a tenant that wait for staff in a state, the longest
// known first; those that people have by the queue of reconciliation with the
// ones being reconciled.
func (m *Model) Waiting(ctx context.Context, tenant, state string, q Query) (Page, error) {
	if err := ident.Tokens("tenant", tenant, "state", state); err != nil {
		return Page{}, fmt.Errorf("list waiting cases: %w", err)
	}
	limit := min(max(q.Limit, 1), MaxLimit)
	part, end, err := m.read(ctx, tenant, m.waitingKey(tenant, state), oldestFirst(q.After, limit))
	if err != nil {
		return Page{}, fmt.Errorf("list waiting cases: %w", err)
	}
	var page Page
	for _, p := range part {
		if p.entry.waits() == state {
			page.Entries = append(page.Entries, p.entry)
		}
		page.Next = Cursor{p.place}
	}
	if end {
		page.Next = Cursor{}
	}
	return page, nil
}

// slice is a part of a list.
type slice struct {
	after  Cursor
	n      int
	oldest bool // the list begins with its oldest case
}

func newestFirst(after Cursor, n int) slice { return slice{after, n, false} }
func oldestFirst(after Cursor, n int) slice { return slice{after, n, true} }

func (s slice) of(ctx context.Context, p redis.Pipeliner, list string) *redis.StringSliceCmd {
	if s.oldest {
		return p.ZRangeByLex(ctx, list, &redis.ZRangeBy{Min: s.after.min(), Max: "+", Count: int64(s.n)})
	}
	return p.ZRevRangeByLex(ctx, list, &redis.ZRangeBy{Max: s.after.max(), Min: "-", Count: int64(s.n)})
}

// placed is an entry with its place in the list it was read from.
type placed struct {
	place string
	entry Entry
}

// read gives a part of a list and whether that was the end of it. The
// marker is read in one step with the list: an emptied Redis has neither.
func (m *Model) read(ctx context.Context, tenant, list string, part slice) (_ []placed, end bool, _ error) {
	var marker *redis.StringCmd
	var places *redis.StringSliceCmd
	_, err := m.redis.TxPipelined(ctx, func(p redis.Pipeliner) error {
		marker = p.Get(ctx, m.markerKey())
		places = part.of(ctx, p, list)
		return nil
	})
	if err != nil && !errors.Is(err, redis.Nil) {
		return nil, false, err
	}
	if !Marker(marker.Val()).Ready() {
		return nil, false, ErrNotReady
	}
	found := places.Val()
	if len(found) == 0 {
		return nil, true, nil
	}
	entries := make([]*redis.StringCmd, len(found))
	_, err = m.redis.Pipelined(ctx, func(p redis.Pipeliner) error {
		for i, place := range found {
			entries[i] = p.HGet(ctx, m.caseKey(tenant, caseOf(place)), "e")
		}
		return nil
	})
	if errors.Is(err, redis.Nil) {
		// Redis has dropped a case by itself, so more may be missing.
		return nil, false, errors.Join(ErrNotReady, m.forget(ctx, Marker(marker.Val())))
	}
	if err != nil {
		return nil, false, err
	}
	out := make([]placed, 0, len(found))
	for i, place := range found {
		var e Entry
		if err := json.Unmarshal([]byte(entries[i].Val()), &e); err != nil {
			return nil, false, fmt.Errorf("decode a case: %w", err)
		}
		if e.Tenant == tenant && placeOf(e) == place {
			out = append(out, placed{place, e})
		}
	}
	return out, len(found) < part.n, nil
}
