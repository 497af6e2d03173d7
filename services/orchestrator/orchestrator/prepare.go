package orchestrator

import (
	"context"
	"fmt"

	"golang.org/x/sync/errgroup"

	"github.com/amends-dev/amends/internal/approval"
	"github.com/amends-dev/amends/internal/bus"
	"github.com/amends-dev/amends/internal/casework"
	"github.com/amends-dev/amends/internal/ident"
	"github.com/amends-dev/amends/internal/triage"
	amendsv1 "github.com/amends-dev/amends/proto/amends/v1"
)

// prepare makes the look-ups a decision needs and puts their answers into the
// input, where they stay with the log: deciding itself does no I/O. On the last
// delivery of a message a look-up that cannot be had is for a person, so that
// an accepted post is a case and not a dead letter (LOSS-1).
func (o *orchestrator) prepare(ctx context.Context, in *casework.Input, at place, rec *amendsv1.CaseRecord, last bool) error {
	if text, ok := casework.NeedsTriage(rec, in.Payload); ok {
		t, err := o.triage(ctx, in, at, rec, text)
		switch {
		case err != nil && !last:
			return bus.Retry(err)
		case err != nil:
			t = triage.Conclude(triage.Read(text.GetText()), nil)
			switch waits := rec == nil || rec.GetState() == amendsv1.CaseState_CASE_STATE_AWAITING_CUSTOMER; {
			case t.GetOutcome() == amendsv1.TriageOutcome_TRIAGE_OUTCOME_CANCEL: // needs no look-up
			case waits:
				t.Outcome, t.Reason = amendsv1.TriageOutcome_TRIAGE_OUTCOME_NEEDS_PERSON, "owner_lookup_unavailable"
			default:
				return bus.Retry(err) // no row would bring it to a person: a dead letter does
			}
		}
		in.Triage = t
	}
	if d, ok := casework.NeedsApprover(in.Payload); ok {
		people, err := o.registry()
		if err != nil {
			return bus.Retry(err)
		}
		in.Approver = checkApprover(people, in, rec, d)
	}
	if d, ok := casework.NeedsCustodian(in.Payload); ok {
		people, err := o.registry()
		if err != nil {
			return bus.Retry(err)
		}
		in.Approver = checkCustodian(people, in, rec, d)
	}
	return nil
}

// triage reads a message and asks the payments side which of the orders it
// names are the caller's. The caller is the envelope's, set at the gateway;
// the text never says who somebody is.
func (o *orchestrator) triage(ctx context.Context, in *casework.Input, at place, rec *amendsv1.CaseRecord, text *amendsv1.UntrustedText) (*amendsv1.Triage, error) {
	env := in.GetEnvelope()
	reading := triage.Read(text.GetText())
	switch {
	case rec != nil:
		reading = reading.Continue(rec.GetTriage())
	case at.from != nil:
		reading = reading.Continue(at.from.GetTriage())
	}
	mine := make([]bool, len(reading.Refs))
	g, gctx := errgroup.WithContext(ctx)
	for i, ref := range reading.Refs {
		g.Go(func() error {
			ok, err := o.owners.VerifyOwner(gctx, env.GetTenant(), env.GetCustomerId(), ref)
			mine[i] = ok
			return err
		})
	}
	if err := g.Wait(); err != nil {
		return nil, err
	}
	var owned, calls []string
	for i, ref := range reading.Refs {
		calls = append(calls, fmt.Sprintf("call-%s-t%d", ident.Suffix(at.id), len(rec.GetMessages())*triage.MaxRefs+i+1))
		if mine[i] {
			owned = append(owned, ref)
		}
	}
	t := triage.Conclude(reading, owned)
	t.CallIds = calls
	return t, nil
}

// checkApprover verifies a signed decision against the approver registry. The
// executor verifies it again with its own copy; this check only keeps forged
// ones from moving the state.
func checkApprover(people *approval.Registry, in *casework.Input, rec *amendsv1.CaseRecord, d *amendsv1.SignedDecision) *amendsv1.ApproverCheck {
	check := &amendsv1.ApproverCheck{ApproverId: d.GetApproverId(), RegistryVersion: people.Version}
	if rec.GetAction() == nil {
		check.Reason = approval.ReasonOtherAction
		return check
	}
	if err := approval.Check(people, rec.GetAction(), d, in.GetBrokerTime().AsTime()); err != nil {
		check.Reason = approval.ReasonOf(err)
		return check
	}
	check.Valid = true
	return check
}

// checkCustodian verifies a custodian's signed decision against the registry
// of people.
func checkCustodian(people *approval.Registry, in *casework.Input, rec *amendsv1.CaseRecord, d *amendsv1.CustodyDecision) *amendsv1.ApproverCheck {
	check := &amendsv1.ApproverCheck{ApproverId: d.GetCustodianId(), RegistryVersion: people.Version}
	if err := approval.CheckCustody(people, rec.GetTenant(), rec.GetCaseId(), d, in.GetBrokerTime().AsTime()); err != nil {
		check.Reason = approval.ReasonOf(err)
		return check
	}
	check.Valid = true
	return check
}
