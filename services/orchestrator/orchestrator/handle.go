package orchestrator

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/amends-dev/amends/internal/bus"
	"github.com/amends-dev/amends/internal/casestore"
	"github.com/amends-dev/amends/internal/casework"
	"github.com/amends-dev/amends/internal/ident"
	"github.com/amends-dev/amends/internal/roles"
	amendsv1 "github.com/amends-dev/amends/proto/amends/v1"
)

// maxTries bounds how often one delivery decides again after a lost race.
const maxTries = 6

// handle turns one input into a commit and sends what the commit wants. It is
// the commit protocol: load, look whether the input is in the record, decide,
// compare-and-set, send, and only then acknowledge.
func (o *orchestrator) handle(ctx context.Context, m *bus.Message) error {
	ctx = o.watched(ctx, m.Envelope)
	o.reached(ctx, InputTaken, m.Envelope)
	return o.apply(ctx, m, place{id: m.Parts.CaseID})
}

// errOtherBody: the linked case took another body of the same message. That one
// is still to be noted at the closed case, by whoever handles it.
var errOtherBody = errors.New("another body of the message was taken")

// place is the case an input is applied to: the one it was sent to, or a linked
// one that continues a closed case.
type place struct {
	id string
	// from is the closed case, or nil.
	from *amendsv1.CaseRecord
	// finding: the case a finding was sent to does not exist, and this one stands
	// for it.
	finding bool
}

func (o *orchestrator) apply(ctx context.Context, m *bus.Message, at place) error {
	unlock := o.locks.lock(m.Parts.Tenant, at.id)
	defer func() { unlock() }()
	in := casework.Input{
		AppliedInput: &amendsv1.AppliedInput{Envelope: m.Envelope, BrokerTime: timestamppb.New(m.Time), Stream: m.Stream, PolicyCorpus: o.cfg.PolicyCorpus},
		Payload:      m.Payload,
	}
	if at.from != nil || at.finding {
		in.OpensCaseId = at.id
	}
	fresh := m.Delivered > 1 // a redelivery may follow a commit this process did not see
	for range maxTries {
		snap, cached, err := o.load(ctx, m, at.id, fresh)
		if err != nil {
			return err
		}
		o.reached(ctx, CaseLoaded, m.Envelope)
		if snap.Record != nil && casework.Handled(snap.Record, in.GetEnvelope().GetSender(), in.GetEnvelope().GetMessageId()) {
			o.metrics.resent.Add(ctx, 1, metric.WithAttributes(attribute.String("cause", "repeat")))
			return o.sentAll(ctx, m, o.resend(ctx, snap.Record))
		}
		if id, ok := casework.OpensFinding(m.Payload); ok && snap.Record == nil && id != at.id && !at.finding {
			unlock() // of two cases only one is locked at a time
			unlock = func() {}
			return o.apply(ctx, m, place{id: id, finding: true})
		}
		if casework.Continues(snap.Record, in) {
			unlock() // of two cases only one is locked at a time
			linked, err := o.goOn(ctx, m, snap.Record)
			unlock = o.locks.lock(m.Parts.Tenant, at.id)
			if errors.Is(err, errOtherBody) {
				return nil
			}
			if err != nil {
				return err
			}
			if linked != "" {
				in.OpensCaseId = linked
			}
		}
		// Again after a lost race: an approval checked against a stale record
		// would be thrown away.
		if err := o.prepare(ctx, &in, at, snap.Record, m.LastDelivery); err != nil {
			return err
		}
		o.reached(ctx, LookedUp, m.Envelope)
		commit, err := casework.Decide(snap.Record, in, o.lim)
		if err != nil {
			if cached { // never refuse on a record that may be stale
				fresh = true
				continue
			}
			return o.undecided(ctx, m, snap.Record, err)
		}
		o.reached(ctx, Decided, m.Envelope)
		seq, err := o.store.Commit(ctx, commit, snap.Seq)
		switch {
		case err == nil:
			o.cache.put(casestore.Snapshot{Record: commit.GetRecord(), Seq: seq})
			o.held.note(commit.GetRecord())
			o.count(ctx, commit)
			o.reached(ctx, Committed, m.Envelope)
			return o.sentAll(ctx, m, o.send(ctx, commit.GetRecord(), casework.Delta(snap.Record, commit.GetRecord(), o.lim)))
		case errors.Is(err, casestore.ErrInvalid):
			return bus.Reject("commit_invalid", err)
		case errors.Is(err, casestore.ErrConflict), errors.Is(err, casestore.ErrUncertain):
			o.metrics.conflicts.Add(ctx, 1)
			fresh = true
		default:
			return bus.Retry(err)
		}
	}
	return bus.Retry(fmt.Errorf("case %s: %d lost races", at.id, maxTries))
}

// goOn applies a message to the linked case that continues a closed one, and
// gives its id, or nothing when the request has become as many cases as it may.
// The closed case records the message afterwards: until then a redelivery does
// all of this again and finds the same case.
func (o *orchestrator) goOn(ctx context.Context, m *bus.Message, closed *amendsv1.CaseRecord) (string, error) {
	for n := 2; n <= casework.MaxLinked; n++ {
		id := casework.LinkedID(closed.GetRequestId(), n)
		if ident.Token(id) != nil {
			return "", nil // the request's id leaves no room for a number
		}
		snap, err := o.store.Load(ctx, closed.GetTenant(), id)
		if err != nil && !errors.Is(err, casestore.ErrNotFound) {
			return "", bus.Retry(err)
		}
		if err == nil && snap.Record.GetContinuesCaseId() != closed.GetCaseId() {
			continue
		}
		if err := o.apply(ctx, m, place{id: id, from: closed}); err != nil {
			return "", err
		}
		// Read again: a body that came before this one may be there in its place.
		snap, err = o.store.Load(ctx, closed.GetTenant(), id)
		switch {
		case err != nil:
			return "", bus.Retry(err)
		case !casework.Met(snap.Record, m.Envelope.GetSender(), m.Envelope.GetMessageId(), m.Payload):
			return "", errOtherBody
		}
		return id, nil
	}
	return "", nil
}

// sentAll passes on what became of an input's sends.
func (o *orchestrator) sentAll(ctx context.Context, m *bus.Message, err error) error {
	if err == nil {
		o.reached(ctx, AllSent, m.Envelope)
	}
	return err
}

// load gives the case an input is for: from the cache, else from the stream's
// leader. A first post is taken to open its case without asking: if it does
// not, its commit loses the compare-and-set.
func (o *orchestrator) load(ctx context.Context, m *bus.Message, id string, fresh bool) (snap casestore.Snapshot, cached bool, err error) {
	tenant := m.Parts.Tenant
	if !fresh {
		if snap, ok := o.cache.get(tenant, id); ok {
			return snap, true, nil
		}
		if _, opens := m.Payload.(*amendsv1.CaseOpened); opens {
			return casestore.Snapshot{}, true, nil
		}
	}
	snap, err = o.store.Load(ctx, tenant, id)
	switch {
	case errors.Is(err, casestore.ErrNotFound):
		o.cache.drop(tenant, id)
		return casestore.Snapshot{}, false, nil
	case err != nil:
		return casestore.Snapshot{}, false, bus.Retry(err)
	}
	o.cache.put(snap)
	return snap, false, nil
}

// undecided settles an input that gave no commit, judged on the newest record.
func (o *orchestrator) undecided(ctx context.Context, m *bus.Message, rec *amendsv1.CaseRecord, err error) error {
	switch {
	case errors.Is(err, casework.ErrHandled):
		return o.resend(ctx, rec)
	case errors.Is(err, casework.ErrNothingDue):
		// An early timer is a hint to look: arm the next one.
		return o.arm(ctx, rec)
	case errors.Is(err, casework.ErrNothingNew):
		return nil // the case holds the finding; it comes again with every sweep
	case errors.Is(err, casework.ErrNoCase) && m.Stream == roles.StreamIntake && !m.LastDelivery:
		return bus.Retry(err) // the post that opens it may be on its way; deliveries are bounded
	case errors.Is(err, casework.ErrNoCase):
		return bus.Reject("case_unknown", err)
	case errors.Is(err, casework.ErrFull):
		return bus.Reject("case_full", err)
	}
	return bus.Retry(err)
}

func (o *orchestrator) count(ctx context.Context, c *amendsv1.CaseCommit) {
	rec := c.GetRecord()
	last := rec.GetTimeline()[len(rec.GetTimeline())-1]
	o.metrics.commits.Add(ctx, 1, metric.WithAttributes(attribute.String("row", last.GetRow())))
	if h := rec.GetHandled()[len(rec.GetHandled())-1]; h.GetRefused() != "" {
		o.metrics.refused.Add(ctx, 1, metric.WithAttributes(attribute.String("reason", h.GetRefused())))
		o.log.InfoContext(ctx, "input refused", slog.String("case", rec.GetCaseId()), slog.String("trace", rec.GetTraceId()),
			slog.String("sender", h.GetSender()), slog.String("message", h.GetMessageId()), slog.String("reason", h.GetRefused()))
	}
}
