package caserun

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/amends-dev/amends/internal/allinone"
	"github.com/amends-dev/amends/internal/casefile"
	"github.com/amends-dev/amends/internal/casework"
	"github.com/amends-dev/amends/internal/deskapi"
	"github.com/amends-dev/amends/internal/deskclient"
	"github.com/amends-dev/amends/internal/deskclock"
	"github.com/amends-dev/amends/internal/money"
	"github.com/amends-dev/amends/internal/roles"
	"github.com/amends-dev/amends/internal/sandbox"
	"github.com/amends-dev/amends/internal/subject"
	amendsv1 "github.com/amends-dev/amends/proto/amends/v1"
)

const (
	// maxSteps bounds what a case is made to do, maxLeaps how often its time is
	// moved ahead.
	maxSteps, maxLeaps = 400, 80
	// look is the pause between two looks at the desk; still is how many looks
	// nothing may change in before the desk is taken to be at rest.
	look  = 15 * time.Millisecond
	still = 3
)

// track is what the player has seen of one case.
type track struct {
	id      string
	commits []*amendsv1.CaseCommit
	// shown are the actions approvers were shown, the first first.
	shown []shown
}

// shown is one action as an approver saw it.
type shown struct {
	view   deskapi.Action
	action *amendsv1.ActionRecord
}

func (t *track) record() *amendsv1.CaseRecord { return t.commits[len(t.commits)-1].GetRecord() }

// player plays one case.
type player struct {
	c     *casefile.Case
	clock *deskclock.Clock
	logs  *logBuffer

	desk      *allinone.Desk
	auditor   *allinone.Auditor
	staff     *deskclient.Console
	transport http.RoundTripper

	// tracks are the cases of the request in the order they appeared.
	tracks []*track
	seen   map[string]*track
	last   uint64

	refused *casefile.Refusal
	// done counts the followups that took place, in whatever order; doneAt is
	// when each did.
	done   []bool
	doneAt []time.Time
	// awaited are messages the desk has taken and not yet judged.
	awaited   []string
	decisions []casefile.Decision
	notes     []told
	known     sandbox.Ledger

	// withheld names actions that are to expire; idle: nobody approves anything.
	withheld map[string]bool
	idle     bool
	// tried names actions that were approved by default.
	tried map[string]bool
	// changed is when the ledger was changed last.
	changed time.Time
	held    bool
	leaps   int
}

// play posts the message and goes on until the request has come to rest.
func (p *player) play(ctx context.Context) error {
	p.done, p.doneAt = make([]bool, len(p.c.Followups)), make([]time.Time, len(p.c.Followups))
	if err := p.updateHold(ctx); err != nil {
		return err
	}
	// The message is received at the case's now, however long the desk took to
	// start: the clock runs from then on.
	if err := p.post(ctx); err != nil {
		return err
	}
	p.clock.Run()
	if p.refused != nil {
		if i := slices.Index(p.done, false); i >= 0 {
			return fmt.Errorf("followup %d (%s) has nothing to follow: the gateway refused the message", i+1, p.c.Followups[i].When)
		}
		return nil
	}
	for range maxSteps {
		if err := p.settle(ctx); err != nil {
			return err
		}
		rest, err := p.step(ctx)
		if err != nil || rest {
			return err
		}
	}
	return fmt.Errorf("the case is not at rest after %d steps", maxSteps)
}

// step does the next thing that is due, or finds that there is none.
func (p *player) step(ctx context.Context) (rest bool, err error) {
	if err := p.remember(ctx); err != nil {
		return false, err
	}
	if i := p.dueFollowup(); i >= 0 {
		return false, p.follow(ctx, i)
	}
	if t := p.approvable(); t != nil {
		p.tried[t.record().GetActionSha256()] = true
		return false, p.sign(ctx, t, casefile.ApproverAction{Deed: casefile.Approve, Times: 1})
	}
	if at := p.nextMoment(); !at.IsZero() {
		return false, p.leapTo(ctx, at)
	}
	if p.mustGoOn() {
		deadline, ok := p.nextDeadline()
		if !ok {
			return false, p.neverCame()
		}
		return false, p.leapTo(ctx, deadline)
	}
	return true, p.atEnd()
}

// leapTo moves the case's time ahead to a moment, or to the desk's own next
// deadline where that is earlier.
func (p *player) leapTo(ctx context.Context, at time.Time) error {
	if p.leaps++; p.leaps > maxLeaps {
		return fmt.Errorf("the case's time was moved ahead %d times without an end; it is %s", maxLeaps, p.clock.Now().Format(time.RFC3339))
	}
	if d, ok := p.nextDeadline(); ok && d.Before(at) {
		at = d
	}
	if err := p.armed(ctx); err != nil {
		return p.stuck(ctx, err)
	}
	return p.auditor.AdvanceTo(ctx, at)
}

// armLooks bounds how long a timer is waited for; without one the sweep finds
// the case.
const armLooks = 200

// armed waits until the timer of every case that has a deadline is stored: it
// follows the commit, and must not be on its way while time leaps.
func (p *player) armed(ctx context.Context) error {
	for range armLooks {
		timers, err := p.auditor.Timers(ctx)
		if err != nil {
			return err
		}
		missing := slices.ContainsFunc(p.tracks, func(t *track) bool {
			_, waits := casework.Next(t.record())
			_, armed := timers[subject.Timer(t.record().GetTenant(), t.id)]
			return waits && !armed
		})
		if !missing {
			return nil
		}
		select {
		case <-time.After(look):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

func (p *player) nextDeadline() (time.Time, bool) {
	var first time.Time
	for _, t := range p.tracks {
		if d, ok := casework.Next(t.record()); ok && (first.IsZero() || d.Before(first)) {
			first = d
		}
	}
	return first, !first.IsZero()
}

// mustGoOn reports that something is still to come which only time brings:
// a followup that waits for a state, an action nobody approves any more, a
// change of the ledger that the desk has not looked at.
func (p *player) mustGoOn() bool {
	if slices.Contains(p.done, false) {
		return true
	}
	for _, t := range p.tracks {
		rec := t.record()
		switch casework.StateName(rec.GetState()) {
		case casefile.AwaitingApproval:
			return true
		case casefile.HoldForEvidence:
			if !p.changed.IsZero() && lookedAt(rec).Before(p.changed) {
				return true
			}
		}
	}
	return false
}

// lookedAt is when the payments of a case were looked up last.
func lookedAt(rec *amendsv1.CaseRecord) time.Time {
	var last time.Time
	for _, c := range rec.GetPayment().GetCalls() {
		if at := c.GetObservedAt().AsTime(); at.After(last) {
			last = at
		}
	}
	return last
}

func (p *player) neverCame() error {
	for i, done := range p.done {
		if !done {
			return fmt.Errorf("followup %d: its moment (%s) never came: the request came to rest %s", i+1, p.c.Followups[i].When, p.states())
		}
	}
	return fmt.Errorf("the desk does nothing more by itself; it is %s", p.states())
}

// atEnd checks that the desk has come to rest where a request may.
func (p *player) atEnd() error {
	if len(p.tracks) == 0 {
		return errors.New("the gateway took the message and there is no case")
	}
	for _, t := range p.tracks {
		switch state := casework.StateName(t.record().GetState()); state {
		case casefile.VerifiedClosed, casefile.AwaitingCustomer, casefile.HoldForEvidence, casefile.HumanHandoff, casefile.Cancelled, casefile.Reconciling:
		default:
			return fmt.Errorf("case %s came to rest %s, which is no end%s", t.id, state, p.lastRefusal(t))
		}
	}
	return nil
}

// lastRefusal tells of the last input the desk refused, which may be why.
func (p *player) lastRefusal(t *track) string {
	h := t.record().GetHandled()
	for i := len(h) - 1; i >= 0; i-- {
		if h[i].GetRefused() != "" {
			return fmt.Sprintf("; it refused an input of %s: %s", h[i].GetSender(), h[i].GetRefused())
		}
	}
	return ""
}

func (p *player) states() string {
	if len(p.tracks) == 0 {
		return "without a case"
	}
	var out []string
	for _, t := range p.tracks {
		out = append(out, casework.StateName(t.record().GetState()))
	}
	return strings.Join(out, " and ")
}

// refresh reads the commits since the last look.
func (p *player) refresh(ctx context.Context) error {
	stored, err := p.auditor.Read(ctx, roles.StreamCases, p.last)
	if err != nil {
		return err
	}
	for _, m := range stored {
		c := new(amendsv1.CaseCommit)
		if err := proto.Unmarshal(m.Data, c); err != nil {
			return fmt.Errorf("read the case's log: %w", err)
		}
		id := c.GetRecord().GetCaseId()
		t := p.seen[id]
		if t == nil {
			t = &track{id: id}
			p.seen[id], p.tracks = t, append(p.tracks, t)
		}
		t.commits = append(t.commits, c)
		p.last = m.Seq
	}
	return nil
}

// settle waits until the desk is at rest, or a moment has come that would pass.
func (p *player) settle(ctx context.Context) error {
	quiet, last := 0, p.last
	for {
		if err := p.refresh(ctx); err != nil {
			return p.stuck(ctx, err)
		}
		if err := p.updateHold(ctx); err != nil {
			return p.stuck(ctx, err)
		}
		if i := p.dueFollowup(); i >= 0 && p.passes(i) {
			return nil
		}
		if busy := p.busy(); busy == "" && p.last == last {
			if quiet++; quiet >= still {
				return nil
			}
		} else {
			quiet, last = 0, p.last
		}
		select {
		case <-ctx.Done():
			return p.stuck(ctx, ctx.Err())
		case err := <-p.desk.Failed():
			return fmt.Errorf("the desk failed: %w", err)
		case <-time.After(look):
		}
	}
}

func (p *player) stuck(ctx context.Context, err error) error {
	if ctx.Err() == nil {
		return err
	}
	busy := p.busy()
	if busy == "" {
		busy = "the desk to come to rest"
	}
	return fmt.Errorf("out of time while waiting for %s; the request is %s", busy, p.states())
}

// busy names what is still under way; empty when the desk waits for others.
func (p *player) busy() string {
	if len(p.tracks) == 0 {
		return "the case to be opened"
	}
	for _, t := range p.tracks {
		rec := t.record()
		for _, n := range rec.GetTasks() {
			for _, a := range n.GetAttempts() {
				if a.GetStatus() == amendsv1.AttemptStatus_ATTEMPT_STATUS_DISPATCHED {
					return fmt.Sprintf("task %s of %s", n.GetTaskId(), n.GetTarget())
				}
			}
		}
		if r := rec.GetReply(); r != nil && r.GetStatus() != amendsv1.ReplyStatus_REPLY_STATUS_SENT {
			return fmt.Sprintf("the %s reply of %s", strings.TrimPrefix(r.GetKind().String(), "REPLY_KIND_"), t.id)
		}
		if next, ok := casework.Next(rec); ok && !next.After(p.clock.Now()) {
			return fmt.Sprintf("case %s to act on its deadline of %s", t.id, next.Format(time.RFC3339))
		}
	}
	p.awaited = slices.DeleteFunc(p.awaited, p.handled)
	if len(p.awaited) > 0 {
		return "the desk to judge message " + p.awaited[0]
	}
	return ""
}

// handled reports that a case's record holds an input.
func (p *player) handled(messageID string) bool {
	for _, t := range p.tracks {
		for _, h := range t.record().GetHandled() {
			if h.GetMessageId() == messageID {
				return true
			}
		}
	}
	return false
}

func known(code string) bool { return money.Valid(money.New(0, code)) == nil }
