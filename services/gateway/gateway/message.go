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
// The message is named by its key, so a retry is the same message and the
// record takes it once: the body it meets first. The view says which body that
// was. So 202 waits until the view knows the message, which takes the
// orchestrator as long as one commit: of two bodies that are posted at once
// under one key, the one that lost must not hear that it was taken.
func (g *gateway) addMessage(w http.ResponseWriter, r *http.Request, c caller) *deskapi.Problem {
	key, body, problem := keyedBody(w, r)
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
	id := laterID(c, s.view.GetCaseId(), envelope.CaseMessage, key)
	if handled(s.view, id) == nil {
		if problem := g.pass(r, c, s.view, "add a message", id, &amendsv1.CustomerMessage{
			Channel: c.channel.Name, BodySha256: p.sha256, PostedBy: c.credential, Message: p.untrusted(),
		}); problem != nil {
			return problem
		}
		s, problem = g.handledView(r, c, s.view.GetCaseId(), id)
		if problem != nil {
			return problem
		}
	}
	if handled(s.view, id).GetBodySha256() != p.sha256 {
		return keyReused
	}
	taken(w, s.view, id)
	return nil
}

// handled gives what the view says of a message; nil when the record has not
// met it.
func handled(v *amendsv1.CaseView, id string) *amendsv1.ViewMessage {
	for _, m := range v.GetMessages() {
		if m.GetMessageId() == id {
			return m
		}
	}
	return nil
}

// handledView waits for the view that knows a message which is stored.
func (g *gateway) handledView(r *http.Request, c caller, caseID, id string) (*snapshot, *deskapi.Problem) {
	s, err := g.views.await(r.Context(), c.tenant, caseID, func(v *amendsv1.CaseView) bool { return handled(v, id) != nil })
	if err != nil {
		return nil, notConfirmed
	}
	return s, nil
}

// cancelCase handles POST /v1/cases/{id}/cancel. 202 says that the withdrawal is
// stored; whether it came before a refund is the record's to decide. 409
// case_closed is the view's word, which a retry gets as well once the case has
// ended: the answer says how.
func (g *gateway) cancelCase(w http.ResponseWriter, r *http.Request, c caller) *deskapi.Problem {
	key, body, problem := keyedBody(w, r)
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
	id := laterID(c, s.view.GetCaseId(), envelope.CaseCancel, key)
	if problem := g.pass(r, c, s.view, "cancel a case", id, &amendsv1.CaseCancel{Channel: c.channel.Name, PostedBy: c.credential}); problem != nil {
		return problem
	}
	taken(w, s.view, id)
	return nil
}

// pass stores what a customer says about a case of theirs. It expects nothing
// of the subject: what is stored twice has one id and is recorded once.
func (g *gateway) pass(r *http.Request, c caller, v *amendsv1.CaseView, purpose, id string, payload proto.Message) *deskapi.Problem {
	ctx, span := g.trace(r)
	defer span.End()
	env := g.envelope(ctx, c, id, purpose)
	env.CaseId, env.RequestId = v.GetCaseId(), v.GetRequestId()
	if err := g.send(ctx, env, payload); err != nil {
		return g.notStored(ctx, env, err)
	}
	return nil
}

func taken(w http.ResponseWriter, v *amendsv1.CaseView, id string) {
	edge.WriteJSON(w, http.StatusAccepted, deskapi.AcceptedMessage{
		CaseID: v.GetCaseId(), MessageID: id,
		Links: deskapi.LinksOf(v.GetCaseId()),
	})
}

// laterID is a function of what a retry repeats. A key counts within its
// channel and its kind of request, as that of a post does; the time bits are
// those of an opening message, for the same reason.
func laterID(c caller, caseID, kind, key string) string {
	return ident.Derive(time.Unix(0, 0), c.tenant, c.channel.Name, caseID, kind, key)
}
