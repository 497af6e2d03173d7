package gateway

import (
	"errors"
	"log/slog"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/amends-dev/amends/internal/deskapi"
	"github.com/amends-dev/amends/internal/edge"
	"github.com/amends-dev/amends/internal/readmodel"
)

const (
	// defaultPage is how many cases a page holds when nothing is asked for.
	defaultPage = 20
	// maxQuery bounds a query string, and maxState the name of a state.
	maxQuery, maxState = 512, 32
)

var (
	listAway     = deskapi.NewProblem(http.StatusServiceUnavailable, deskapi.CodeListUnavailable, "the list of cases is being built; each case can be read by its id").After(2 * time.Second)
	queryInvalid = deskapi.NewProblem(http.StatusBadRequest, deskapi.CodeQueryInvalid, "want limit from 1 to "+strconv.Itoa(readmodel.MaxLimit)+", a cursor that was given here, and the name of a state, each at most once")
)

// listCases handles GET /v1/cases: the cases of the caller's customer, newest
// first. The list follows the cases at a short distance.
func (g *gateway) listCases(w http.ResponseWriter, r *http.Request, c caller) *deskapi.Problem {
	q, err := parseQuery(r.URL.RawQuery)
	if err != nil {
		return queryInvalid
	}
	page, err := g.model.ByCustomer(r.Context(), c.tenant, c.customer, q)
	if err != nil {
		if !errors.Is(err, readmodel.ErrNotReady) {
			g.log.LogAttrs(r.Context(), slog.LevelWarn, "list not readable", slog.String("tenant", c.tenant),
				slog.String("request_id", edge.RequestID(r.Context())), slog.Any("error", err))
		}
		return listAway
	}
	out := deskapi.CaseList{Cases: make([]deskapi.CaseSummary, 0, len(page.Entries)), Next: page.Next.String()}
	for _, e := range page.Entries {
		out.Cases = append(out.Cases, deskapi.CaseSummary{
			CaseID: e.CaseID, RequestID: e.RequestID, OrderID: e.OrderID, State: e.State, Version: e.Version, Closed: e.Closed,
			OpenedAt: timeOrNone(e.OpenedAt), UpdatedAt: timeOrNone(e.UpdatedAt), Links: deskapi.LinksOf(e.CaseID),
		})
	}
	edge.WriteJSON(w, http.StatusOK, out)
	return nil
}

func timeOrNone(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}

var errQuery = errors.New("not a query for cases")

// parseQuery reads the parameters of a list strictly: each known and given at
// most once.
func parseQuery(raw string) (readmodel.Query, error) {
	q := readmodel.Query{Limit: defaultPage}
	if len(raw) > maxQuery {
		return q, errQuery
	}
	values, err := url.ParseQuery(raw)
	if err != nil {
		return q, errQuery
	}
	for name, given := range values {
		if len(given) != 1 {
			return q, errQuery
		}
		switch value := given[0]; name {
		case deskapi.ParamLimit:
			n, err := strconv.Atoi(value)
			if err != nil || n < 1 || n > readmodel.MaxLimit || strconv.Itoa(n) != value {
				return q, errQuery
			}
			q.Limit = n
		case deskapi.ParamCursor:
			if q.After, err = readmodel.ParseCursor(value); err != nil {
				return q, errQuery
			}
		case deskapi.ParamState:
			if !isState(value) {
				return q, errQuery
			}
			q.State = value
		default:
			return q, errQuery
		}
	}
	return q, nil
}

// isState says whether s has the form of a state's name.
func isState(s string) bool {
	for _, c := range []byte(s) {
		if c != '_' && (c < 'A' || c > 'Z') {
			return false
		}
	}
	return s != "" && len(s) <= maxState
}
