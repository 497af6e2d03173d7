package gateway

import (
	"net/http"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/amends-dev/amends/internal/deskapi"
	"github.com/amends-dev/amends/internal/edge"
	"github.com/amends-dev/amends/internal/envelope"
	"github.com/amends-dev/amends/internal/ident"
	amendsv1 "github.com/amends-dev/amends/proto/amends/v1"
)

// addMessage handles POST /v1/cases/{id}/messages. A message to a closed case
// goes on in a linked case of the same request, which the closed one's view
// names.
//
// The message is named by its key alone, so a retry is the same message and is
// recorded once. Another body under a used key is answered with 202 like a
// retry, and not with 409 idempotency_key_reused: the gateway may not read what
// INTAKE holds and views carry no messages, so it cannot tell the two apart.
// The record keeps the body it met first.
func (g *gateway) addMessage(w http.ResponseWriter, r *http.Request, c caller) *deskapi.Problem {
	key, problem := idempotencyKey(r)
	if problem != nil {
		return problem
	}
	body, problem := readBody(w, r)
	if problem != nil {
		return problem
	}
	p, problem := decodeMessage(body)
	if problem != nil {
		return problem
	}
	s, problem := g.own(r, c)
	if problem != nil {
		return problem
	}
	return g.pass(w, r, c, s.view, "add a message", laterID(c, s.view.GetCaseId(), envelope.CaseMessage, key), &amendsv1.CustomerMessage{
		Channel: c.channel.Name, BodySha256: p.sha256, PostedBy: c.credential, Message: p.untrusted(),
	})
}

// cancelCase handles POST /v1/cases/{id}/cancel. 202 says that the withdrawal is
// stored; whether it came before a refund is the record's to decide. 409
// case_closed is the view's word, which a retry gets as well once the case has
// ended: the answer says how.
func (g *gateway) cancelCase(w http.ResponseWriter, r *http.Request, c caller) *deskapi.Problem {
	key, problem := idempotencyKey(r)
	if problem != nil {
		return problem
	}
	body, problem := readBody(w, r)
	if problem != nil {
		return problem
	}
	if problem := decodeCancel(body); problem != nil {
		return problem
	}
	s, problem := g.own(r, c)
	switch {
	case problem != nil:
		return problem
	case s.view.GetClosed():
		return deskapi.NewProblem(http.StatusConflict, deskapi.CodeCaseClosed, "the case has ended: "+s.view.GetState())
	}
	return g.pass(w, r, c, s.view, "cancel a case", laterID(c, s.view.GetCaseId(), envelope.CaseCancel, key), &amendsv1.CaseCancel{
		Channel: c.channel.Name, PostedBy: c.credential,
	})
}

// pass stores what a customer says about a case of theirs. It expects nothing
// of the subject: what is stored twice has one id and is recorded once.
func (g *gateway) pass(w http.ResponseWriter, r *http.Request, c caller, v *amendsv1.CaseView, purpose, id string, payload proto.Message) *deskapi.Problem {
	ctx, span := g.trace(r)
	defer span.End()
	env := g.envelope(ctx, c, id, purpose)
	env.CaseId, env.RequestId = v.GetCaseId(), v.GetRequestId()
	if err := g.send(ctx, env, payload); err != nil {
		return g.notStored(ctx, env, err)
	}
	edge.WriteJSON(w, http.StatusAccepted, deskapi.AcceptedMessage{
		CaseID: env.GetCaseId(), MessageID: id,
		Links: deskapi.LinksOf(env.GetCaseId()),
	})
	return nil
}

// laterID is a function of what a retry repeats. A key counts within its
// channel and its kind of request, as that of a post does; the time bits are
// those of an opening message, for the same reason.
func laterID(c caller, caseID, kind, key string) string {
	return ident.Derive(time.Unix(0, 0), c.tenant, c.channel.Name, caseID, kind, key)
}
