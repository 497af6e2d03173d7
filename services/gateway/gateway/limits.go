package gateway

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-redis/redis_rate/v10"
	"golang.org/x/time/rate"
)

const (
	// leaseShare is the part of a second's requests that is taken from Redis
	// at once, so that a busy channel does not ask for every request.
	leaseShare = 50
	// leaseLife is how long permits taken from Redis are good for.
	leaseLife = time.Second
	// listTimeout bounds one command for lists.
	listTimeout = time.Second
	// redisPause is how long the local cap applies before Redis is asked again.
	redisPause = time.Second
)

// limiter counts requests in Redis for all gateways together. While Redis is
// away each gateway applies the same rate for itself: intake goes on, capped.
type limiter struct {
	// patience bounds one question to Redis.
	patience time.Duration
	redis    *redis_rate.Limiter
	now      func() time.Time
	log      *slog.Logger
	metrics  *metrics
	away     atomic.Bool
	// alone is until when Redis is not asked, in Unix nanoseconds; 0 while it
	// answers. Whoever moves it on is the one that asks then.
	alone atomic.Int64
}

// bucket is one limited flow of requests.
type bucket struct {
	key   string
	limit redis_rate.Limit
	lease int

	mu     sync.Mutex
	held   int       // permits taken from Redis and not used yet
	until  time.Time // when they lapse
	refuse time.Time // until when no request passes
	local  *rate.Limiter
}

func newBucket(key string, r Rate) *bucket {
	return &bucket{
		key:   key,
		limit: redis_rate.Limit{Rate: r.PerSecond, Burst: r.Burst, Period: time.Second},
		lease: max(1, min(r.PerSecond/leaseShare, r.Burst)),
		local: rate.NewLimiter(rate.Limit(r.PerSecond), r.Burst),
	}
}

// allow takes one permit, or says after which time to ask again.
func (l *limiter) allow(ctx context.Context, b *bucket) (ok bool, after time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := l.now()
	switch {
	case b.held > 0 && now.Before(b.until):
		b.held--
		return true, 0
	case now.Before(b.refuse):
		return false, b.refuse.Sub(now)
	case !l.mayAsk(now):
		return l.allowLocal(ctx, b, now)
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), l.patience)
	defer cancel()
	res, err := l.redis.AllowAtMost(ctx, b.key, b.limit, b.lease)
	if err != nil {
		l.alone.Store(now.Add(redisPause).UnixNano())
		if !l.away.Swap(true) {
			l.log.Warn("rate limits are counted locally", slog.Any("error", err))
		}
		return l.allowLocal(ctx, b, now)
	}
	if l.away.Load() && l.away.Swap(false) {
		l.alone.Store(0)
		l.log.Info("rate limits are counted in Redis again")
	}
	if res.Allowed == 0 {
		after = min(max(res.RetryAfter, time.Millisecond), time.Second)
		b.refuse = now.Add(after)
		return false, after
	}
	b.held, b.until = res.Allowed-1, now.Add(leaseLife)
	return true, 0
}

// mayAsk says whether to ask Redis: always while it answers, else one request in
// each redisPause, so that a Redis that hangs does not hold up all of them.
func (l *limiter) mayAsk(now time.Time) bool {
	until := l.alone.Load()
	if until == 0 {
		return true
	}
	return now.UnixNano() >= until && l.alone.CompareAndSwap(until, now.Add(redisPause).UnixNano())
}

func (l *limiter) allowLocal(ctx context.Context, b *bucket, now time.Time) (bool, time.Duration) {
	l.metrics.limitedLocally.Add(ctx, 1)
	if b.local.AllowN(now, 1) {
		return true, 0
	}
	return false, time.Duration(float64(time.Second) / float64(b.local.Limit()))
}

// gate bounds how many are inside at once.
type gate struct {
	limit  int64
	inside atomic.Int64
}

func (g *gate) enter() bool {
	if g.inside.Add(1) > g.limit {
		g.inside.Add(-1)
		return false
	}
	return true
}

func (g *gate) leave() { g.inside.Add(-1) }
