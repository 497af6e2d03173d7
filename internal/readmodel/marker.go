package readmodel

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

// claimLife is how long a claim lasts that is not extended.
const claimLife = 30 * time.Second

// Marker says how far the model is. Compare only with its methods.
type Marker string

const (
	claimed = "claimed:"
	ready   = "ready@"
)

// Claimed says that a process is filling the model.
func (m Marker) Claimed() bool { return strings.HasPrefix(string(m), claimed) }

// Ready says that every view that was stored when it was filled has been put.
func (m Marker) Ready() bool { return strings.HasPrefix(string(m), ready) }

// Server is the run of the Redis server on which the model became ready, or
// empty where that is not told.
func (m Marker) Server() string { return strings.TrimPrefix(string(m), ready) }

// Claim is one process's right to fill the model, a unique token.
type Claim string

func (c Claim) marker() Marker { return Marker(claimed + string(c)) }

// Marker reads the marker.
func (m *Model) Marker(ctx context.Context) (Marker, error) {
	s, err := m.redis.Get(ctx, m.markerKey()).Result()
	if err != nil && !errors.Is(err, redis.Nil) {
		return "", fmt.Errorf("read the marker: %w", err)
	}
	return Marker(s), nil
}

// Server names the present run of the Redis server; empty where it does not
// tell.
func (m *Model) Server(ctx context.Context) (string, error) {
	info, err := m.redis.Info(ctx, "server").Result()
	if _, refused := errors.AsType[redis.Error](err); refused {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("ask which server it is: %w", err)
	}
	_, rest, _ := strings.Cut(info, "run_id:")
	run, _, _ := strings.Cut(rest, "\r\n")
	return run, nil
}

// Claim takes the marker, which was read as was; false when another process was
// first. From then on lists are not ready until Finish.
func (m *Model) Claim(ctx context.Context, was Marker, c Claim) (bool, error) {
	return m.swap(ctx, was, c.marker())
}

// Extend gives a claim its whole life again; false when it is gone.
func (m *Model) Extend(ctx context.Context, c Claim) (bool, error) {
	return m.swap(ctx, c.marker(), c.marker())
}

// Release gives a claim back.
func (m *Model) Release(ctx context.Context, c Claim) error { return m.forget(ctx, c.marker()) }

// Finish says that every view that was stored at the claim has been put, on the
// server that Server named before it; false when the claim is gone.
func (m *Model) Finish(ctx context.Context, c Claim, server string) (bool, error) {
	return m.swap(ctx, c.marker(), Marker(ready+server))
}

// swap sets the marker if it still is what it was; a claim lapses by itself.
var swap = redis.NewScript(`
if (redis.call('GET', KEYS[1]) or '') ~= ARGV[1] then return 0 end
if ARGV[2] == '' then redis.call('DEL', KEYS[1])
elseif ARGV[3] == '0' then redis.call('SET', KEYS[1], ARGV[2])
else redis.call('SET', KEYS[1], ARGV[2], 'PX', ARGV[3]) end
return 1
`)

func (m *Model) swap(ctx context.Context, was, now Marker) (bool, error) {
	life := int64(0)
	if now.Claimed() {
		life = claimLife.Milliseconds()
	}
	n, err := swap.Run(ctx, m.redis, []string{m.markerKey()}, string(was), string(now), life).Int()
	if err != nil {
		return false, fmt.Errorf("set the marker: %w", err)
	}
	return n == 1, nil
}

// forget takes the marker away, so that the model is built again.
func (m *Model) forget(ctx context.Context, was Marker) error {
	_, err := m.swap(ctx, was, "")
	return err
}
