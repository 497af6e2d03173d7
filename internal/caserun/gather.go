package caserun

import (
	"bytes"
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
	var out []string
	for _, t := range p.tracks {
		out = append(out, "case "+t.id)
		for _, e := range t.record().GetTimeline() {
			out = append(out, fmt.Sprintf("  v%-3d %s  %-18s %-21s %s", e.GetVersion(), e.GetAt().AsTime().Format(time.RFC3339), casework.StateName(e.GetState()), e.GetActor(), e.GetNote()))
		}
	}
	for _, n := range p.notes {
		out = append(out, "  "+n)
	}
	return out
}

func (p *player) replies(e casefile.Evidence) []string {
	var out []string
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
