package gateway

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/amends-dev/amends/internal/deskapi"
	"github.com/amends-dev/amends/internal/envelope"
	"github.com/amends-dev/amends/internal/ident"
	"github.com/amends-dev/amends/internal/readmodel"
	"github.com/amends-dev/amends/internal/roles"
	"github.com/amends-dev/amends/internal/subject"
	"github.com/amends-dev/amends/internal/webhook"
	amendsv1 "github.com/amends-dev/amends/proto/amends/v1"
)

// maxEvent bounds the body of a provider's event.
const maxEvent = 64 << 10

// Provider says how webhooks of the payments provider are checked. Without
// secrets none are taken.
type Provider struct {
	// SecretFiles hold what the provider signs with, whsec_...; several are
	// a rotation and any verifies.
	SecretFiles []string `yaml:"secret_files"`
	// Tenants are those the provider may speak of.
	Tenants []string `yaml:"tenants"`
}

func (p Provider) validate() error {
	if len(p.SecretFiles) == 0 && len(p.Tenants) == 0 {
		return nil
	}
	if len(p.SecretFiles) == 0 || len(p.Tenants) == 0 {
		return errors.New("provider: want both secret_files and tenants")
	}
	for _, t := range p.Tenants {
		if err := subject.CheckTenant("provider.tenants", t); err != nil {
			return err
		}
	}
	return nil
}

// hookSource is a Provider with its secrets; nil takes no events.
type hookSource struct {
	secrets webhook.Secrets
	tenants []string
}

func (p Provider) open(log *slog.Logger) (*hookSource, error) {
	if len(p.SecretFiles) == 0 {
		return nil, nil
	}
	secrets, err := readSecrets(p.SecretFiles, log)
	if err != nil {
		return nil, fmt.Errorf("webhooks of the payments provider: %w", err)
	}
	return &hookSource{secrets: secrets, tenants: p.Tenants}, nil
}

// Kinds of events that are passed on.
const (
	refundCreated = "refund.created"
	refundFamily  = "refund."
)

var providerKinds = []string{
	refundCreated, "refund.updated", "refund.failed", "capture.settled", "capture.updated", "authorization.expired", "dispute.opened", "dispute.updated",
}

// What became of an event, as a metric tells.
const (
	eventRefused     = "refused"      // by its headers or signature
	eventInvalid     = "invalid"      // signed, and not an event
	eventUnknownKind = "unknown_kind" // nothing follows from it
	eventOtherTenant = "other_tenant"
	eventNoCase      = "no_case" // none of ours, or nothing new to one
	eventForwarded   = "forwarded"
	eventRepeated    = "repeated" // forwarded before, by this process
	eventUnavailable = "unavailable"
)

// takeEvent handles POST /v1/provider/events. An event is a hint that something
// changed at an order: it goes to the order's cases, and each reads for itself.
// 202 says that every case it is for has it stored; the same event again is the
// same message again.
func (g *gateway) takeEvent(w http.ResponseWriter, r *http.Request) *deskapi.Problem {
	if g.provider == nil {
		return deskapi.NewProblem(http.StatusNotFound, deskapi.CodeNotFound, "")
	}
	id, body, problem := g.verified(w, r)
	if problem != nil {
		return problem
	}
	if !g.requests.enter() {
		return overloaded
	}
	defer g.requests.leave()
	ev, err := decodeEvent(body)
	if err != nil {
		g.metrics.event(r.Context(), "", eventInvalid)
		return invalid("not an event: " + err.Error())
	}
	if g.spreadBefore.has(id, g.now()) {
		g.metrics.event(r.Context(), ev.kind, eventRepeated)
		w.WriteHeader(http.StatusAccepted)
		return nil
	}
	outcome, err := g.spread(r.Context(), id, ev)
	g.metrics.event(r.Context(), ev.kind, outcome)
	if err != nil {
		g.log.LogAttrs(r.Context(), slog.LevelWarn, "event of the provider not passed on", slog.String("event_id", id),
			slog.String("kind", ev.kind), slog.String("tenant", ev.tenant), slog.Any("error", err))
		return unavailable
	}
	if outcome != eventForwarded && outcome != eventNoCase {
		g.log.LogAttrs(r.Context(), slog.LevelInfo, "event of the provider left alone", slog.String("event_id", id), slog.String("outcome", outcome))
	}
	if outcome == eventForwarded {
		g.spreadBefore.add(id, g.now())
	}
	w.WriteHeader(http.StatusAccepted)
	return nil
}

// spread stores an event at every case that it is for. The error means that it
// is not known to be at all of them; sending it again adds what is missing.
func (g *gateway) spread(ctx context.Context, id string, ev providerEvent) (outcome string, err error) {
	switch {
	case !slices.Contains(providerKinds, ev.kind):
		return eventUnknownKind, nil
	case !slices.Contains(g.provider.tenants, ev.tenant):
		return eventOtherTenant, nil
	}
	outcome = eventNoCase
	own := ev.ownCase()
	cases := []string{own}
	listErr := g.projection.caughtUp(ctx)
	var entries []readmodel.Entry
	if listErr == nil {
		entries, listErr = g.model.CasesOfOrder(ctx, ev.tenant, ev.order)
	}
	for _, e := range entries {
		if e.CaseID != own {
			cases = append(cases, e.CaseID)
		}
	}
	for _, caseID := range cases {
		// What made the refund hears from the executor that it is made.
		if caseID == "" || caseID == own && ev.kind == refundCreated {
			continue
		}
		sent, err := g.hint(ctx, id, ev, caseID, caseID == own)
		if err != nil {
			return eventUnavailable, err
		}
		if sent {
			outcome = eventForwarded
		}
	}
	if listErr != nil { // the case that is named has it; the others must not miss it
		return eventUnavailable, listErr
	}
	return outcome, nil
}

// hint stores an event at a case, unless that did not make the refund it is
// about and is closed, or about another order.
func (g *gateway) hint(ctx context.Context, id string, ev providerEvent, caseID string, own bool) (bool, error) {
	s, err := g.views.stored(ctx, subject.View(ev.tenant, caseID))
	if isMissing(err) {
		return false, nil // a name that is none of ours
	}
	if err != nil {
		return false, err
	}
	// A case may be about another order by now; what it made is its own still.
	made := own && strings.HasPrefix(ev.kind, refundFamily)
	if v := s.view; (v.GetOrderId() != ev.order || v.GetClosed()) && !made {
		return false, nil
	}
	env := &amendsv1.Envelope{
		MessageId: eventMessageID(ev.tenant, caseID, id), Tenant: ev.tenant, CaseId: caseID, RequestId: s.view.GetRequestId(),
		Sender: string(roles.Gateway), Recipient: string(roles.Orchestrator), Purpose: "look at the provider again", TraceId: s.view.GetTraceId(),
		SentAt: timestamppb.New(g.now()),
	}
	return true, g.send(ctx, env, &amendsv1.ProviderEvent{OrderId: ev.order, Kind: ev.kind, ObjectId: ev.object})
}

// eventMessageID is a function of event and case, so a repeat of the event is
// the same message at each case.
func eventMessageID(tenant, caseID, eventID string) string {
	return ident.Derive(time.Unix(0, 0), tenant, caseID, envelope.ProviderEvent, eventID)
}
