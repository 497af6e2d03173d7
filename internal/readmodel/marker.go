package readmodel

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

// claimLife is how long one process may take to rewind before another does.
const claimLife = 30 * time.Second

// Marker says how far the model is. Compare only with its methods.
type Marker string

const (
	claimed  = "claimed:"
	building = "building:"
	ready    = "ready:"
)

// Empty says that nothing is known to be there; somebody must rewind the views.
func (m Marker) Empty() bool { return m == "" }

// Building says that the views are coming from the beginning.
func (m Marker) Building() bool { return strings.HasPrefix(string(m), building) }

// Ready says that every view that was stored when the marker was set has been put.
func (m Marker) Ready() bool { return strings.HasPrefix(string(m), ready) }

// Server is the run of the Redis server on which the model became ready, or
// empty where that is not told.
func (m Marker) Server() string {
	_, run, _ := strings.Cut(string(m), "@")
	return run
}

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

// Claim takes an empty marker for one rewind under a unique token; false when
// another process has it. An unfinished claim lapses.
func (m *Model) Claim(ctx context.Context, token string) (bool, error) {
	err := m.redis.SetArgs(ctx, m.markerKey(), claimed+token, redis.SetArgs{Mode: "NX", TTL: claimLife}).Err()
	if errors.Is(err, redis.Nil) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("claim the rewind: %w", err)
	}
	return true, nil
}

// Release gives a claim back.
func (m *Model) Release(ctx context.Context, token string) error {
	return m.forget(ctx, Marker(claimed+token))
}

// Rewound says that the views come from the beginning since the claim; false
// when the claim is gone, and then what came meanwhile may be as well.
func (m *Model) Rewound(ctx context.Context, token string) (bool, error) {
	return m.swap(ctx, Marker(claimed+token), Marker(building+token))
}

// Finish says that every view has been put since the marker, which must be
// a building one, was read; server is what Server gave.
func (m *Model) Finish(ctx context.Context, was Marker, server string) (bool, error) {
	if !was.Building() {
		return false, nil
	}
	return m.swap(ctx, was, Marker(ready+strings.TrimPrefix(string(was), building)+"@"+server))
}

// Renew puts the present server into a ready marker.
func (m *Model) Renew(ctx context.Context, was Marker, server string) (bool, error) {
	head, _, _ := strings.Cut(string(was), "@")
	return m.swap(ctx, was, Marker(head+"@"+server))
}

// swap sets the marker, for good, if it still is what it was.
var swap = redis.NewScript(`
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
if ARGV[2] == '' then redis.call('DEL', KEYS[1]) else redis.call('SET', KEYS[1], ARGV[2]) end
return 1
`)

func (m *Model) swap(ctx context.Context, was, now Marker) (bool, error) {
	n, err := swap.Run(ctx, m.redis, []string{m.markerKey()}, string(was), string(now)).Int()
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
