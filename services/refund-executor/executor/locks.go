package executor

import (
	"context"
	"sync"
)

// locks lets one task at a time work on an order in this process, so that
// they do not lose races to each other. Correctness rests on the
// compare-and-set, not on this.
type locks struct {
	mu   sync.Mutex
	held map[string]*queue
}

type queue struct {
	turn    chan struct{}
	waiting int
}

// lock waits for its turn; the caller calls the function it gives once.
func (l *locks) lock(ctx context.Context, key string) (unlock func(), err error) {
	l.mu.Lock()
	if l.held == nil {
		l.held = map[string]*queue{}
	}
	q := l.held[key]
	if q == nil {
		q = &queue{turn: make(chan struct{}, 1)}
		l.held[key] = q
	}
	q.waiting++
	l.mu.Unlock()

	leave := func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		if q.waiting--; q.waiting == 0 {
			delete(l.held, key)
		}
	}
	select {
	case q.turn <- struct{}{}:
		return func() { <-q.turn; leave() }, nil
	case <-ctx.Done():
		leave()
		return nil, ctx.Err()
	}
}
