package orchestrator

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/amends-dev/amends/internal/bus"
	"github.com/amends-dev/amends/internal/casework"
	"github.com/amends-dev/amends/internal/reconcile"
	"github.com/amends-dev/amends/internal/roles"
	"github.com/amends-dev/amends/internal/subject"
	amendsv1 "github.com/amends-dev/amends/proto/amends/v1"
)

const (
	// maxTallyWalk bounds the messages of a stream that one run takes in; the
	// next goes on.
	maxTallyWalk = 200_000
	// maxTallyLog bounds the commits of one case that are read.
	maxTallyLog = 2048
)

// errTallyBound: there is more to take in than one run does.
var errTallyBound = errors.New("more messages than one run takes in")

// reasonOf gives the reason for which a run that met an error is incomplete.
func reasonOf(err error, otherwise string) string {
	if errors.Is(err, errTallyBound) {
		return reconcile.ReasonTooMany
	}
	return otherwise
}

// page is how far a stream was taken in for one tenant.
type page struct {
	reconcile.Cursor
	stream, filter string
}

// books are what was taken in of one tenant.
type books struct {
	// broker is the number of the one they were last known to be of.
	broker uint64
	pages  struct{ ledger, cases page }
	ledger map[string]casework.Entry
	cases  map[string]*casework.Account
	// unreadable are the subjects whose newest message cannot be read, with its
	// time.
	unreadable map[string]time.Time
	// from is the suspicion at which a run that could not look into all of them
	// left off.
	from string
}

// booksOf gives what was taken in of a tenant before. They are begun, at the
// window, the first time, and when another broker answers whose streams are not
// those they were made of.
func (c *comparer) booksOf(ctx context.Context, tenant string, since time.Time) (*books, error) {
	b, broker := c.books[tenant], c.brokers.Load()
	if b != nil && b.broker == broker {
		return b, nil
	}
	if b != nil {
		same, err := b.hold(ctx, c.conn)
		if err != nil {
			return nil, err
		}
		if same {
			b.broker = broker
			return b, nil
		}
	}
	b = &books{broker: broker, ledger: map[string]casework.Entry{}, cases: map[string]*casework.Account{}, unreadable: map[string]time.Time{}}
	b.pages.ledger = page{stream: roles.StreamEffects, filter: subject.Effect(tenant, "*")}
	b.pages.cases = page{stream: roles.StreamCases, filter: subject.Case(tenant, "*")}
	for _, p := range []*page{&b.pages.ledger, &b.pages.cases} {
		var err error
		if p.Cursor, err = reconcile.Since(ctx, c.conn, p.stream, p.filter, since); err != nil {
			return nil, err
		}
	}
	c.books[tenant] = b
	return b, nil
}

// hold reports whether both streams are those the books were made of.
func (b *books) hold(ctx context.Context, r reconcile.Reader) (bool, error) {
	for _, p := range []*page{&b.pages.ledger, &b.pages.cases} {
		if same, err := p.Holds(ctx, r, p.stream, p.filter); err != nil || !same {
			return false, err
		}
	}
	return true, nil
}

// takeLedger takes in what the ledger has gained.
func (c *comparer) takeLedger(ctx context.Context, b *books) error {
	return c.walkOn(ctx, b, &b.pages.ledger, func(order string, m bus.Stored) error {
		if subject.ReservedOrder(order) {
			return nil
		}
		e, err := entryOf(m)
		if err != nil {
			return err
		}
		for _, in := range e.GetIntents() {
			in.Body = nil // not needed, and large
		}
		b.ledger[order] = e
		return nil
	})
}

// takeCases takes in what the cases have gained.
func (c *comparer) takeCases(ctx context.Context, b *books) error {
	return c.walkOn(ctx, b, &b.pages.cases, func(id string, m bus.Stored) error {
		a := b.cases[id]
		if a == nil {
			a = new(casework.Account)
		}
		if err := takeCommit(a, m); err != nil {
			return err
		}
		b.cases[id] = a
		return nil
	})
}

// walkOn hands out the messages after the one it came to last. Of what cannot be
// read only the newest of a subject counts.
func (c *comparer) walkOn(ctx context.Context, b *books, p *page, take func(id string, m bus.Stored) error) error {
	for range maxTallyWalk {
		m, err := p.Next(ctx, c.conn, p.stream, p.filter)
		if errors.Is(err, bus.ErrNotFound) {
			return nil
		}
		if err != nil {
			return err
		}
		parts, err := subject.Parse(m.Subject)
		if err == nil {
			err = take(parts.CaseID, m)
		}
		if err != nil {
			b.unreadable[m.Subject] = m.Time
		} else {
			delete(b.unreadable, m.Subject)
		}
	}
	return errTallyBound
}

// forget drops what is older than the window. It comes again with its next
// version.
func (b *books) forget(since time.Time) {
	maps.DeleteFunc(b.ledger, func(_ string, e casework.Entry) bool { return e.At.Before(since) })
	maps.DeleteFunc(b.cases, func(_ string, a *casework.Account) bool { return a.Updated.Before(since) && !a.Waits() })
	maps.DeleteFunc(b.unreadable, func(_ string, at time.Time) bool { return at.Before(since) })
}

// next gives the suspicions a run looks into, at most so many, beginning where
// the last run left off, and whether they are all.
func (b *books) next(all []*amendsv1.EffectFinding, most int) ([]*amendsv1.EffectFinding, bool) {
	i, _ := slices.BinarySearchFunc(all, b.from, func(f *amendsv1.EffectFinding, id string) int { return strings.Compare(f.GetFindingId(), id) })
	out := slices.Concat(all[i:], all[:i])
	if b.from = ""; len(out) <= most {
		return out, true
	}
	b.from = out[most-1].GetFindingId() + "\x00" // the one after it
	return out[:most], false
}

// refunds counts the acknowledged refunds of the ledger.
func (b *books) refunds() (n int) {
	for _, e := range b.ledger {
		for _, in := range e.GetIntents() {
			if in.GetOutcome().GetClass() == amendsv1.EffectClass_EFFECT_CLASS_ACKNOWLEDGED {
				n++
			}
		}
	}
	return n
}

// accountNow reads all a case was ever told, at the leader; nil when there is no
// such case. Of commits that cannot be read only the newest counts.
func (c *comparer) accountNow(ctx context.Context, tenant, id string) (*casework.Account, error) {
	if id == "" {
		return nil, nil //nolint:nilnil // no case is no case
	}
	var a *casework.Account
	var unread error
	seq := uint64(0)
	for range maxTallyLog {
		m, err := c.conn.NextAfter(ctx, roles.StreamCases, subject.Case(tenant, id), seq)
		if errors.Is(err, bus.ErrNotFound) {
			return a, unread
		}
		if err != nil {
			return nil, fmt.Errorf("log of case %s: %w", id, err)
		}
		if a == nil {
			a = new(casework.Account)
		}
		unread, seq = takeCommit(a, m), m.Seq
	}
	return nil, fmt.Errorf("log of case %s: more than %d commits", id, maxTallyLog)
}

func takeCommit(a *casework.Account, m bus.Stored) error {
	commit := new(amendsv1.CaseCommit)
	if err := proto.Unmarshal(m.Data, commit); err != nil {
		return fmt.Errorf("decode %s: %w", m.Subject, err)
	}
	a.Take(commit.GetRecord())
	return nil
}
