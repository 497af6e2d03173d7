package executor

import "context"

// Records is what the executor needs of the bus.
type Records = records

// Locks is the executor's lock per order.
type Locks = locks

// Lock waits for a key's turn.
func (l *Locks) Lock(ctx context.Context, key string) (func(), error) { return l.lock(ctx, key) }

// RunThrough is Run with something between the executor and the bus.
func RunThrough(ctx context.Context, cfg Config, deps Deps, between func(Records) Records) error {
	return runThrough(ctx, cfg, deps, between(deps.Bus))
}

// Held counts the keys somebody holds or waits for.
func (l *Locks) Held() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.held)
}
