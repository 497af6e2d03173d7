package e2e_test

import (
	"slices"
	"time"

	"github.com/amends-dev/amends/internal/allinone"
	"github.com/amends-dev/amends/internal/deskapi"
	"github.com/amends-dev/amends/internal/deskclient"
	"github.com/amends-dev/amends/internal/sandbox"
	amendsv1 "github.com/amends-dev/amends/proto/amends/v1"
)

// story is what happens to a case, and what must have become of it whatever
// was killed on the way.
type story struct {
	name string
	// inputs names what the orchestrator takes in, requests and tasks what
	// gateway and executor do, in order.
	inputs, requests, tasks []string
	// minor is what the order costs and each of its payments is, two of them
	// unless said otherwise; refunds are those that are given back.
	minor    int64
	payments int
	refunds  []string
	// people approved it.
	approved bool
	// rows are the rows of the table the case follows; of those in maybe some
	// are not, when a process is killed: what is sent again is answered.
	rows, maybe []string

	state amendsv1.CaseState
	// reply is the kind of the last one; there is one for each draft.
	reply string
	// single: requests are sent once. What is handed in again has the open task
	// sent again, and a refund in doubt would be asked for at once.
	single bool
	// prepare makes the desk one for this story alone.
	prepare func(d *crashDesk)
	play    func(d *crashDesk, i int) error
}

// ledger is that of a case's order.
func (s *story) ledger(i int) sandbox.Ledger {
	amounts := []int64{s.minor, s.minor}
	if s.payments == 3 {
		amounts = append(amounts, s.minor)
	}
	return newBook(orderID(i), s.minor, "INR", 2, amounts...).Ledger
}

// given are the payments of a case's order that are given back.
func (s *story) given(i int) (payments []string) {
	for _, letter := range s.refunds {
		payments = append(payments, "pay_"+orderID(i)+"_"+letter)
	}
	return payments
}

const (
	verifiedClosed = amendsv1.CaseState_CASE_STATE_VERIFIED_CLOSED
	cancelled      = amendsv1.CaseState_CASE_STATE_CANCELLED
	handedOver     = amendsv1.CaseState_CASE_STATE_HUMAN_HANDOFF
)

// found gives the rows of a case up to its merge, and those that follow.
func found(merge string, more ...string) []string {
	return append([]string{"opened", "triaged.supported", "result.recorded", "result.recorded", merge}, more...)
}

// The stories. The founding request; a message while its approval is waited
// for; a withdrawal there instead.
var (
	founding = &story{
		name: "refund", inputs: []string{"post", "first evidence", "second evidence", "approval", "effect result", "draft", "verification"},
		requests: []string{"post"}, tasks: []string{"refund"},
		minor: 200000, refunds: []string{"b"}, approved: true,
		rows:  found("merge.approval", "approved", "effect.acknowledged", "draft.returned", "reply.verified.closed"),
		state: verifiedClosed, reply: "refunded",
		play: func(d *crashDesk, i int) error {
			if err := d.opens(i); err != nil {
				return err
			}
			if err := d.approves(i); err != nil {
				return err
			}
			return d.until(i, closed)
		},
	}
	withMessage = &story{
		name: "message", inputs: []string{"post", "first evidence", "second evidence", "message", "approval", "effect result", "draft", "verification"},
		requests: []string{"post", "message"}, tasks: []string{"refund"},
		minor: 200000, refunds: []string{"b"}, approved: true,
		rows:  found("merge.approval", "message.recorded", "approved", "effect.acknowledged", "draft.returned", "reply.verified.closed"),
		state: verifiedClosed, reply: "refunded",
		play: func(d *crashDesk, i int) error {
			if err := d.opens(i); err != nil {
				return err
			}
			if err := d.until(i, in("AWAITING_APPROVAL")); err != nil {
				return err
			}
			err := d.twice(i, "message", func() (any, error) {
				return d.gateway.Message(d.ctx, deskclient.Message{Key: "later", CaseID: caseID(i), Message: "Is there any news?"})
			})
			if err != nil {
				return err
			}
			if err := d.recorded(i, "message.recorded"); err != nil {
				return err
			}
			if err := d.approves(i); err != nil {
				return err
			}
			return d.until(i, closed)
		},
	}
	withdrawn = &story{
		name: "cancel", inputs: []string{"post", "first evidence", "second evidence", "cancel", "draft", "verification"},
		requests: []string{"post", "cancel"},
		minor:    200000,
		rows:     found("merge.approval", "cancelled", "draft.returned", "reply.verified"),
		state:    cancelled, reply: "cancelled",
		play: func(d *crashDesk, i int) error {
			if err := d.opens(i); err != nil {
				return err
			}
			if err := d.until(i, in("AWAITING_APPROVAL")); err != nil {
				return err
			}
			if err := d.withdraws(i); err != nil {
				return err
			}
			return d.until(i, closed)
		},
	}
)

// The executor's stories: what it does differently. A refund that nobody
// approves, from the caps; three payments, two refunds in one action; an answer
// that is lost when the refund is made; a withdrawal then, and one before
// anything is begun, while the stop holds it; a refund that fails when its case
// is closed; a refusal, for somebody refunded the payment at the provider.
var (
	small = &story{
		name: "small refund", tasks: []string{"refund"},
		minor: 99999, refunds: []string{"b"},
		rows:  found("merge.refund", "effect.acknowledged", "draft.returned", "reply.verified.closed"),
		state: verifiedClosed, reply: "refunded",
		play: func(d *crashDesk, i int) error {
			if err := d.opens(i); err != nil {
				return err
			}
			return d.until(i, closed)
		},
	}
	threefold = &story{
		name: "two refunds", tasks: []string{"first refund", "second refund"},
		minor: 200000, payments: 3, refunds: []string{"b", "c"}, approved: true,
		rows: founding.rows, state: verifiedClosed, reply: "refunded",
		play: founding.play,
	}
	unanswered = &story{
		name: "answer lost", tasks: []string{"refund", "refund again"},
		minor: 200000, refunds: []string{"b"}, approved: true,
		rows:  found("merge.approval", "approved", "effect.unknown", "effect.overdue", "effect.acknowledged", "draft.returned", "reply.verified.closed"),
		maybe: []string{"effect.unknown", "effect.overdue"},
		state: verifiedClosed, reply: "refunded",
		single:  true,
		prepare: func(*crashDesk) {}, // its cases are killed long after they began
		play: func(d *crashDesk, i int) error {
			d.wire.loses(orderID(i))
			if err := d.opens(i); err != nil {
				return err
			}
			if err := d.approves(i); err != nil {
				return err
			}
			if err := d.recorded(i, "effect.unknown", "effect.acknowledged"); err != nil {
				return err
			}
			d.waits(i)
			return d.until(i, closed)
		},
	}
	withdrawnLate = &story{
		name: "cancel in doubt", tasks: []string{"refund", "cancel"},
		minor: 200000, refunds: []string{"b"}, approved: true,
		rows:  found("merge.approval", "approved", "effect.unknown", "cancel.requested", "effect.acknowledged", "draft.returned", "reply.verified.closed"),
		maybe: []string{"effect.unknown", "cancel.requested"},
		state: verifiedClosed, reply: "refunded",
		single: true,
		play: func(d *crashDesk, i int) error {
			d.wire.loses(orderID(i))
			if err := d.opens(i); err != nil {
				return err
			}
			if err := d.approves(i); err != nil {
				return err
			}
			if err := d.recorded(i, "effect.unknown", "effect.acknowledged"); err != nil {
				return err
			}
			if err := d.withdraws(i); err != nil {
				return err
			}
			return d.until(i, closed)
		},
	}
	withdrawnHeld = &story{
		name: "cancel while held", tasks: []string{"refund", "cancel"},
		minor: 200000, approved: true,
		rows:  found("merge.approval", "approved", "effect.held", "cancel.requested", "effect.not_begun", "draft.returned", "reply.verified"),
		state: cancelled, reply: "cancelled",
		prepare: func(d *crashDesk) { d.stops(true) },
		single:  true,
		play: func(d *crashDesk, i int) error {
			if err := d.opens(i); err != nil {
				return err
			}
			if err := d.approves(i); err != nil {
				return err
			}
			if err := d.recorded(i, "effect.held"); err != nil {
				return err
			}
			if err := d.withdraws(i); err != nil {
				return err
			}
			return d.until(i, closed)
		},
	}
	failsLater = &story{
		name: "fails later", tasks: []string{"refund", "confirmation"},
		minor: 200000, refunds: []string{"b"}, approved: true,
		rows:  append(slices.Clone(founding.rows), "refund.news", "refund.failed_later", "draft.returned", "reply.verified"),
		state: handedOver, reply: "handoff",
		play: func(d *crashDesk, i int) error {
			if err := founding.play(d, i); err != nil {
				return err
			}
			rec, err := d.shown(i, 0)
			if err != nil {
				return err
			}
			if err := d.Provider.SetRefundStatus(d.ctx, rec.GetEffect().GetRefunds()[0].GetOutcome().GetRefundId(), "failed"); err != nil {
				return err
			}
			return d.recorded(i, "reply.verified")
		},
	}
	refusedByUs = &story{
		name: "refused", tasks: []string{"refund"},
		minor: 200000, approved: true,
		rows:  found("merge.approval", "approved", "effect.refused", "draft.returned", "reply.verified"),
		state: handedOver, reply: "handoff",
		prepare: func(d *crashDesk) { d.faults(sandbox.Fault{Kind: sandbox.WebhookLost}) },
		play: func(d *crashDesk, i int) error {
			if err := d.opens(i); err != nil {
				return err
			}
			if err := d.until(i, in("AWAITING_APPROVAL")); err != nil {
				return err
			}
			err := d.Provider.Load(d.ctx, sandbox.Ledger{Refunds: []sandbox.Refund{{
				RefundID: elsewhere + orderID(i), Tenant: allinone.Tenant, OrderID: orderID(i), PaymentID: "pay_" + orderID(i) + "_b",
				AmountMinor: 200000, Currency: "INR", Status: "succeeded", CreatedAt: time.Now(),
			}}})
			if err != nil {
				return err
			}
			if err := d.approves(i); err != nil {
				return err
			}
			return d.until(i, func(v deskapi.View) bool { return v.State == "HUMAN_HANDOFF" && len(v.Replies) == 1 })
		},
	}
)

// elsewhere begins the ids of refunds that people made at the provider.
const elsewhere = "rf_dash"

// stories are all of them, the founding request first.
var stories = []*story{founding, withMessage, withdrawn, small, threefold, unanswered, withdrawnLate, withdrawnHeld, failsLater, refusedByUs}
