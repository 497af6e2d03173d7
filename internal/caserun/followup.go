package caserun

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/amends-dev/amends/internal/casefile"
	"github.com/amends-dev/amends/internal/casework"
	"github.com/amends-dev/amends/internal/deskapi"
	"github.com/amends-dev/amends/internal/deskclient"
	"github.com/amends-dev/amends/internal/roles"
	amendsv1 "github.com/amends-dev/amends/proto/amends/v1"
)

// situation is what the moments of followups are judged by.
func (p *player) situation(i int) casefile.Situation {
	s := casefile.Situation{Received: p.c.Now, Now: p.clock.Now(), BeforeDone: true, ByApprover: p.c.Followups[i].Approver != nil}
	for k := range i {
		s.BeforeDone = s.BeforeDone && p.done[k]
		if p.doneAt[k].After(s.Before) {
			s.Before = p.doneAt[k]
		}
	}
	for _, t := range p.tracks {
		rec := t.record()
		s.States = append(s.States, casework.StateName(rec.GetState()))
		last := amendsv1.CaseState_CASE_STATE_UNSPECIFIED
		for _, e := range rec.GetTimeline() {
			if e.GetState() != last {
				s.Entered = append(s.Entered, casefile.Entered{State: casework.StateName(e.GetState()), At: e.GetAt().AsTime()})
				last = e.GetState()
			}
			switch row := e.GetRow(); {
			case strings.HasPrefix(row, "approval.expired"):
				s.Expired = append(s.Expired, e.GetAt().AsTime())
			case strings.HasPrefix(row, "recheck"):
				s.Rechecked = append(s.Rechecked, e.GetAt().AsTime())
			}
		}
		for _, r := range rec.GetReplies() {
			s.Replies = append(s.Replies, r.GetSentAt().AsTime())
		}
		if d := rec.GetDeadlines().GetApproval(); d != nil {
			s.Expiry = d.AsTime()
		}
		if d := rec.GetDeadlines().GetRecheck(); d != nil {
			s.Recheck = d.AsTime()
		}
	}
	slices.SortStableFunc(s.Entered, func(a, b casefile.Entered) int { return a.At.Compare(b.At) })
	slices.SortFunc(s.Replies, time.Time.Compare)
	return s
}

// dueFollowup gives the first followup, in the file's order, whose moment has
// come, or -1.
func (p *player) dueFollowup() int {
	for i := range p.c.Followups {
		if !p.done[i] && len(p.tracks) > 0 && p.c.Followups[i].When.Of(p.situation(i)).Due {
			return i
		}
	}
	return -1
}

// passes reports that a followup's moment is one the desk does not wait in.
func (p *player) passes(i int) bool {
	w := p.c.Followups[i].When
	return !w.After && w.Delay == 0 && w.Clock == nil && slices.ContainsFunc(w.States, casefile.Passing)
}

// nextMoment is the earliest moment of a followup that time alone brings.
func (p *player) nextMoment() time.Time {
	var next time.Time
	for i := range p.c.Followups {
		if p.done[i] {
			continue
		}
		if at := p.c.Followups[i].When.Of(p.situation(i)).At; !at.IsZero() && (next.IsZero() || at.Before(next)) {
			next = at
		}
	}
	return next
}

// updateHold keeps the payment look-ups back while a followup is to meet the
// case under investigation, and lets them go when the desk has judged it.
func (p *player) updateHold(ctx context.Context) error {
	entered, here := 0, len(p.tracks) == 0
	for _, t := range p.tracks {
		here = here || t.record().GetState() == amendsv1.CaseState_CASE_STATE_INVESTIGATING
	}
	want := false
	for i := range p.c.Followups {
		if entered == 0 && len(p.tracks) > 0 {
			for _, e := range p.situation(i).Entered {
				if e.State == casefile.Investigating {
					entered++
				}
			}
		}
		_, nth, ok := p.c.Followups[i].When.Passes()
		if ok && !p.done[i] && (entered == nth-1 || entered == nth && here) {
			want = true
		}
	}
	waits := slices.ContainsFunc(p.awaited, func(id string) bool { return !p.handled(id) })
	if want = want || p.held && waits; want == p.held {
		return nil
	}
	p.held = want
	return p.auditor.Hold(ctx, roles.TaskConsumer(roles.PaymentInvestigator), want)
}

// follow makes a followup happen: the ledger changes first, then the customer
// writes, then the approvers act.
func (p *player) follow(ctx context.Context, i int) error {
	f := p.c.Followups[i]
	p.done[i], p.doneAt[i] = true, p.clock.Now()
	if err := p.happen(ctx, i, f); err != nil {
		return fmt.Errorf("followup %d (%s): %w", i+1, f.When, err)
	}
	return nil
}

func (p *player) happen(ctx context.Context, i int, f casefile.Followup) error {
	if f.Ledger != nil {
		change := p.complete(*f.Ledger)
		if err := p.desk.Provider.Load(ctx, change); err != nil {
			return err
		}
		p.changed = p.clock.Now()
		p.know(change)
		p.note("the ledger changes")
	}
	if f.Message != "" || f.Withdraw {
		if err := p.write(ctx, i, f); err != nil {
			return err
		}
	}
	if f.Approver != nil {
		return p.act(ctx, *f.Approver)
	}
	return nil
}

// channel gives a client of the gateway for a caller; without a caller it has
// no credential.
func (p *player) channel(c *casefile.Caller) (*deskclient.Gateway, string, error) {
	cfg := deskclient.Config{URL: p.desk.GatewayURL, Transport: p.transport}
	customer := ""
	if c != nil {
		cfg.Token, customer = p.desk.Trial.GuestTokens[p.guest(c)], c.CustomerID
	}
	g, err := deskclient.NewGateway(cfg)
	return g, customer, err
}

// maxRetries and retryPause bound how often a request the gateway asks to
// repeat is repeated.
const (
	maxRetries = 60
	retryPause = 50 * time.Millisecond
)

// insist repeats a request while the gateway says that it should be, and gives
// the problem it ended with, if any.
func insist(ctx context.Context, alsoUnknown bool, call func() error) (*deskapi.Problem, error) {
	for try := 1; ; try++ {
		err := call()
		var problem *deskapi.Problem
		switch {
		case err == nil:
			return nil, nil //nolint:nilnil // neither a problem nor an error
		case !errors.As(err, &problem):
			return nil, err
		case try == maxRetries, problem.RetryAfter == 0 && (!alsoUnknown || problem.Status != http.StatusNotFound):
			return problem, nil
		}
		select {
		case <-time.After(retryPause):
		case <-ctx.Done():
			return problem, nil
		}
	}
}

// post sends the case's message.
func (p *player) post(ctx context.Context) error {
	g, customer, err := p.channel(p.c.Caller)
	if err != nil {
		return err
	}
	problem, err := insist(ctx, false, func() error {
		_, err := g.Post(ctx, deskclient.Post{Key: "case-file-post", Message: p.c.Message, Customer: customer})
		return err
	})
	if err != nil {
		return err
	}
	if problem != nil {
		p.refused = &casefile.Refusal{Status: problem.Status, Code: string(problem.Code)}
		p.note("the gateway refused the message: %d %s", problem.Status, problem.Code)
	}
	return nil
}

// write sends a later message, or the customer's withdrawal, of the request's
// first case.
func (p *player) write(ctx context.Context, i int, f casefile.Followup) error {
	caller, own := f.Caller, f.Caller == nil
	if own {
		caller = p.c.Caller
	}
	g, customer, err := p.channel(caller)
	if err != nil {
		return err
	}
	key, id := fmt.Sprintf("case-file-followup-%d", i+1), p.tracks[0].id
	var done deskapi.AcceptedMessage
	problem, err := insist(ctx, own, func() (err error) {
		if f.Withdraw {
			done, err = g.Cancel(ctx, deskclient.Cancel{Key: key, CaseID: id, Customer: customer})
		} else {
			done, err = g.Message(ctx, deskclient.Message{Key: key, CaseID: id, Message: f.Message, Customer: customer})
		}
		return err
	})
	switch {
	case err != nil:
		return err
	case problem != nil:
		p.note("the gateway refused followup %d: %d %s", i+1, problem.Status, problem.Code)
		return nil
	}
	p.awaited = append(p.awaited, done.MessageID)
	p.note("followup %d: the customer writes", i+1)
	return nil
}

func (p *player) note(format string, args ...any) {
	p.notes = append(p.notes, told{p.clock.Now(), fmt.Sprintf("%-5s ", "") + fmt.Sprintf(format, args...)})
}
