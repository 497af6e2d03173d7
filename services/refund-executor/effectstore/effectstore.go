package effectstore

import (
	"context"
	"errors"
	"fmt"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/amends-dev/amends/internal/envelope"
	"github.com/amends-dev/amends/internal/ident"
	"github.com/amends-dev/amends/internal/subject"
	amendsv1 "github.com/amends-dev/amends/proto/amends/v1"
)

// What a write can end as; tested with errors.Is.
var (
	// ErrConflict: another write came first; read and decide again.
	ErrConflict = errors.New("the effect record has moved on")
	// ErrUncertain: the write may have been stored; read and decide again.
	ErrUncertain = errors.New("the effect record may have been stored")
	// ErrTooLate: the time for the write has passed, and nothing was stored;
	// decide again.
	ErrTooLate = errors.New("too late to store the effect record")
	// ErrInvalid: the record breaks its schema; trying again does not help.
	ErrInvalid = errors.New("not a valid effect record")
)

// Store is what the executor needs of its records.
type Store interface {
	// Entry gives an order's entry, its sequence, and the store's time when it
	// was stored; nil and 0 when there is none. What it gives belongs to the
	// caller.
	Entry(ctx context.Context, tenant, order string) (*amendsv1.EffectEntry, uint64, time.Time, error)
	// SaveEntry stores an entry if expect is still its order's last sequence,
	// and gives the new one.
	SaveEntry(ctx context.Context, e *amendsv1.EffectEntry, expect uint64) (uint64, error)
	// Caps gives a tenant's cap window and its sequence; nil and 0 when there
	// is none.
	Caps(ctx context.Context, tenant string) (*amendsv1.CapWindow, uint64, error)
	// SaveCaps stores a cap window as SaveEntry does an entry.
	SaveCaps(ctx context.Context, w *amendsv1.CapWindow, expect uint64) (uint64, error)
	// Stopped says whether a stop switch that binds the tenant is set.
	Stopped(ctx context.Context, tenant string) (bool, error)
	// Audit records an event of a tenant for the auditors.
	Audit(ctx context.Context, tenant string, e *amendsv1.AuditEvent) error
	// Time gives the clock by which the store dates what it stores.
	Time(ctx context.Context) (time.Time, error)
}

var wire = proto.MarshalOptions{Deterministic: true}

// entryAt gives the subject of an order's entry.
func entryAt(tenant, order string) (string, error) {
	if err := ident.Tokens("tenant", tenant, "order", order); err != nil {
		return "", fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	if subject.ReservedOrder(order) {
		return "", fmt.Errorf("%w: order id %q is reserved", ErrInvalid, order)
	}
	return subject.Effect(tenant, order), nil
}

func capsAt(tenant string) (string, error) {
	if err := ident.Tokens("tenant", tenant); err != nil {
		return "", fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	return subject.EffectCap(tenant), nil
}

func encode(m proto.Message) ([]byte, error) {
	if err := envelope.Validate(m); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	data, err := wire.Marshal(m)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	return data, nil
}

func decodeEntry(data []byte, tenant, order string) (*amendsv1.EffectEntry, error) {
	e := new(amendsv1.EffectEntry)
	if err := proto.Unmarshal(data, e); err != nil {
		return nil, fmt.Errorf("decode: %w", err)
	}
	if e.GetTenant() != tenant || e.GetOrderId() != order {
		return nil, fmt.Errorf("effect entry of order %s names another order", order)
	}
	return e, nil
}

func decodeCaps(data []byte, tenant string) (*amendsv1.CapWindow, error) {
	w := new(amendsv1.CapWindow)
	if err := proto.Unmarshal(data, w); err != nil {
		return nil, fmt.Errorf("decode: %w", err)
	}
	if w.GetTenant() != tenant {
		return nil, fmt.Errorf("cap window of %s names another tenant", tenant)
	}
	return w, nil
}

// stops reads a switch; what cannot be understood is a stop.
func stops(data []byte, scope string) bool {
	s := new(amendsv1.StopSwitch)
	if err := proto.Unmarshal(data, s); err != nil || s.GetScope() != scope {
		return true
	}
	return s.GetStopped()
}
