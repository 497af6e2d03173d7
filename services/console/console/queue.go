package console

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/amends-dev/amends/internal/bus"
	"github.com/amends-dev/amends/internal/casework"
	"github.com/amends-dev/amends/internal/deskapi"
	"github.com/amends-dev/amends/internal/edge"
	"github.com/amends-dev/amends/internal/readmodel"
	amendsv1 "github.com/amends-dev/amends/proto/amends/v1"
)

const (
	// defaultQueue is how many cases a page of a queue holds when nothing is
	// asked for.
	defaultQueue = 20
	// listTimeout bounds one question to Redis, and queueReads how many records
	// are read at once.
	listTimeout = time.Second
	queueReads  = 16
)

// queues finds the cases that wait for staff. What it says is a hint: each case
// is read before it is shown.
type queues interface {
	Waiting(ctx context.Context, tenant, state string, q readmodel.Query) (readmodel.Page, error)
}

// queueStates are the queues by name, and the state that the list of each is of.
var queueStates = map[string]amendsv1.CaseState{
	casework.QueueHandoff:        amendsv1.CaseState_CASE_STATE_HUMAN_HANDOFF,
	casework.QueueReconciliation: amendsv1.CaseState_CASE_STATE_RECONCILING,
	deskapi.QueueApproval:        amendsv1.CaseState_CASE_STATE_AWAITING_APPROVAL,
}

var (
	queueAway    = deskapi.NewProblem(http.StatusServiceUnavailable, deskapi.CodeListUnavailable, "the list of cases is being built; each case can be read by its id").After(2 * time.Second)
	queueInvalid = deskapi.NewProblem(http.StatusBadRequest, deskapi.CodeQueryInvalid, "want a tenant, a queue (handoff, reconciliation, approval), a limit from 1 to "+strconv.Itoa(readmodel.MaxLimit)+" and a cursor that was given here, each at most once")
)

// listQueue handles GET /v1/custody: the cases of a tenant that wait for staff,
// the longest known first. The list follows the cases at a short distance; each
// case in it is read as it is now.
func (c *console) listQueue(w http.ResponseWriter, r *http.Request) *deskapi.Problem {
	staff, problem := c.staff(w, edge.Bearer(r), "Bearer")
	if problem != nil {
		return problem
	}
	queue, q, err := parseQueue(r.URL.Query())
	tenant := r.URL.Query().Get(deskapi.ParamTenant)
	switch {
	case err != nil:
		return queueInvalid
	case !staff.sees(tenant):
		return unknownCase
	}
	page, err := c.queues.Waiting(r.Context(), tenant, stateName(queueStates[queue]), q)
	if err != nil {
		if !errors.Is(err, readmodel.ErrNotReady) {
			c.log.LogAttrs(r.Context(), slog.LevelWarn, "queue not readable", slog.String("tenant", tenant), slog.Any("error", err))
		}
		return queueAway
	}
	out := deskapi.Queue{Next: page.Next.String()}
	if out.Cases, err = c.queued(r.Context(), queue, page.Entries); err != nil {
		c.log.LogAttrs(r.Context(), slog.LevelWarn, "queued cases not readable", slog.String("tenant", tenant), slog.Any("error", err))
		return unavailable
	}
	edge.WriteJSON(w, http.StatusOK, out)
	return nil
}

// queued reads the cases of a page and leaves out those that have moved on.
func (c *console) queued(ctx context.Context, queue string, entries []readmodel.Entry) ([]deskapi.Queued, error) {
	records := make([]*amendsv1.CaseRecord, len(entries))
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(queueReads)
	for i, e := range entries {
		g.Go(func() (err error) {
			records[i], err = c.load(ctx, e.Tenant, e.CaseID)
			if errors.Is(err, bus.ErrNotFound) {
				return nil
			}
			return err
		})
	}
	if err := g.Wait(); err != nil {
		return nil, err
	}
	out := []deskapi.Queued{}
	for _, rec := range records {
		if rec == nil || !inQueue(rec, queue) {
			continue
		}
		one := deskapi.Queued{
			Tenant: rec.GetTenant(), CaseID: rec.GetCaseId(), OrderID: casework.OrderOf(rec), State: stateName(rec.GetState()), Queue: queue,
			Reason: rec.GetCustody().GetReason(), Custodian: rec.GetCustody().GetCustodian(), Since: rec.GetCustody().GetSince().AsTime(), Version: rec.GetVersion(),
		}
		if !c.now().Before(rec.GetCustody().GetUntil().AsTime()) {
			one.Custodian = "" // anybody may take it
		}
		if queue == deskapi.QueueApproval {
			one.Reason, one.Custodian, one.Since = rec.GetDecision().GetReason(), "", rec.GetAction().GetCreated().AsTime()
		}
		out = append(out, one)
	}
	return out, nil
}

// inQueue reports whether people find a case in a queue.
func inQueue(rec *amendsv1.CaseRecord, queue string) bool {
	if rec.GetState() == amendsv1.CaseState_CASE_STATE_HUMAN_HANDOFF {
		return rec.GetCustody().GetQueue() == queue
	}
	return rec.GetState() == queueStates[queue]
}

var errQuery = errors.New("not a query for a queue")

// parseQueue reads the parameters of a queue strictly: each known and given at
// most once.
func parseQueue(values url.Values) (queue string, q readmodel.Query, err error) {
	queue, q.Limit = casework.QueueHandoff, defaultQueue
	for name, given := range values {
		if len(given) != 1 {
			return "", q, errQuery
		}
		switch value := given[0]; name {
		case deskapi.ParamTenant:
		case deskapi.ParamQueue:
			if _, known := queueStates[value]; !known {
				return "", q, errQuery
			}
			queue = value
		case deskapi.ParamLimit:
			n, err := strconv.Atoi(value)
			if err != nil || n < 1 || n > readmodel.MaxLimit {
				return "", q, errQuery
			}
			q.Limit = n
		case deskapi.ParamCursor:
			if q.After, err = readmodel.ParseCursor(value); err != nil {
				return "", q, errQuery
			}
		default:
			return "", q, errQuery
		}
	}
	return queue, q, nil
}
