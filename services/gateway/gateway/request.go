package gateway

import (
	"errors"
	"net/http"

	"github.com/amends-dev/amends/internal/casework"
	"github.com/amends-dev/amends/internal/deskapi"
	"github.com/amends-dev/amends/internal/edge"
	"github.com/amends-dev/amends/internal/ident"
	"github.com/amends-dev/amends/internal/subject"
	amendsv1 "github.com/amends-dev/amends/proto/amends/v1"
)

// showRequest handles GET /v1/requests/{id}: the cases made of one request. The
// first has the request's id, the others follow as {id}-2, {id}-3 and so on. It
// reads stored views only, so it works without Redis.
func (g *gateway) showRequest(w http.ResponseWriter, r *http.Request, c caller) *deskapi.Problem {
	id := r.PathValue("id")
	if ident.Token(id) != nil {
		return unknownCase
	}
	part := func(v *amendsv1.CaseView) bool {
		return v.GetCustomerId() == c.customer && v.GetRequestId() == id
	}
	first, err := g.views.await(r.Context(), c.tenant, id, part)
	if err != nil {
		return g.unread(r, c, id, err)
	}
	out := deskapi.Request{RequestID: id, Closed: first.view.GetClosed(), Cases: []deskapi.View{customerView(first.view)}}
	for n := 2; n <= casework.MaxLinked; n++ {
		caseID := casework.LinkedID(id, n)
		if ident.Token(caseID) != nil {
			break
		}
		s, err := g.views.stored(r.Context(), subject.View(c.tenant, caseID))
		switch {
		case errors.Is(err, errMissing): // they are named without gaps
			n = casework.MaxLinked
		case err != nil:
			return g.unread(r, c, id, err)
		case part(s.view):
			out.Cases = append(out.Cases, customerView(s.view))
			out.Closed = out.Closed && s.view.GetClosed()
		}
	}
	edge.WriteJSON(w, http.StatusOK, out)
	return nil
}
