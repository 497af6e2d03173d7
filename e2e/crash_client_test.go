package e2e_test

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/amends-dev/amends/internal/allinone"
	"github.com/amends-dev/amends/internal/deskapi"
	"github.com/amends-dev/amends/internal/deskclient"
)

// again repeats what a client repeats until it is answered: while the gateway
// is away, or says that it cannot.
func (d *crashDesk) again(f func() error) error {
	for {
		err := f()
		problem, answered := errors.AsType[*deskapi.Problem](err)
		if err == nil || answered && problem.RetryAfter == 0 {
			return err
		}
		select {
		case <-d.ctx.Done():
			return err
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// twice sends a request of a case until it is answered, and once more: the
// answer is the same (LOSS-1). A withdrawn case may have ended meanwhile.
func (d *crashDesk) twice(i int, what string, send func() (any, error)) error {
	d.mu.Lock()
	single := d.plain || d.plan[caseID(i)].story.single
	d.mu.Unlock()
	var answers [2]any
	for i := range answers {
		if i > 0 && single {
			return nil
		}
		err := d.again(func() (err error) {
			answers[i], err = send()
			return err
		})
		if problem, ok := errors.AsType[*deskapi.Problem](err); ok && problem.Code == deskapi.CodeCaseClosed {
			return nil
		}
		if err != nil {
			return fmt.Errorf("%s: %w", what, err)
		}
	}
	if answers[0] != answers[1] {
		return fmt.Errorf("LOSS-1: the %s was answered with %+v, its retry with %+v", what, answers[0], answers[1])
	}
	return nil
}

func (d *crashDesk) opens(i int) error {
	return d.twice(i, "post", func() (any, error) {
		return d.gateway.Post(d.ctx, deskclient.Post{
			Key: "key-" + orderID(i), CaseID: caseID(i), Message: "Order " + orderID(i) + " was charged twice, and my refund has not arrived. Please investigate and resolve it.",
		})
	})
}

// until follows a case, whatever happens to the gateway.
func (d *crashDesk) until(i int, ok func(deskapi.View) bool) error {
	var last deskapi.View
	found := false
	for !found {
		err := d.gateway.Follow(d.ctx, caseID(i), "", 0, func(v deskapi.View) error {
			if last, found = v, ok(v); found {
				return deskclient.ErrStop
			}
			return nil
		})
		if d.ctx.Err() != nil || err == nil && !found {
			return fmt.Errorf("last %s at v%d: %w", last.State, last.Version, errors.Join(err, d.ctx.Err()))
		}
	}
	return nil
}

// withdraws cancels a case.
func (d *crashDesk) withdraws(i int) error {
	return d.twice(i, "cancel", func() (any, error) {
		return d.gateway.Cancel(d.ctx, deskclient.Cancel{Key: "leave", CaseID: caseID(i)})
	})
}

// approves signs what a case proposes when it does.
func (d *crashDesk) approves(i int) error {
	var version uint64
	err := d.until(i, func(v deskapi.View) bool {
		version = v.Version
		return v.State == "AWAITING_APPROVAL"
	})
	if err != nil {
		return err
	}
	_, err = allinone.Approve(d.ctx, d.staff, d.Trial.Keys[allinone.Approver], caseID(i), version)
	return err
}

// recorded waits until a case's record has followed one of some rows.
func (d *crashDesk) recorded(i int, rows ...string) error {
	for version := uint64(1); d.ctx.Err() == nil; {
		rec, err := d.shown(i, version)
		if problem, ok := errors.AsType[*deskapi.Problem](err); ok && problem.Code == deskapi.CodeVersionNotReached {
			continue
		}
		if err != nil {
			return err
		}
		for _, e := range rec.GetTimeline() {
			if slices.Contains(rows, e.GetRow()) {
				return nil
			}
		}
		version = rec.GetVersion() + 1
	}
	return fmt.Errorf("%q is not recorded: %w", rows, d.ctx.Err())
}
