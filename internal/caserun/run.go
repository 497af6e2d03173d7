package caserun

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/amends-dev/amends/internal/allinone"
	"github.com/amends-dev/amends/internal/approval"
	"github.com/amends-dev/amends/internal/casefile"
	"github.com/amends-dev/amends/internal/deskclient"
	"github.com/amends-dev/amends/internal/deskclock"
	"github.com/amends-dev/amends/internal/ident"
)

// Options tune a run.
type Options struct {
	// Limit bounds one case on the machine's clock; 0 is a minute.
	Limit time.Duration
	// Log gets the services' logs too; nil only keeps them as evidence.
	Log slog.Handler
}

// Result is what came of one case.
type Result struct {
	casefile.Judgement
	// Err says why the case could not be played to its end; the judgement is
	// then of what there was.
	Err error
	// Story is what happened, a line each.
	Story   []string
	Replies []string
	// Took is how long it took, and Span how much of the case's time passed.
	Took, Span time.Duration
}

// Passed reports that the case was played to its end and judged as expected.
func (r Result) Passed() bool { return r.Err == nil && r.Judgement.Passed() }

const defaultLimit = time.Minute

// maxApproval is what an approver of the runner may approve: whatever is shown.
const maxApproval = 1_000_000_000_000

// Run plays a case and judges it.
func Run(ctx context.Context, c *casefile.Case, o Options) Result {
	if o.Limit == 0 {
		o.Limit = defaultLimit
	}
	ctx, cancel := context.WithTimeout(ctx, o.Limit)
	defer cancel()
	began := time.Now()
	p := &player{c: c, clock: deskclock.New(c.Now, time.Now), logs: newLogBuffer(o.Log), seen: map[string]*track{}, withheld: map[string]bool{}, tried: map[string]bool{}}
	evidence, err := p.run(ctx)
	r := Result{Err: err, Story: p.story(), Replies: p.replies(evidence), Took: time.Since(began), Span: p.clock.Now().Sub(c.Now)}
	r.Judgement = casefile.Judge(c, evidence)
	return r
}

// run plays on a desk that is gone afterwards.
func (p *player) run(ctx context.Context) (e casefile.Evidence, err error) {
	dir, remove, err := allinone.TempDir()
	if err != nil {
		return e, err
	}
	defer remove()
	desk, err := allinone.Start(ctx, p.options(dir))
	if err != nil {
		return e, fmt.Errorf("start a desk for the case: %w", err)
	}
	defer func() { err = errors.Join(err, desk.Close()) }()
	p.desk = desk
	if p.auditor, err = desk.Auditor(); err != nil {
		return e, err
	}
	defer p.auditor.Close()
	t := deskclient.NewTransport(8)
	defer t.CloseIdleConnections()
	if p.staff, err = deskclient.NewConsole(deskclient.Config{URL: desk.ConsoleURL, Token: desk.Trial.StaffToken, Transport: t}); err != nil {
		return e, err
	}
	p.transport = t
	if err := desk.Provider.Load(ctx, p.c.Ledger); err != nil {
		return e, err
	}
	p.known = p.c.Ledger
	err = p.play(ctx)
	// What there is by now is judged also when the case got stuck.
	late, cancel := context.WithTimeout(context.WithoutCancel(ctx), gatherLimit)
	defer cancel()
	e, gatherErr := p.gather(late)
	return e, errors.Join(err, gatherErr)
}

// options are those of a desk for the case: its time, its channel and callers,
// approvers for its tenants and currencies.
func (p *player) options(dir string) allinone.Options {
	o := allinone.Options{Dir: dir, NoSync: true, Operator: true, Unlimited: true, Clock: p.clock, Log: p.logs}
	callers := []*casefile.Caller{p.c.Caller}
	for _, f := range p.c.Followups {
		callers = append(callers, f.Caller)
	}
	for _, c := range callers {
		if c == nil || ident.Token(c.Tenant) != nil {
			continue // nobody has a credential for such a tenant
		}
		if g := p.guest(c); !slices.Contains(o.Guests, g) {
			o.Guests = append(o.Guests, g)
		}
	}
	for _, code := range p.currencies() {
		o.ApproverLimits = append(o.ApproverLimits, approval.Limit{Currency: code, Minor: maxApproval})
	}
	return o
}

// guest is the channel a caller writes on; a name that no channel can have is
// taken for the web.
func (p *player) guest(c *casefile.Caller) allinone.Guest {
	if ident.Token(p.c.Channel) != nil {
		return allinone.Guest{Tenant: c.Tenant, Channel: "web"}
	}
	return allinone.Guest{Tenant: c.Tenant, Channel: p.c.Channel}
}

func (p *player) currencies() []string {
	out := []string{"INR"}
	add := func(code string) {
		if !slices.Contains(out, code) && known(code) {
			out = append(out, code)
		}
	}
	for _, o := range p.c.Ledger.Orders {
		add(o.Currency)
	}
	for _, c := range p.c.Ledger.Captures {
		add(c.Currency)
	}
	for _, f := range p.c.Followups {
		if f.Ledger == nil {
			continue
		}
		for _, c := range f.Ledger.Captures {
			add(c.Currency)
		}
	}
	return out
}
