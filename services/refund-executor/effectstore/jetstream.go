package effectstore

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/amends-dev/amends/internal/bus"
	"github.com/amends-dev/amends/internal/roles"
	"github.com/amends-dev/amends/internal/subject"
	amendsv1 "github.com/amends-dev/amends/proto/amends/v1"
)

// Bus is what the store needs of the executor's connection.
type Bus interface {
	Last(ctx context.Context, stream, subj string) (bus.Stored, error)
	NextAfter(ctx context.Context, stream, filter string, seq uint64) (bus.Stored, error)
	Publish(ctx context.Context, subj string, data []byte, opts ...bus.PublishOption) (uint64, error)
	Time(ctx context.Context, consumer string) (time.Time, error)
}

// JetStream keeps entries and cap windows in EFFECTS and refusals in AUDIT, and
// reads CONTROL.
type JetStream struct{ bus Bus }

// NewJetStream stores through the executor's connection.
func NewJetStream(b Bus) *JetStream { return &JetStream{bus: b} }

// Entry gives an order's entry, its sequence, and the broker's time when it was
// stored; nil and 0 when there is none.
func (s *JetStream) Entry(ctx context.Context, tenant, order string) (*amendsv1.EffectEntry, uint64, time.Time, error) {
	subj, err := entryAt(tenant, order)
	if err != nil {
		return nil, 0, time.Time{}, fmt.Errorf("read the effect entry: %w", err)
	}
	m, err := s.bus.Last(ctx, roles.StreamEffects, subj)
	if errors.Is(err, bus.ErrNotFound) {
		return nil, 0, time.Time{}, nil
	}
	if err != nil {
		return nil, 0, time.Time{}, fmt.Errorf("read the effect entry: %w", err)
	}
	e, err := decodeEntry(m.Data, tenant, order)
	if err != nil {
		return nil, 0, time.Time{}, fmt.Errorf("read the effect entry at sequence %d: %w", m.Seq, err)
	}
	return e, m.Seq, m.Time, nil
}

// Time gives the broker's clock.
func (s *JetStream) Time(ctx context.Context) (time.Time, error) {
	at, err := s.bus.Time(ctx, roles.TaskConsumer(roles.RefundExecutor))
	if err != nil {
		return time.Time{}, fmt.Errorf("read the clock: %w", err)
	}
	return at, nil
}

// SaveEntry stores an entry if expect is still its order's last sequence, and
// gives the new one.
func (s *JetStream) SaveEntry(ctx context.Context, e *amendsv1.EffectEntry, expect uint64) (uint64, error) {
	subj, err := entryAt(e.GetTenant(), e.GetOrderId())
	if err != nil {
		return 0, fmt.Errorf("write the effect entry: %w", err)
	}
	seq, err := s.save(ctx, subj, e, expect)
	if err != nil {
		return 0, fmt.Errorf("write the effect entry: %w", err)
	}
	return seq, nil
}

// Caps gives a tenant's cap window and its sequence; nil and 0 when there is
// none.
func (s *JetStream) Caps(ctx context.Context, tenant string) (*amendsv1.CapWindow, uint64, error) {
	subj, err := capsAt(tenant)
	if err != nil {
		return nil, 0, fmt.Errorf("read the cap window: %w", err)
	}
	m, err := s.bus.Last(ctx, roles.StreamEffects, subj)
	if errors.Is(err, bus.ErrNotFound) {
		return nil, 0, nil
	}
	if err != nil {
		return nil, 0, fmt.Errorf("read the cap window: %w", err)
	}
	w, err := decodeCaps(m.Data, tenant)
	if err != nil {
		return nil, 0, fmt.Errorf("read the cap window at sequence %d: %w", m.Seq, err)
	}
	return w, m.Seq, nil
}

// SaveCaps stores a cap window as SaveEntry does an entry.
func (s *JetStream) SaveCaps(ctx context.Context, w *amendsv1.CapWindow, expect uint64) (uint64, error) {
	subj, err := capsAt(w.GetTenant())
	if err != nil {
		return 0, fmt.Errorf("write the cap window: %w", err)
	}
	seq, err := s.save(ctx, subj, w, expect)
	if err != nil {
		return 0, fmt.Errorf("write the cap window: %w", err)
	}
	return seq, nil
}

// Stopped reads both stop switches that bind a tenant.
func (s *JetStream) Stopped(ctx context.Context, tenant string) (bool, error) {
	switch _, err := s.bus.NextAfter(ctx, roles.StreamControl, subject.Control("*"), 0); {
	case errors.Is(err, bus.ErrNotFound):
		return false, nil // nobody ever touched a switch: one look instead of two
	case err != nil:
		return false, fmt.Errorf("read the stop switches: %w", err)
	}
	var all, own bool
	var allErr, ownErr error
	var wg sync.WaitGroup
	wg.Go(func() { all, allErr = s.stop(ctx, subject.StopAll) })
	own, ownErr = s.stop(ctx, tenant)
	wg.Wait()
	if all || own {
		return true, nil
	}
	return false, errors.Join(allErr, ownErr)
}

func (s *JetStream) stop(ctx context.Context, scope string) (bool, error) {
	m, err := s.bus.Last(ctx, roles.StreamControl, subject.Control(scope))
	switch {
	case errors.Is(err, bus.ErrNotFound):
		return false, nil
	case err != nil:
		return false, fmt.Errorf("read the stop switch: %w", err)
	}
	return stops(m.Data, scope), nil
}

// Audit records an event of a tenant.
func (s *JetStream) Audit(ctx context.Context, tenant string, e *amendsv1.AuditEvent) error {
	data, err := encode(e)
	if err != nil {
		return fmt.Errorf("audit: %w", err)
	}
	if _, err := s.bus.Publish(ctx, subject.Audit(string(roles.RefundExecutor), tenant), data); err != nil {
		return fmt.Errorf("audit: %w", err)
	}
	return nil
}

func (s *JetStream) save(ctx context.Context, subj string, m proto.Message, expect uint64) (uint64, error) {
	data, err := encode(m)
	if err != nil {
		return 0, err
	}
	if err := inTime(ctx); err != nil {
		return 0, err
	}
	seq, err := s.bus.Publish(ctx, subj, data, bus.ExpectLast(expect))
	return seq, translate(err)
}

// translate puts the bus's answers into the store's words.
func translate(err error) error {
	switch {
	case errors.Is(err, bus.ErrConflict):
		return fmt.Errorf("%w: %w", ErrConflict, err)
	case errors.Is(err, bus.ErrUncertain):
		return fmt.Errorf("%w: %w", ErrUncertain, err)
	}
	return err
}
