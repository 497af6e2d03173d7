package gateway

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/amends-dev/amends/internal/bus"
	"github.com/amends-dev/amends/internal/deskapi"
	"github.com/amends-dev/amends/internal/edge"
	"github.com/amends-dev/amends/internal/envelope"
	"github.com/amends-dev/amends/internal/ident"
	amendsv1 "github.com/amends-dev/amends/proto/amends/v1"
)

var (
	keyReused    = deskapi.NewProblem(http.StatusConflict, deskapi.CodeKeyReused, "the same key or case id was used for another request")
	notEntitled  = deskapi.NewProblem(http.StatusForbidden, deskapi.CodeCaseIDNotAllowed, "this channel may not name case ids")
	unavailable  = deskapi.NewProblem(http.StatusServiceUnavailable, deskapi.CodeUnavailable, "nothing is lost; send the same request again").After(time.Second)
	notConfirmed = deskapi.NewProblem(http.StatusServiceUnavailable, deskapi.CodeNotConfirmed, "a request with this key is stored and cannot be compared yet; send the same request again").After(time.Second)
)

// openCase handles POST /v1/cases.
func (g *gateway) openCase(w http.ResponseWriter, r *http.Request, c caller) *deskapi.Problem {
	key, body, problem := keyedBody(w, r)
	if problem != nil {
		return problem
	}
	p, problem := decodePost(body)
	if problem != nil {
		return problem
	}
	caseID := p.caseID
	switch {
	case caseID == "":
		caseID = ident.Case(c.tenant, c.channel.Name, deskapi.CasesPath, key, c.keyOwner()...)
	case !c.channel.MayNameCaseIDs:
		return notEntitled
	}
	ctx, span := g.trace(r)
	defer span.End()
	take := g.accept
	if g.pressure.high() {
		take = g.repeatOnly
	}
	if problem := take(ctx, c, caseID, p); problem != nil {
		return problem
	}
	w.Header().Set("Location", deskapi.CasePath(caseID))
	edge.WriteJSON(w, http.StatusAccepted, deskapi.Accepted{
		CaseID: caseID, RequestID: caseID, State: "RECEIVED",
		Links: deskapi.LinksOf(caseID),
	})
	return nil
}

// accept stores the post, or finds that it is stored already.
func (g *gateway) accept(ctx context.Context, c caller, caseID string, p post) *deskapi.Problem {
	env := g.envelope(ctx, c, messageID(c.tenant, caseID), "open a case")
	env.CaseId, env.RequestId = caseID, caseID
	opened := &amendsv1.CaseOpened{
		Channel: c.channel.Name, BodySha256: p.sha256, PostedBy: c.credential,
		Message: p.untrusted(),
	}
	// A second try stores nothing twice: it conflicts with the first.
	err := g.send(ctx, env, opened, bus.ExpectLast(0))
	switch {
	case err == nil:
		g.pressure.took()
		g.metrics.post(ctx, "accepted")
		return nil
	case errors.Is(err, bus.ErrConflict):
		return g.confirm(ctx, c, caseID, p)
	}
	g.metrics.post(ctx, "unavailable")
	return g.notStored(ctx, env, err)
}

// confirm compares a post with the one that was stored under its case id
// before. The view carries what there is to compare.
func (g *gateway) confirm(ctx context.Context, c caller, caseID string, p post) *deskapi.Problem {
	s, err := g.views.await(ctx, c.tenant, caseID, func(*amendsv1.CaseView) bool { return true })
	if err != nil {
		g.metrics.post(ctx, "not_confirmed")
		return notConfirmed
	}
	return g.compare(ctx, c, s.view, p)
}

// messageID is a function of the case alone, so every retry of a post is the
// same message. Its time bits are those of the Unix epoch: nothing says when
// the first try was made, and it comes before all that follows from it.
func messageID(tenant, caseID string) string {
	return ident.Derive(time.Unix(0, 0), tenant, caseID, envelope.CaseOpened)
}
