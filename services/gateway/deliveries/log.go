package deliveries

import (
	"context"
	"errors"
	"fmt"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/amends-dev/amends/internal/bus"
	"github.com/amends-dev/amends/internal/roles"
	"github.com/amends-dev/amends/internal/subject"
	amendsv1 "github.com/amends-dev/amends/proto/amends/v1"
)

const (
	pending    = amendsv1.DeliveryStatus_DELIVERY_STATUS_PENDING
	delivered  = amendsv1.DeliveryStatus_DELIVERY_STATUS_DELIVERED
	givenUp    = amendsv1.DeliveryStatus_DELIVERY_STATUS_GIVEN_UP
	suppressed = amendsv1.DeliveryStatus_DELIVERY_STATUS_SUPPRESSED
)

// maxAttempts bounds what the log keeps of one delivery.
const maxAttempts = 16

// Log reads what became of a case's webhooks; of a case that has none it is
// empty.
func Log(ctx context.Context, conn reader, tenant, caseID string) (*amendsv1.DeliveryLog, error) {
	log, _, err := load(ctx, conn, tenant, caseID)
	return log, err
}

// reader is what reading the log needs of the bus.
type reader interface {
	Last(ctx context.Context, stream, subj string) (bus.Stored, error)
}

func load(ctx context.Context, conn reader, tenant, caseID string) (*amendsv1.DeliveryLog, uint64, error) {
	log := new(amendsv1.DeliveryLog)
	seq, err := read(ctx, conn, subject.Delivery(tenant, caseID), log)
	if err != nil {
		return nil, 0, fmt.Errorf("read the delivery log of %s: %w", caseID, err)
	}
	return log, seq, nil
}

// read decodes the last message of a subject; where there is none, into stays
// empty and the sequence is 0.
func read(ctx context.Context, conn reader, subj string, into proto.Message) (uint64, error) {
	m, err := conn.Last(ctx, roles.StreamDeliveries, subj)
	if errors.Is(err, bus.ErrNotFound) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	return m.Seq, proto.Unmarshal(m.Data, into)
}

var errRaces = errors.New("too many lost races")

// change edits a case's log by compare-and-set. edit says whether it changed
// anything; it may be called several times, each time on what is stored.
func (o *Outbox) change(ctx context.Context, tenant, caseID string, edit func(*amendsv1.DeliveryLog) bool) (*amendsv1.DeliveryLog, error) {
	for range maxTries {
		log, seq, err := load(ctx, o.Bus, tenant, caseID)
		if err != nil {
			return nil, err
		}
		if !edit(log) {
			return log, nil
		}
		_, err = o.store(ctx, subject.Delivery(tenant, caseID), log, seq)
		if err == nil {
			return log, nil
		}
		// After a lost acknowledgement what is stored tells.
		if !errors.Is(err, bus.ErrConflict) && !errors.Is(err, bus.ErrUncertain) {
			return nil, err
		}
	}
	return nil, fmt.Errorf("change the delivery log of %s: %w", caseID, errRaces)
}

func (o *Outbox) store(ctx context.Context, subj string, m proto.Message, expect uint64) (uint64, error) {
	data, err := proto.MarshalOptions{Deterministic: true}.Marshal(m)
	if err != nil {
		return 0, fmt.Errorf("encode %s: %w", subj, err)
	}
	return o.Bus.Publish(ctx, subj, data, bus.ExpectLast(expect))
}

func entryOf(log *amendsv1.DeliveryLog, version uint64) *amendsv1.Delivery {
	for _, d := range log.GetDeliveries() {
		if d.GetVersion() == version {
			return d
		}
	}
	return nil
}

// due gives the first delivery that may be attempted at a time.
func due(log *amendsv1.DeliveryLog, at time.Time) *amendsv1.Delivery {
	for _, d := range log.GetDeliveries() {
		if isDue(d, at) {
			return d
		}
	}
	return nil
}

func isDue(d *amendsv1.Delivery, at time.Time) bool {
	return d.GetStatus() == pending && !d.GetNextAt().AsTime().After(at)
}

// next gives when something of a log is due next.
func next(log *amendsv1.DeliveryLog) (at time.Time, ok bool) {
	for _, d := range log.GetDeliveries() {
		if d.GetStatus() != pending {
			continue
		}
		if t := d.GetNextAt().AsTime(); !ok || t.Before(at) {
			at, ok = t, true
		}
	}
	return at, ok
}
