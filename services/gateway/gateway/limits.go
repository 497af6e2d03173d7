package gateway

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-redis/redis_rate/v10"
	"github.com/redis/go-redis/v9"
	"golang.org/x/time/rate"
)

const (
	// leaseShare is the part of a second's requests that is taken from Redis
	// at once, so that a busy channel does not ask for every request.
	leaseShare = 50
	// leaseLife is how long permits taken from Redis are good for.
	leaseLife = time.Second
	// redisTimeout bounds one question to Redis.
	redisTimeout = 100 * time.Millisecond
	// redisPause is how long the local cap applies before Redis is asked again.
	redisPause = time.Second
)

func newRedis(cfg Redis, password string) *redis.Client {
	return redis.NewClient(&redis.Options{
		Addr: cfg.Addr, Password: password, ClientName: "amends-gateway",
		DialTimeout: redisTimeout, ReadTimeout: redisTimeout, WriteTimeout: redisTimeout, PoolTimeout: redisTimeout,
		ContextTimeoutEnabled: true, MaxRetries: -1, PoolSize: 8,
	})
}

// limiter counts requests in Redis for all gateways together. While Redis is
// away each gateway applies the same rate for itself: intake goes on, capped.
type limiter struct {
	redis   *redis_rate.Limiter
	now     func() time.Time
	log     *slog.Logger
	metrics *metrics
	away    atomic.Bool
}

// bucket is one limited flow of requests.
type bucket struct {
	key   string
	limit redis_rate.Limit
	lease int

	mu    sync.Mutex
	held  int       // permits taken from Redis and not used yet
	until time.Time // when they lapse
	// refuse and alone: until when no request passes, or Redis is not asked.
	refuse time.Time
	alone  time.Time
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
	case now.Before(b.alone):
		return l.allowLocal(ctx, b, now)
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), redisTimeout)
	defer cancel()
	res, err := l.redis.AllowAtMost(ctx, b.key, b.limit, b.lease)
	if err != nil {
		b.alone = now.Add(redisPause)
		if !l.away.Swap(true) {
			l.log.Warn("rate limits are counted locally", slog.Any("error", err))
		}
		return l.allowLocal(ctx, b, now)
	}
	if l.away.Swap(false) {
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
