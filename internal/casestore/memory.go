package casestore

import (
	"context"
	"fmt"
	"sync"

	amendsv1 "github.com/amends-dev/amends/proto/amends/v1"
)

// Operations a fault can strike.
const (
	OpLoad = "load"
	OpLog  = "log"
	// OpCommit strikes before the commit: nothing is stored.
	OpCommit = "commit"
	// OpAck strikes after the commit: it is stored, and the caller gets
	// ErrUncertain.
	OpAck = "ack"
)

// MemoryOption changes how a Memory behaves.
type MemoryOption func(*Memory)

// WithFault asks fault before each operation; an error it returns is the
// operation's. It is called without locks and may be called concurrently.
func WithFault(fault func(op string) error) MemoryOption {
	return func(m *Memory) { m.fault = fault }
}

// Memory keeps the commits in this process. Like the stream, it numbers the
// commits of all cases together. It is safe for concurrent use.
type Memory struct {
	fault func(op string) error

	mu   sync.Mutex
	last uint64
	logs map[string][]entry
}

type entry struct {
	seq  uint64
	data []byte
}

// NewMemory gives an empty store.
func NewMemory(opts ...MemoryOption) *Memory {
	m := &Memory{fault: func(string) error { return nil }, logs: map[string][]entry{}}
	for _, o := range opts {
		o(m)
	}
	return m
}

// Load gives the newest record of a case.
func (m *Memory) Load(ctx context.Context, tenant, caseID string) (Snapshot, error) {
	log, err := m.read(ctx, OpLoad, tenant, caseID)
	if err != nil {
		return Snapshot{}, fmt.Errorf("load the case: %w", err)
	}
	newest := log[len(log)-1]
	c, err := decode(newest.data, newest.seq)
	if err != nil {
		return Snapshot{}, fmt.Errorf("load the case: %w", err)
	}
	return Snapshot{Record: c.GetRecord(), Seq: newest.seq}, nil
}

// Commit stores c if expect is still the case's last sequence, and gives the
// new one.
func (m *Memory) Commit(ctx context.Context, c *amendsv1.CaseCommit, expect uint64) (uint64, error) {
	subj, data, err := encode(c)
	if err != nil {
		return 0, fmt.Errorf("commit the case: %w", err)
	}
	if err := m.interrupt(ctx, OpCommit); err != nil {
		return 0, fmt.Errorf("commit the case: %w", err)
	}
	seq, err := m.append(subj, data, expect)
	if err != nil {
		return 0, fmt.Errorf("commit the case: %w", err)
	}
	if err := m.fault(OpAck); err != nil {
		return 0, fmt.Errorf("commit the case: %w: %w", ErrUncertain, err)
	}
	return seq, nil
}

// Log gives every commit of a case, oldest first.
func (m *Memory) Log(ctx context.Context, tenant, caseID string) ([]*amendsv1.CaseCommit, error) {
	log, err := m.read(ctx, OpLog, tenant, caseID)
	if err != nil {
		return nil, fmt.Errorf("read the case's log: %w", err)
	}
	out := make([]*amendsv1.CaseCommit, len(log))
	for i, e := range log {
		if out[i], err = decode(e.data, e.seq); err != nil {
			return nil, fmt.Errorf("read the case's log: %w", err)
		}
	}
	return out, nil
}

func (m *Memory) interrupt(ctx context.Context, op string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	return m.fault(op)
}

// read gives a case's entries, at least one. Stored bytes never change.
func (m *Memory) read(ctx context.Context, op, tenant, caseID string) ([]entry, error) {
	subj, err := where(tenant, caseID)
	if err != nil {
		return nil, err
	}
	if err := m.interrupt(ctx, op); err != nil {
		return nil, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	log := m.logs[subj]
	if len(log) == 0 {
		return nil, ErrNotFound
	}
	return log, nil
}

func (m *Memory) append(subj string, data []byte, expect uint64) (uint64, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	log := m.logs[subj]
	var last uint64
	if len(log) > 0 {
		last = log[len(log)-1].seq
	}
	if last != expect {
		return 0, fmt.Errorf("%w: last sequence %d, expected %d", ErrConflict, last, expect)
	}
	m.last++
	m.logs[subj] = append(log, entry{seq: m.last, data: data})
	return m.last, nil
}
