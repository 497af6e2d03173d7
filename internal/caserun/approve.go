package caserun

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"

	"google.golang.org/protobuf/proto"

	"github.com/amends-dev/amends/internal/allinone"
	"github.com/amends-dev/amends/internal/approval"
	"github.com/amends-dev/amends/internal/casefile"
	"github.com/amends-dev/amends/internal/casework"
	"github.com/amends-dev/amends/internal/deskapi"
	"github.com/amends-dev/amends/internal/prose"
	amendsv1 "github.com/amends-dev/amends/proto/amends/v1"
)

// signers are the approvers, in the order they sign.
var signers = []string{allinone.Approver, allinone.SecondApprover}

func awaits(rec *amendsv1.CaseRecord) bool {
	return casework.StateName(rec.GetState()) == casefile.AwaitingApproval
}

// remember looks at every action that waits for an approval, as its approver
// would: a later deed may be about what was shown then.
func (p *player) remember(ctx context.Context) error {
	for _, t := range p.tracks {
		rec := t.record()
		if !awaits(rec) || slices.ContainsFunc(t.shown, func(s shown) bool { return s.view.ActionSHA256 == rec.GetActionSha256() }) {
			continue
		}
		s, err := p.show(ctx, t)
		if errors.Is(err, errMovedOn) {
			continue
		}
		if err != nil {
			return err
		}
		t.shown = append(t.shown, s)
	}
	return nil
}

// errMovedOn: what the case proposed when it was last seen it proposes no more.
var errMovedOn = errors.New("the case has moved on")

func (p *player) show(ctx context.Context, t *track) (shown, error) {
	view, action, err := p.staff.Action(ctx, t.record().GetTenant(), t.id, t.record().GetVersion())
	if problem, ok := errors.AsType[*deskapi.Problem](err); ok && problem.Code == deskapi.CodeNoAction {
		return shown{}, fmt.Errorf("look at the action of %s: %w", t.id, errMovedOn)
	}
	if err != nil {
		return shown{}, fmt.Errorf("look at the action of %s: %w", t.id, err)
	}
	return shown{view, action}, nil
}

// approvable gives a case whose action the approver approves because nothing
// else is said: no followup is still to meet it waiting.
func (p *player) approvable() *track {
	for i, f := range p.c.Followups {
		if !p.done[i] && f.When.Approval(f.Approver != nil) {
			return nil
		}
	}
	for _, t := range p.tracks {
		rec := t.record()
		open := p.clock.Now().Before(rec.GetAction().GetExpires().AsTime())
		if awaits(rec) && open && !p.idle && !p.withheld[rec.GetActionSha256()] && !p.tried[rec.GetActionSha256()] {
			return t
		}
	}
	return nil
}

// act does what a followup says of the approvers.
func (p *player) act(ctx context.Context, a casefile.ApproverAction) error {
	switch a.Deed {
	case casefile.Nothing:
		p.idle = true
		p.note("no approver acts")
		return nil
	case casefile.Expire:
		for _, t := range p.tracks {
			if awaits(t.record()) {
				p.withheld[t.record().GetActionSha256()] = true
			}
		}
		p.note("the approver lets the action expire")
		return nil
	default: // a decision
	}
	i := slices.IndexFunc(p.tracks, func(t *track) bool { return awaits(t.record()) })
	if k := slices.IndexFunc(p.tracks, func(t *track) bool { return len(t.shown) > 0 }); a.Old || i < 0 {
		i = k
	}
	if i < 0 {
		return errors.New("there is no action record to act on, and none was shown before")
	}
	return p.sign(ctx, p.tracks[i], a)
}

// sign makes the decisions of an action of the approvers and hands them in.
func (p *player) sign(ctx context.Context, t *track, a casefile.ApproverAction) error {
	s, old, err := p.shownTo(ctx, t, a)
	if errors.Is(err, errMovedOn) {
		p.note("the action of %s is gone before anybody signs it", t.id)
		return nil
	}
	if err != nil {
		return err
	}
	action, altered, err := alter(s.action, a)
	if err != nil {
		return err
	}
	who := signers[:min(max(int(s.view.ApproversNeeded), 1), len(signers))]
	if a.Signer > 0 {
		who = signers[a.Signer-1 : a.Signer]
	}
	if a.Deed == casefile.Deny {
		who = who[:1]
	} else if altered || a.Forged || len(who) < int(s.view.ApproversNeeded) {
		p.idle = true // the case has said what is signed, and nothing more is
	}
	for range a.Times {
		for _, name := range who {
			if err := p.decide(ctx, t, s.view, action, name, a, casefile.Decision{Old: old, Altered: altered}); err != nil {
				return err
			}
		}
	}
	return nil
}

// shownTo gives the action a deed is about: the first that was shown, or the
// one that is shown now. What nobody shows any more is old.
func (p *player) shownTo(ctx context.Context, t *track, a casefile.ApproverAction) (shown, bool, error) {
	if awaits(t.record()) && (!a.Old || len(t.shown) < 2) {
		s, err := p.show(ctx, t)
		return s, false, err
	}
	if len(t.shown) == 0 {
		return shown{}, false, errors.New("no action record was shown before")
	}
	return t.shown[0], true, nil
}

// alter gives the action a decision is signed for, if it is not the one shown.
func alter(action *amendsv1.ActionRecord, a casefile.ApproverAction) (*amendsv1.ActionRecord, bool, error) {
	out := proto.CloneOf(action)
	first := out.GetRefunds()[0]
	total, err := approval.Total(action)
	if err != nil {
		return nil, false, err
	}
	for _, text := range a.Amounts {
		minor, ok := prose.Minor(text, total.GetCurrency(), 1)
		switch {
		case !ok:
			return nil, false, fmt.Errorf("%q is no amount in %s", text, total.GetCurrency())
		case minor != first.GetAmount().GetMinor() && minor != total.GetMinor():
			first.Amount.Minor = minor
			return out, true, nil
		}
	}
	switch {
	case !a.Alter || len(a.Amounts) > 0:
		return action, false, nil // what is shown
	case a.AlterTarget:
		first.PaymentId += "_x"
		first.IdempotencyKey += "_x"
	default:
		first.Amount.Minor *= 10
	}
	return out, true, nil
}

func (p *player) decide(ctx context.Context, t *track, view deskapi.Action, action *amendsv1.ActionRecord, name string, a casefile.ApproverAction, d casefile.Decision) error {
	key := p.desk.Trial.Keys[name]
	if a.Forged {
		var err error
		if key, err = approval.NewKey(key.ApproverID, key.KeyID, rand.Reader); err != nil {
			return err
		}
	}
	verdict := amendsv1.Verdict_VERDICT_APPROVE
	if a.Deed == casefile.Deny {
		verdict = amendsv1.Verdict_VERDICT_DENY
	}
	now := p.clock.Now()
	signed, err := allinone.Decision(key, view, action, verdict, now)
	if err != nil {
		return err
	}
	d.ApprovalID, d.Approves, d.Forged = signed.GetApprovalId(), a.Deed == casefile.Approve, a.Forged
	d.Expired = !now.Before(action.GetExpires().AsTime())
	d.Cancelled = t.record().GetCancelRevision() > 0
	problem, err := insist(ctx, false, func() error {
		done, err := p.staff.Decide(ctx, signed)
		d.MessageID = done.MessageID
		return err
	})
	switch {
	case err != nil:
		return fmt.Errorf("hand in the decision of %s: %w", name, err)
	case problem != nil:
		d.Refused = string(problem.Code)
		p.note("the console refused the decision of %s: %d %s", name, problem.Status, problem.Code)
	default:
		p.awaited = append(p.awaited, d.MessageID)
		p.note("%s hands in %s (%s)", name, d.ApprovalID, a.Deed)
	}
	p.decisions = append(p.decisions, d)
	return nil
}
