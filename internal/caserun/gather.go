package caserun

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/amends-dev/amends/internal/casefile"
	"github.com/amends-dev/amends/internal/casework"
	"github.com/amends-dev/amends/internal/deskapi"
	"github.com/amends-dev/amends/internal/roles"
	"github.com/amends-dev/amends/internal/sandbox"
)

const (
	// gatherLimit bounds reading everything at the end.
	gatherLimit = 15 * time.Second
	// maxPage bounds a staff page, maxLogs what is kept of the logs.
	maxPage = 4 << 20
	maxLogs = 4 << 20
)

// know notes what the case file put into the ledger: none of it is the desk's.
func (p *player) know(l sandbox.Ledger) {
	p.known.Orders = append(slices.Clone(p.known.Orders), l.Orders...)
	p.known.Captures = append(slices.Clone(p.known.Captures), l.Captures...)
	p.known.Refunds = append(slices.Clone(p.known.Refunds), l.Refunds...)
	p.known.Disputes = append(slices.Clone(p.known.Disputes), l.Disputes...)
}

// complete fills in what a change of the ledger leaves out about things that
// are known: whose they are, and of a payment all that stays the same.
func (p *player) complete(l sandbox.Ledger) sandbox.Ledger {
	l.Captures, l.Refunds, l.Disputes = slices.Clone(l.Captures), slices.Clone(l.Refunds), slices.Clone(l.Disputes)
	for i := range l.Captures {
		c := &l.Captures[i]
		if old, ok := p.capture(c.PaymentID); ok {
			c.OrderID, c.Tenant = cmp.Or(c.OrderID, old.OrderID), cmp.Or(c.Tenant, old.Tenant)
			c.Currency, c.AmountMinor = cmp.Or(c.Currency, old.Currency), cmp.Or(c.AmountMinor, old.AmountMinor)
			c.Method, c.CapturedAt = cmp.Or(c.Method, old.Method), cmp.Or(c.CapturedAt, old.CapturedAt)
		}
		c.Tenant = cmp.Or(c.Tenant, p.tenantOf(c.OrderID, l))
	}
	for i := range l.Refunds {
		r := &l.Refunds[i]
		if c, ok := p.capture(r.PaymentID); ok {
			r.OrderID, r.Currency = cmp.Or(r.OrderID, c.OrderID), cmp.Or(r.Currency, c.Currency)
		}
		r.Tenant = cmp.Or(r.Tenant, p.tenantOf(r.OrderID, l))
	}
	for i := range l.Disputes {
		d := &l.Disputes[i]
		if c, ok := p.capture(d.PaymentID); ok {
			d.OrderID = cmp.Or(d.OrderID, c.OrderID)
		}
		d.Tenant = cmp.Or(d.Tenant, p.tenantOf(d.OrderID, l))
	}
	return l
}

// capture gives what is known last of a payment.
func (p *player) capture(id string) (sandbox.Capture, bool) {
	for _, c := range slices.Backward(p.known.Captures) {
		if c.PaymentID == id {
			return c, true
		}
	}
	return sandbox.Capture{}, false
}

func (p *player) tenantOf(order string, l sandbox.Ledger) string {
	for _, o := range slices.Concat(p.known.Orders, l.Orders) {
		if o.OrderID == order {
			return o.Tenant
		}
	}
	return ""
}

// gather reads what is left of the case, as a customer, staff and an auditor
// would.
func (p *player) gather(ctx context.Context) (casefile.Evidence, error) {
	e := casefile.Evidence{Refused: p.refused, Known: p.known, Decisions: p.decisions}
	if err := p.refresh(ctx); err != nil {
		return e, err
	}
	for _, t := range p.tracks {
		view, err := p.view(ctx, t)
		if err != nil {
			return e, err
		}
		out := casefile.Track{CaseID: t.id, Commits: t.commits, State: view.State}
		for _, r := range view.Replies {
			out.Replies = append(out.Replies, r.Text)
		}
		e.Tracks = append(e.Tracks, out)
		page, err := p.page(ctx, t)
		if err != nil {
			return e, err
		}
		e.Pages = append(e.Pages, page)
	}
	ledger, err := p.desk.Provider.Ledger(ctx)
	if err != nil {
		return e, err
	}
	for _, r := range ledger.Refunds {
		if !slices.ContainsFunc(p.known.Refunds, func(k sandbox.Refund) bool { return k.RefundID == r.RefundID }) {
			e.Refunds = append(e.Refunds, r)
		}
	}
	for _, s := range roles.Desk().Streams {
		stored, err := p.auditor.Read(ctx, s.Name, 0)
		if err != nil {
			return e, err
		}
		for _, m := range stored {
			e.Stored = append(e.Stored, casefile.Message{Stream: s.Name, Subject: m.Subject, Header: m.Header, Data: m.Data})
		}
	}
	e.Logs = p.logs.String()
	return e, nil
}

// view gives the customer's view of a case, when it has caught up with the
// record or no longer does.
func (p *player) view(ctx context.Context, t *track) (deskapi.View, error) {
	g, customer, err := p.channel(p.c.Caller)
	if err != nil {
		return deskapi.View{}, err
	}
	var view deskapi.View
	for range maxRetries {
		problem, err := insist(ctx, true, func() (err error) {
			view, err = g.View(ctx, t.id, customer)
			return err
		})
		if err != nil {
			return view, err
		}
		if problem != nil {
			return view, fmt.Errorf("the customer's view of %s: %w", t.id, problem)
		}
		if view.State == casework.StateName(t.record().GetState()) && len(view.Replies) == len(t.record().GetReplies()) {
			break
		}
		select {
		case <-time.After(retryPause):
		case <-ctx.Done():
			return view, fmt.Errorf("the customer's view of %s: %w", t.id, ctx.Err())
		}
	}
	return view, nil
}

// page gives the staff page of a case.
func (p *player) page(ctx context.Context, t *track) (string, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, p.desk.ConsoleURL+"/cases/"+t.record().GetTenant()+"/"+t.id, http.NoBody)
	if err != nil {
		return "", err
	}
	req.SetBasicAuth("case-file", p.desk.Trial.StaffToken)
	resp, err := p.transport.RoundTrip(req)
	if err != nil {
		return "", fmt.Errorf("staff page of %s: %w", t.id, err)
	}
	defer func() { _ = resp.Body.Close() }()
	text, err := io.ReadAll(io.LimitReader(resp.Body, maxPage))
	switch {
	case err != nil:
		return "", fmt.Errorf("staff page of %s: %w", t.id, err)
	case resp.StatusCode != http.StatusOK:
		return "", fmt.Errorf("staff page of %s: status %d", t.id, resp.StatusCode)
	}
	return string(text), nil
}

// story tells what happened, version by version, with what was done from
// outside.
func (p *player) story() []string {
	lines := slices.Clone(p.notes)
	for i, t := range p.tracks {
		name := ""
		if len(p.tracks) > 1 {
			name = fmt.Sprintf("%d.", i+1)
		}
		for _, e := range t.record().GetTimeline() {
			lines = append(lines, told{e.GetAt().AsTime(), fmt.Sprintf("%-5s %-18s %-21s %s", fmt.Sprintf("%sv%d", name, e.GetVersion()), casework.StateName(e.GetState()), e.GetActor(), e.GetNote())})
		}
	}
	slices.SortStableFunc(lines, func(a, b told) int { return a.at.Compare(b.at) })
	out := make([]string, len(lines))
	for i, l := range lines {
		out[i] = l.at.Format(time.RFC3339) + "  " + l.what
	}
	return out
}

// told is one line of a story.
type told struct {
	at   time.Time
	what string
}

func (p *player) replies(e casefile.Evidence) []string {
	out := []string{}
	for _, t := range e.Tracks {
		out = append(out, t.Replies...)
	}
	return out
}

// logBuffer keeps what the services log, up to a bound, and passes it on.
type logBuffer struct {
	slog.Handler
	mu  *sync.Mutex
	buf *bytes.Buffer
}

func newLogBuffer(also slog.Handler) *logBuffer {
	l := &logBuffer{mu: new(sync.Mutex), buf: new(bytes.Buffer)}
	l.Handler = slog.NewTextHandler(l, &slog.HandlerOptions{Level: slog.LevelInfo})
	if also != nil && also != slog.DiscardHandler {
		l.Handler = slog.NewMultiHandler(l.Handler, also)
	}
	return l
}

// Write keeps a line.
func (l *logBuffer) Write(line []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.buf.Len() < maxLogs {
		l.buf.Write(line)
	}
	return len(line), nil
}

func (l *logBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.String()
}
