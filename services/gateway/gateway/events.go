package gateway

import (
	"bytes"
	"net/http"
	"strconv"
	"time"

	"github.com/amends-dev/amends/internal/deskapi"
	"github.com/amends-dev/amends/internal/ident"
	amendsv1 "github.com/amends-dev/amends/proto/amends/v1"
)

const (
	heartbeat = 15 * time.Second
	// firstLook is when a new follower reads the stored view again: the first
	// read may have been stale, and a newer one published before it listened.
	firstLook = time.Second
	// streamWrite bounds one write to a follower.
	streamWrite = 10 * time.Second
)

// followCase handles GET /v1/cases/{id}/events: the current view, then every
// newer one, until the case is closed or the caller's credential ends: with
// a new one the caller goes on from Last-Event-ID.
func (g *gateway) followCase(w http.ResponseWriter, r *http.Request, c caller) *deskapi.Problem {
	caseID := r.PathValue("id")
	if ident.Token(caseID) != nil {
		return unknownCase
	}
	reader, stop := g.views.watch(c.tenant, caseID)
	defer stop()
	own := func(v *amendsv1.CaseView) bool { return v.GetCustomerId() == c.customer }
	s, err := g.views.awaitOn(r.Context(), reader, own)
	if err != nil {
		return g.unread(r, c, caseID, err)
	}
	f := follower{w: w, rc: http.NewResponseController(w), seen: lastEventID(r)}
	if s.view.GetClosed() && s.view.GetVersion() <= f.seen {
		w.WriteHeader(http.StatusNoContent) // tells an EventSource not to come back
		return nil
	}
	g.follow(r, c, reader, f, s)
	return nil
}

// follow streams until the case is closed, the follower is gone, too slow or
// not entitled any more, or the process stops.
func (g *gateway) follow(r *http.Request, c caller, reader *reader, f follower, s *snapshot) {
	if err := f.open(); err != nil {
		return
	}
	look := time.NewTimer(firstLook)
	defer look.Stop()
	var ended <-chan time.Time
	if !c.until.IsZero() {
		end := time.NewTimer(c.until.Sub(g.now()))
		defer end.Stop()
		ended = end.C
	}
	for {
		// The timer keeps the machine's time, which is not always the desk's.
		if !c.until.IsZero() && !g.now().Before(c.until) {
			return
		}
		if done, err := f.send(s); done || err != nil {
			return
		}
		var stored bool
		select {
		case <-r.Context().Done():
			return
		case <-g.stopping:
			return
		case <-ended:
			return
		case live, ok := <-reader.live:
			if !ok {
				return // too slow; it resumes with Last-Event-ID
			}
			s = live
		case <-reader.reread:
			stored = true
		case <-look.C:
			stored = true
			look.Reset(heartbeat)
			if f.beat() != nil {
				return
			}
		}
		if !stored {
			continue
		}
		// A failed look is made up for by the next one.
		if again, err := g.views.stored(r.Context(), reader.subj); err == nil && again.view.GetCustomerId() == c.customer {
			s = again
		}
	}
}

// lastEventID is the version the follower has seen; 0 when it says none.
func lastEventID(r *http.Request) uint64 {
	v, err := strconv.ParseUint(r.Header.Get(deskapi.HeaderLastEventID), 10, 64)
	if err != nil {
		return 0
	}
	return v
}

// follower is one stream of server-sent events.
type follower struct {
	w    http.ResponseWriter
	rc   *http.ResponseController
	seen uint64
	buf  bytes.Buffer
}

func (f *follower) open() error {
	h := f.w.Header()
	h.Set("Content-Type", "text/event-stream")
	h.Set("X-Accel-Buffering", "no")
	// The server's limits are for requests that end.
	if err := f.rc.SetReadDeadline(time.Time{}); err != nil {
		return err
	}
	f.w.WriteHeader(http.StatusOK)
	f.buf.WriteString("retry: 1000\n\n")
	return nil
}

// send writes a view that is newer than all before and says whether it was the
// last one.
func (f *follower) send(s *snapshot) (done bool, err error) {
	if v := s.view.GetVersion(); v > f.seen {
		f.seen = v
		done = s.view.GetClosed()
		f.buf.WriteString("id: ")
		f.buf.Write(strconv.AppendUint(f.buf.AvailableBuffer(), v, 10))
		f.buf.WriteString("\nevent: view\ndata: ")
		f.buf.Write(s.json)
		f.buf.WriteString("\n\n")
	}
	return done, f.flush()
}

func (f *follower) beat() error {
	f.buf.WriteString(": still here\n\n")
	return f.flush()
}

func (f *follower) flush() error {
	if f.buf.Len() == 0 {
		return nil
	}
	// The network keeps the machine's time, whatever the desk's is.
	if err := f.rc.SetWriteDeadline(time.Now().Add(streamWrite)); err != nil {
		return err
	}
	if _, err := f.buf.WriteTo(f.w); err != nil {
		return err
	}
	return f.rc.Flush()
}
