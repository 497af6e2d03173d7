package console

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"
	"google.golang.org/protobuf/proto"

	"github.com/amends-dev/amends/internal/bus"
	"github.com/amends-dev/amends/internal/casework"
	"github.com/amends-dev/amends/internal/deskapi"
	"github.com/amends-dev/amends/internal/edge"
	"github.com/amends-dev/amends/internal/roles"
	"github.com/amends-dev/amends/internal/subject"
	amendsv1 "github.com/amends-dev/amends/proto/amends/v1"
)

// stopReads is how many switches are read at once.
const stopReads = 16

// listStops handles GET /v1/stops: the switch for everybody and those of the
// caller's tenants.
func (c *console) listStops(w http.ResponseWriter, r *http.Request) *deskapi.Problem {
	staff, problem := c.staff(w, edge.Bearer(r), "Bearer")
	if problem != nil {
		return problem
	}
	stops, err := c.stops(r.Context(), append([]string{subject.StopAll}, staff.Tenants...)...)
	if err != nil {
		c.log.LogAttrs(r.Context(), slog.LevelWarn, "stop switches not readable", slog.Any("error", err))
		return unavailable
	}
	edge.WriteJSON(w, http.StatusOK, deskapi.Stops{Stops: stops})
	return nil
}

// stops reads the switches of some scopes, in their order.
func (c *console) stops(ctx context.Context, scopes ...string) ([]deskapi.Stop, error) {
	out := make([]deskapi.Stop, len(scopes))
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(stopReads)
	for i, scope := range scopes {
		g.Go(func() error {
			s, err := c.stop(ctx, scope)
			out[i] = s.Stop
			return err
		})
	}
	return out, g.Wait()
}

// stopSwitch is a switch and its bytes in the stream.
type stopSwitch struct {
	deskapi.Stop
	data []byte
}

// stop reads one switch; nobody ever touched it when it is not there. One that
// cannot be understood is a stop, as it is for the executor.
func (c *console) stop(ctx context.Context, scope string) (stopSwitch, error) {
	m, err := c.bus.LastDirect(ctx, roles.StreamControl, subject.Control(scope))
	if errors.Is(err, bus.ErrNotFound) {
		return stopSwitch{Stop: deskapi.Stop{Scope: scope}}, nil
	}
	if err != nil {
		return stopSwitch{}, fmt.Errorf("read the stop switch: %w", err)
	}
	out := stopSwitch{Stop: deskapi.Stop{Scope: scope, Sequence: m.Seq, Stopped: true, Unreadable: true}, data: m.Data}
	s := new(amendsv1.StopSwitch)
	if proto.Unmarshal(m.Data, s) == nil && s.GetScope() == scope {
		out.Stop = stopOf(s, m.Seq)
	}
	return out, nil
}

func stopOf(s *amendsv1.StopSwitch, seq uint64) deskapi.Stop {
	return deskapi.Stop{Scope: s.GetScope(), Stopped: s.GetStopped(), By: s.GetBy(), Reason: s.GetReason(), At: deskapi.TimeOf(s.GetAt()), Sequence: seq}
}

// moved waits, bounded, until a switch is another than the one at a sequence,
// and gives what it read last: a direct read may be behind.
func (c *console) moved(ctx context.Context, scope string, from uint64) (stopSwitch, error) {
	over := time.NewTimer(versionWait)
	defer over.Stop()
	for pause := versionPoll; ; pause = min(2*pause, maxPoll) {
		s, err := c.stop(ctx, scope)
		if err != nil || s.Sequence != from {
			return s, err
		}
		again := time.NewTimer(pause)
		select {
		case <-again.C:
			continue
		case <-over.C:
		case <-ctx.Done():
		}
		again.Stop()
		return s, nil
	}
}

// holding gives the switches that are set over a case whose refund the stop
// held. When they cannot be read the case is shown without them.
func (c *console) holding(r request, rec *amendsv1.CaseRecord) []deskapi.Stop {
	if !casework.Held(rec) {
		return nil
	}
	stops, err := c.stops(r.Context(), subject.StopAll, r.tenant)
	if err != nil {
		c.log.LogAttrs(r.Context(), slog.LevelWarn, "stop switches not readable", slog.String("tenant", r.tenant), slog.String("case_id", r.caseID), slog.Any("error", err))
		return nil
	}
	return slices.DeleteFunc(stops, func(s deskapi.Stop) bool { return !s.Stopped })
}
