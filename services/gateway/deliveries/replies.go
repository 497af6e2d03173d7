package deliveries

import (
	"context"
	"fmt"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/amends-dev/amends/internal/bus"
	amendsv1 "github.com/amends-dev/amends/proto/amends/v1"
)

// take puts the replies of a view into the case's log. VIEWS keeps the newest
// view of a case, which holds all its replies, so none is missed when views
// are.
func (o *Outbox) take(ctx context.Context, m *bus.Raw) error {
	v := new(amendsv1.CaseView)
	if err := proto.Unmarshal(m.Data, v); err != nil {
		return bus.Reject("view_undecodable", err)
	}
	e := o.endpoints[place{v.GetTenant(), v.GetChannel()}]
	if e == nil {
		return nil
	}
	now := o.Now()
	replies := e.wanted(v, now)
	if len(replies) == 0 {
		return nil
	}
	log, err := o.change(ctx, v.GetTenant(), v.GetCaseId(), func(log *amendsv1.DeliveryLog) bool {
		log.Tenant, log.CaseId, log.Channel = v.GetTenant(), v.GetCaseId(), v.GetChannel()
		added := false
		for _, r := range replies {
			if entryOf(log, r.GetVersion()) == nil {
				log.Deliveries = append(log.Deliveries, planned(v, r, now))
				added = true
			}
		}
		return added
	})
	if err != nil {
		return bus.Retry(fmt.Errorf("log the replies of %s: %w", v.GetCaseId(), err))
	}
	e.plan(log)
	return nil
}

// wanted gives the replies of a view that are to be delivered.
func (e *endpoint) wanted(v *amendsv1.CaseView, now time.Time) []*amendsv1.ViewReply {
	var out []*amendsv1.ViewReply
	for _, r := range v.GetReplies() {
		if sent := r.GetSentAt().AsTime(); now.Sub(sent) <= maxAge && !sent.Before(e.Since) {
			out = append(out, r)
		}
	}
	return out
}

func planned(v *amendsv1.CaseView, r *amendsv1.ViewReply, now time.Time) *amendsv1.Delivery {
	return &amendsv1.Delivery{
		Version: r.GetVersion(), WebhookId: ID(v.GetTenant(), v.GetCaseId(), r.GetVersion()), Kind: r.GetKind(),
		Status: pending, CreatedAt: timestamppb.New(now), NextAt: timestamppb.New(now),
	}
}
