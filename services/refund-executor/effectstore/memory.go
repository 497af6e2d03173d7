package effectstore

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/amends-dev/amends/internal/subject"
	amendsv1 "github.com/amends-dev/amends/proto/amends/v1"
)

// Op is an operation that a fault can strike.
type Op string

// The operations.
const (
	OpRead  Op = "read"
	OpStop  Op = "stop"
	OpAudit Op = "audit"
	// OpWrite strikes before a write: nothing is stored.
	OpWrite Op = "write"
	// OpAck strikes after a write: it is stored, and the writer gets
	// ErrUncertain.
	OpAck Op = "ack"
)

// MemoryOption changes how a Memory behaves.
type MemoryOption func(*Memory)

// WithFault asks fault before each operation on a subject; an error it returns
// is the operation's. It is called without locks and may be called concurrently.
func WithFault(fault func(op Op, subj string) error) MemoryOption {
	return func(m *Memory) { m.fault = fault }
}

// WithClock dates what is stored by a clock; by default time.Now.
func WithClock(now func() time.Time) MemoryOption {
	return func(m *Memory) { m.now = now }
}

// Memory keeps the records in this process. Like the streams, it numbers all
// writes together and keeps their history. It is safe for concurrent use.
type Memory struct {
	fault func(op Op, subj string) error
	now   func() time.Time

	mu     sync.Mutex
	last   uint64
	logs   map[string][]version
	stops  map[string][]byte
	audits []*amendsv1.AuditEvent
}

type version struct {
	seq  uint64
	at   time.Time
	data []byte
}

// NewMemory gives an empty store.
func NewMemory(opts ...MemoryOption) *Memory {
	m := &Memory{fault: func(Op, string) error { return nil }, now: time.Now, logs: map[string][]version{}, stops: map[string][]byte{}}
	for _, o := range opts {
		o(m)
	}
	return m
}

// Entry gives an order's entry, its sequence, and when it was stored; nil and 0
// when there is none.
func (m *Memory) Entry(ctx context.Context, tenant, order string) (*amendsv1.EffectEntry, uint64, time.Time, error) {
	subj, err := entryAt(tenant, order)
	if err != nil {
		return nil, 0, time.Time{}, fmt.Errorf("read the effect entry: %w", err)
	}
	v, err := m.read(ctx, subj)
	if err != nil || v.seq == 0 {
		return nil, 0, time.Time{}, err
	}
	e, err := decodeEntry(v.data, tenant, order)
	return e, v.seq, v.at, err
}

// Time gives the store's clock.
func (m *Memory) Time(ctx context.Context) (time.Time, error) {
	if err := m.interrupt(ctx, OpRead, "time"); err != nil {
		return time.Time{}, fmt.Errorf("read the clock: %w", err)
	}
	return m.now(), nil
}

// SaveEntry stores an entry if expect is still its order's last sequence.
func (m *Memory) SaveEntry(ctx context.Context, e *amendsv1.EffectEntry, expect uint64) (uint64, error) {
	subj, err := entryAt(e.GetTenant(), e.GetOrderId())
	if err != nil {
		return 0, fmt.Errorf("write the effect entry: %w", err)
	}
	return m.save(ctx, subj, e, expect)
}

// Caps gives a tenant's cap window and its sequence; nil and 0 when there is
// none.
func (m *Memory) Caps(ctx context.Context, tenant string) (*amendsv1.CapWindow, uint64, error) {
	subj, err := capsAt(tenant)
	if err != nil {
		return nil, 0, fmt.Errorf("read the cap window: %w", err)
	}
	v, err := m.read(ctx, subj)
	if err != nil || v.seq == 0 {
		return nil, 0, err
	}
	w, err := decodeCaps(v.data, tenant)
	return w, v.seq, err
}

// SaveCaps stores a cap window as SaveEntry does an entry.
func (m *Memory) SaveCaps(ctx context.Context, w *amendsv1.CapWindow, expect uint64) (uint64, error) {
	subj, err := capsAt(w.GetTenant())
	if err != nil {
		return 0, fmt.Errorf("write the cap window: %w", err)
	}
	return m.save(ctx, subj, w, expect)
}

// Stopped reads both stop switches that bind a tenant.
func (m *Memory) Stopped(ctx context.Context, tenant string) (bool, error) {
	if err := m.interrupt(ctx, OpStop, subject.Control(tenant)); err != nil {
		return false, fmt.Errorf("read the stop switches: %w", err)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, scope := range []string{subject.StopAll, tenant} {
		if data, ok := m.stops[scope]; ok && stops(data, scope) {
			return true, nil
		}
	}
	return false, nil
}

// SetStop puts bytes on the switch of a scope, as whoever may write to CONTROL
// can.
func (m *Memory) SetStop(scope string, data []byte) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.stops[scope] = slices.Clone(data)
}

// Audit records an event of a tenant.
func (m *Memory) Audit(ctx context.Context, tenant string, e *amendsv1.AuditEvent) error {
	if _, err := encode(e); err != nil {
		return fmt.Errorf("audit: %w", err)
	}
	if err := m.interrupt(ctx, OpAudit, tenant); err != nil {
		return fmt.Errorf("audit: %w", err)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.audits = append(m.audits, proto.CloneOf(e))
	return nil
}

// Audits gives every event recorded so far.
func (m *Memory) Audits() []*amendsv1.AuditEvent {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.audits)
}

// History gives every version of an order's entry, oldest first.
func (m *Memory) History(tenant, order string) ([]*amendsv1.EffectEntry, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var out []*amendsv1.EffectEntry
	for _, v := range m.logs[subject.Effect(tenant, order)] {
		e, err := decodeEntry(v.data, tenant, order)
		if err != nil {
			return nil, err
		}
		out = append(out, e)
	}
	return out, nil
}

func (m *Memory) interrupt(ctx context.Context, op Op, subj string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	return m.fault(op, subj)
}

func (m *Memory) read(ctx context.Context, subj string) (version, error) {
	if err := m.interrupt(ctx, OpRead, subj); err != nil {
		return version{}, fmt.Errorf("read %s: %w", subj, err)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if log := m.logs[subj]; len(log) > 0 {
		return log[len(log)-1], nil
	}
	return version{}, nil
}

func (m *Memory) save(ctx context.Context, subj string, msg proto.Message, expect uint64) (uint64, error) {
	data, err := encode(msg)
	if err != nil {
		return 0, fmt.Errorf("write %s: %w", subj, err)
	}
	if err := m.interrupt(ctx, OpWrite, subj); err != nil {
		return 0, fmt.Errorf("write %s: %w", subj, err)
	}
	if err := inTime(ctx); err != nil {
		return 0, fmt.Errorf("write %s: %w", subj, err)
	}
	seq, err := m.append(subj, data, expect)
	if err != nil {
		return 0, fmt.Errorf("write %s: %w", subj, err)
	}
	if err := m.fault(OpAck, subj); err != nil {
		return 0, fmt.Errorf("write %s: %w: %w", subj, ErrUncertain, err)
	}
	return seq, nil
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
	m.logs[subj] = append(log, version{seq: m.last, at: m.now(), data: data})
	return m.last, nil
}
