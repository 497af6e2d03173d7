package deliveries

import (
	"context"
	"crypto/rand"
	"log/slog"
	"sync"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/amends-dev/amends/internal/roles"
	"github.com/amends-dev/amends/internal/subject"
	"github.com/amends-dev/amends/internal/webhook"
	amendsv1 "github.com/amends-dev/amends/proto/amends/v1"
)

// serve makes the attempts of one endpoint when they are due.
func (o *Outbox) serve(ctx context.Context, e *endpoint) {
	slots := make(chan struct{}, perEndpoint)
	var under sync.WaitGroup
	defer under.Wait()
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		caseID, wait := e.queue.pop(o.Now())
		if caseID == "" {
			timer.Reset(wait)
			select {
			case <-ctx.Done():
				return
			case <-e.queue.wake:
			case <-timer.C:
			}
			continue
		}
		select {
		case <-ctx.Done():
			return
		case slots <- struct{}{}:
		}
		under.Go(func() {
			defer func() { <-slots }()
			if err := o.look(ctx, e, caseID); err != nil && ctx.Err() == nil {
				o.Log.LogAttrs(ctx, slog.LevelWarn, "webhook delivery put off", slog.String("tenant", e.Tenant),
					slog.String("channel", e.Channel), slog.String("case_id", caseID), slog.Any("error", err))
				e.queue.set(caseID, o.Now().Add(pause))
			}
		})
	}
}

// look does what is due of a case: an attempt, or to give it up. The error is
// a fault of ours and no attempt.
func (o *Outbox) look(ctx context.Context, e *endpoint, caseID string) error {
	log, err := Log(ctx, o.Bus, e.Tenant, caseID)
	if err != nil {
		return err
	}
	now := o.Now()
	d := due(log, now)
	if d == nil {
		e.plan(log)
		return nil
	}
	if int(d.GetBegun()) >= webhook.Attempts() { // the last one's process died
		return o.end(ctx, e, caseID, now, givenUp, d.GetVersion())
	}
	open, err := o.admits(ctx, e, now)
	if err != nil {
		return err
	}
	if !open {
		return o.end(ctx, e, caseID, now, suppressed, allDue)
	}
	text, err := o.bodyOf(ctx, e.Tenant, caseID, d.GetVersion())
	if err != nil {
		return err
	}
	if text == nil { // the view is older than the log, or lost: it comes again
		if now.Sub(d.GetCreatedAt().AsTime()) > maxAge {
			return o.end(ctx, e, caseID, now, givenUp, d.GetVersion())
		}
		e.queue.set(caseID, now.Add(pause))
		return nil
	}
	number, err := o.begin(ctx, e, caseID, d.GetVersion())
	if err != nil || number == 0 {
		return err
	}
	return o.attempt(context.WithoutCancel(ctx), e, caseID, d, number, text)
}

// bodyOf gives what is to be sent, or nothing when the view does not hold it.
func (o *Outbox) bodyOf(ctx context.Context, tenant, caseID string, version uint64) ([]byte, error) {
	m, err := o.Bus.LastDirect(ctx, roles.StreamViews, subject.View(tenant, caseID))
	if err != nil {
		return nil, notFoundIsNil(err)
	}
	v := new(amendsv1.CaseView)
	if err := proto.Unmarshal(m.Data, v); err != nil {
		return nil, err
	}
	r := replyOf(v, version)
	if r == nil {
		return nil, nil
	}
	return body(v, r)
}

// begin claims the next attempt of a delivery and gives its number; 0 when
// another replica has it.
func (o *Outbox) begin(ctx context.Context, e *endpoint, caseID string, version uint64) (uint32, error) {
	var number, tried uint32
	claim := rand.Text()
	log, err := o.change(ctx, e.Tenant, caseID, func(log *amendsv1.DeliveryLog) bool {
		number = 0
		d, now := entryOf(log, version), o.Now()
		if tried != 0 && d.GetBegun() == tried && d.GetClaim() == claim {
			number = tried // stored, and the acknowledgement was lost
			return false
		}
		if !isDue(d, now) || int(d.GetBegun()) >= webhook.Attempts() {
			return false
		}
		d.Begun++
		d.Claim, d.NextAt = claim, timestamppb.New(now.Add(o.lease))
		number, tried = d.GetBegun(), d.GetBegun()
		return true
	})
	if err == nil && number == 0 {
		e.plan(log)
	}
	return number, err
}

// attempt sends and records what became of it. The process may end meanwhile:
// the attempt does not.
func (o *Outbox) attempt(ctx context.Context, e *endpoint, caseID string, d *amendsv1.Delivery, number uint32, text []byte) error {
	at := o.Now()
	header, err := e.Secrets.Sign(d.GetWebhookId(), at, text)
	if err != nil {
		return err
	}
	out := e.client.Send(ctx, e.URL, header, text)
	o.metrics.attempt(ctx, out.Reason)
	level := slog.LevelDebug
	if out.Reason != webhook.ReasonDelivered {
		level = slog.LevelInfo
	}
	o.Log.LogAttrs(ctx, level, "webhook attempted", slog.String("tenant", e.Tenant), slog.String("channel", e.Channel),
		slog.String("case_id", caseID), slog.String("webhook_id", d.GetWebhookId()), slog.Int("attempt", int(number)),
		slog.String("reason", string(out.Reason)), slog.Int("status", out.Status), slog.Duration("took", out.Took))
	ctx, cancel := context.WithTimeout(ctx, settleTimeout)
	defer cancel()
	log, err := o.record(ctx, e, caseID, d.GetVersion(), number, at, out)
	if err != nil {
		return err // the lease ends, and it is sent again under the same id
	}
	e.plan(log)
	return o.judge(ctx, e, out.Reason)
}

func (o *Outbox) record(ctx context.Context, e *endpoint, caseID string, version uint64, number uint32, at time.Time, out webhook.Outcome) (*amendsv1.DeliveryLog, error) {
	var ended amendsv1.DeliveryStatus
	log, err := o.change(ctx, e.Tenant, caseID, func(log *amendsv1.DeliveryLog) bool {
		d := entryOf(log, version)
		if d == nil || len(d.GetAttempts()) >= maxAttempts {
			return false // the log was lost meanwhile; the view brings it back
		}
		if last := d.GetAttempts(); len(last) > 0 && last[len(last)-1].GetNumber() == number {
			return false // stored, and the acknowledgement was lost
		}
		ended = 0
		d.Attempts = append(d.Attempts, &amendsv1.DeliveryAttempt{
			Number: number, At: timestamppb.New(at), StatusCode: uint32(max(out.Status, 0)), Reason: string(out.Reason),
		})
		if d.GetStatus() != pending {
			return true
		}
		wait, again := o.delay(d.GetWebhookId(), int(number))
		switch {
		case out.Reason == webhook.ReasonDelivered:
			ended = delivered
		case d.GetBegun() != number:
			return true // the lease ended, and another attempt is under way
		case out.Reason == webhook.ReasonGone || !again:
			ended = givenUp
		default:
			d.NextAt = timestamppb.New(o.Now().Add(webhook.Later(wait, out.RetryAfter)))
			return true
		}
		settle(d, ended, o.Now())
		return true
	})
	if err == nil && ended != 0 {
		o.metrics.ended(ctx, ended)
	}
	return log, err
}

// allDue stands for every version.
const allDue = 0

// end settles what is due of a case, of one version or all, without sending it.
func (o *Outbox) end(ctx context.Context, e *endpoint, caseID string, now time.Time, as amendsv1.DeliveryStatus, version uint64) error {
	n := 0
	log, err := o.change(ctx, e.Tenant, caseID, func(log *amendsv1.DeliveryLog) bool {
		n = 0
		for _, d := range log.GetDeliveries() {
			if isDue(d, now) && (version == allDue || d.GetVersion() == version) {
				settle(d, as, now)
				n++
			}
		}
		return n > 0
	})
	if err != nil {
		return err
	}
	for range n {
		o.metrics.ended(ctx, as)
	}
	e.plan(log)
	return nil
}

func settle(d *amendsv1.Delivery, as amendsv1.DeliveryStatus, at time.Time) {
	d.Status, d.SettledAt, d.NextAt = as, timestamppb.New(at), nil
}
