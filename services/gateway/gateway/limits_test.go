package gateway

import (
	"bytes"
	"context"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/go-redis/redis_rate/v10"
	metricnoop "go.opentelemetry.io/otel/metric/noop"

	"github.com/amends-dev/amends/internal/deskapi"
	"github.com/amends-dev/amends/internal/readmodel"
)

func newTestLimiter(t *testing.T, addr string, now func() time.Time, log *slog.Logger) *limiter {
	t.Helper()
	m, err := newMetrics(metricnoop.NewMeterProvider().Meter("test"), gauges{})
	if err != nil {
		t.Fatal(err)
	}
	client, err := readmodel.Access{Addr: addr}.Open(nil, clientName, patient)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	return &limiter{patience: patient, redis: redis_rate.NewLimiter(client), now: now, log: log, metrics: m}
}

// patient waits for a Redis that is there, however busy the machine is.
const patient = 10 * time.Second

func granted(l *limiter, b *bucket, asks int) (n int) {
	for range asks {
		if ok, _ := l.allow(context.Background(), b); ok {
			n++
		}
	}
	return n
}

func TestGatewaysShareOneLimit(t *testing.T) {
	t.Parallel()
	r := miniredis.RunT(t)
	at := time.Now()
	r.SetTime(at)
	now := func() time.Time { return at }
	one, two := newTestLimiter(t, r.Addr(), now, quiet()), newTestLimiter(t, r.Addr(), now, quiet())
	rate := Rate{PerSecond: 100, Burst: 10}
	if got := granted(one, newBucket("k", rate), 8) + granted(two, newBucket("k", rate), 8); got != 10 {
		t.Errorf("%d requests passed two gateways, want 10", got)
	}
	if got := granted(one, newBucket("other", rate), 20); got != 10 {
		t.Errorf("%d requests of another channel passed, want 10", got)
	}
}

func TestBusyChannelAsksRedisSeldom(t *testing.T) {
	t.Parallel()
	r := miniredis.RunT(t)
	at := time.Now()
	r.SetTime(at)
	l := newTestLimiter(t, r.Addr(), func() time.Time { return at }, quiet())
	b := newBucket("k", Rate{PerSecond: 5000, Burst: 1000})
	before := r.CommandCount()
	if got := granted(l, b, 1000); got != 1000 {
		t.Fatalf("%d passed, want 1000", got)
	}
	if asked := r.CommandCount() - before; asked > 100 {
		t.Errorf("Redis was asked %d times for 1000 requests", asked)
	}
	if ok, after := l.allow(t.Context(), b); ok || after <= 0 {
		t.Errorf("request 1001: %t, %s", ok, after)
	}
}

// Bug B64: a counter without expiry limits a caller for ever.
func TestCountersExpireB64(t *testing.T) {
	t.Parallel()
	r := miniredis.RunT(t)
	l := newTestLimiter(t, r.Addr(), time.Now, quiet())
	granted(l, newBucket("k", Rate{PerSecond: 1, Burst: 1}), 2)
	for _, key := range r.Keys() {
		if r.TTL(key) <= 0 {
			t.Errorf("%s never expires", key)
		}
	}
}

// Bug B65: a limiter lets everything through when Redis is down.
func TestLocalCapWhenRedisIsAwayB65(t *testing.T) {
	t.Parallel()
	r := miniredis.RunT(t)
	at := time.Now()
	var lines bytes.Buffer
	l := newTestLimiter(t, r.Addr(), func() time.Time { return at }, slog.New(slog.NewTextHandler(&lines, nil)))
	b := newBucket("k", Rate{PerSecond: 10, Burst: 5})
	r.Close()
	if got := granted(l, b, 50); got != 5 {
		t.Errorf("%d passed without Redis, want 5", got)
	}
	at = at.Add(2 * redisPause)
	if got := granted(l, b, 50); got != 5 {
		t.Errorf("%d passed later, want 5", got)
	}
	if err := r.Restart(); err != nil {
		t.Fatal(err)
	}
	at = at.Add(2 * redisPause)
	if got := granted(l, b, 50); got != 5 {
		t.Errorf("%d passed with Redis back, want 5", got)
	}
	if log := lines.String(); strings.Count(log, "counted locally") != 1 || strings.Count(log, "in Redis again") != 1 {
		t.Errorf("logged:\n%s", log)
	}
}

func TestOverTheLimitIsToldWhenToRetry(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	url := d.gatewayWith(t, func(c *Config) { c.Limits.Posts = Rate{PerSecond: 1, Burst: 2} })
	var last answer
	for i := range 3 {
		last = ask(t, http.MethodPost, url+"/v1/cases", webKey, founding, "Idempotency-Key", "k-"+strings.Repeat("i", i+1))
	}
	if p := last.problem(t); last.status != http.StatusTooManyRequests || p.Code != deskapi.CodeRateLimited || last.header.Get("Retry-After") != "1" {
		t.Errorf("%d %+v %v", last.status, p, last.header)
	}
	if a := ask(t, http.MethodPost, url+"/v1/cases", betaKey, founding, "Idempotency-Key", "k"); a.status != http.StatusAccepted {
		t.Errorf("another tenant: %d", a.status)
	}
	d.redis.Close()
	if a := ask(t, http.MethodPost, url+"/v1/cases", demoKey, founding, "Idempotency-Key", "k"); a.status != http.StatusAccepted {
		t.Errorf("without Redis: %d %s", a.status, a.body)
	}
}
