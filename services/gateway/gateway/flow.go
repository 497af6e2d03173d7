package gateway

import (
	"context"
	"net/http"
	"sync"

	"github.com/amends-dev/amends/internal/deskapi"
)

// How many tenants, channels and customers a process remembers the buckets of,
// about: those it met last. A forgotten bucket gives up permits it had taken
// from Redis, and begins a local cap anew.
const (
	fewBuckets  = 1 << 10
	manyBuckets = 1 << 14
)

// level is one limit a request must pass.
type level struct {
	// name is what a refusal and a metric call it.
	name    string
	rate    Rate
	key     func(c caller) string
	buckets *recent[*bucket]
}

// flow is one kind of requests and its limits, the narrowest first: what one
// customer sends too much of takes no permits from the others.
type flow []level

func newFlow(name string, customer, channel, tenant Rate) flow {
	prefix := "gateway:" + name + ":"
	return flow{
		{"customer", customer, func(c caller) string { return prefix + "customer:" + c.tenant + ":" + c.customer }, newRecent[*bucket](manyBuckets)},
		{"channel", channel, func(c caller) string { return prefix + "channel:" + c.tenant + ":" + c.channel.Name }, newRecent[*bucket](fewBuckets)},
		{"tenant", tenant, func(c caller) string { return prefix + "tenant:" + c.tenant }, newRecent[*bucket](fewBuckets)},
	}
}

// pass takes a permit at every level, or says which limit is reached. It tells
// nothing of who else counts towards it.
func (f flow) pass(ctx context.Context, l *limiter, c caller) *deskapi.Problem {
	for i := range f {
		lv := &f[i]
		key := lv.key(c)
		b := lv.buckets.get(key, func() *bucket { return newBucket(key, lv.rate) })
		if ok, after := l.allow(ctx, b); !ok {
			l.metrics.refused(ctx, lv.name)
			return deskapi.NewProblem(http.StatusTooManyRequests, deskapi.CodeRateLimited, "the "+lv.name+" is over its rate limit").After(after)
		}
	}
	return nil
}

// recent keeps the values that were used last: at least n of them, and at most
// twice as many.
type recent[V any] struct {
	n int

	mu         sync.Mutex
	young, old map[string]V
}

func newRecent[V any](n int) *recent[V] { return &recent[V]{n: n, young: map[string]V{}} }

// get gives the value of a key, making it when it is not remembered.
func (r *recent[V]) get(key string, fresh func() V) V {
	r.mu.Lock()
	defer r.mu.Unlock()
	if v, ok := r.young[key]; ok {
		return v
	}
	if len(r.young) >= r.n {
		r.young, r.old = map[string]V{}, r.young
	}
	v, ok := r.old[key]
	if !ok {
		v = fresh()
	}
	r.young[key] = v
	return v
}
