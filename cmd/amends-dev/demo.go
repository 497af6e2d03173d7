package main

import (
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"google.golang.org/protobuf/encoding/protojson"

	"github.com/amends-dev/amends/internal/allinone"
	"github.com/amends-dev/amends/internal/casework"
	"github.com/amends-dev/amends/internal/deskapi"
	"github.com/amends-dev/amends/internal/deskclient"
	"github.com/amends-dev/amends/internal/sandbox"
	amendsv1 "github.com/amends-dev/amends/proto/amends/v1"
)

//go:embed ledgers/duplicate.json
var duplicateLedger []byte

//go:embed ledgers/hold.json
var holdLedger []byte

// trialLedger is what a new desk of `up` has.
//
//go:embed ledgers/trial.json
var trialLedger []byte

const (
	demoCase    = "req-8472"
	demoMessage = "Order 8472 was charged twice, and my refund has not arrived. Please investigate and resolve it."
	// demoLimit bounds one path.
	demoLimit = time.Minute
)

// demoCmd runs the founding request.
type demoCmd struct{}

// path is one ending of the founding request.
type path struct {
	title   string
	ledger  []byte
	ends    func(deskapi.View) bool
	approve bool
	check   func(ended) []string
}

// ended is what a path left behind.
type ended struct {
	view   deskapi.View
	record *amendsv1.CaseRecord
	ledger sandbox.Ledger
}

// Run runs both paths and fails unless both ended as specified.
func (demoCmd) Run(ctx context.Context, c *console) error {
	c.printf("Amends: the founding request on a real desk (embedded broker, every service on its own credential).\n")
	c.printf("Customer %s writes: %q\n", allinone.Customer, demoMessage)
	wrong := 0
	for _, p := range []path{
		{"A. The duplicate that is refunded", duplicateLedger, func(v deskapi.View) bool { return v.Closed }, true, checkA},
		{"B. The hold that is not refunded", holdLedger, func(v deskapi.View) bool { return v.State == "HOLD_FOR_EVIDENCE" && len(v.Replies) > 0 }, false, checkB},
	} {
		problems, err := p.run(ctx, c)
		if err != nil {
			return fmt.Errorf("path %.1s: %w", p.title, err)
		}
		for _, w := range problems {
			c.printf("   NOT AS SPECIFIED: %s\n", w)
		}
		wrong += len(problems)
	}
	if wrong > 0 {
		return fmt.Errorf("%w: %d differences", errCheck, wrong)
	}
	c.printf("\nBoth endings are as specified.\n")
	return nil
}

func (p path) run(ctx context.Context, c *console) ([]string, error) {
	ctx, cancel := context.WithTimeout(ctx, demoLimit)
	defer cancel()
	dir, remove, err := allinone.TempDir()
	if err != nil {
		return nil, err
	}
	defer remove()
	desk, err := allinone.Start(ctx, allinone.Options{Dir: dir, Log: c.log})
	if err != nil {
		return nil, err
	}
	defer func() { _ = desk.Close() }() // its files are removed anyway
	c.printf("\n%s\n", p.title)
	if err := load(ctx, desk, p.ledger); err != nil {
		return nil, err
	}
	end, err := p.play(ctx, c, desk)
	if err != nil {
		return nil, err
	}
	show(c, end)
	return p.check(end), desk.Close()
}

// play posts the request, approves where a person is asked, and follows it to
// its end.
func (p path) play(ctx context.Context, c *console, desk *allinone.Desk) (ended, error) {
	gateway, staff, err := desk.Clients(1)
	if err != nil {
		return ended{}, err
	}
	if _, err := gateway.Post(ctx, deskclient.Post{Key: "demo-8472", Message: demoMessage, CaseID: demoCase}); err != nil {
		return ended{}, err
	}
	var end ended
	err = gateway.Follow(ctx, demoCase, "", 0, func(v deskapi.View) error {
		end.view = v
		if v.State == "AWAITING_APPROVAL" && p.approve {
			id, err := allinone.Approve(ctx, staff, desk.Trial.Keys[allinone.Approver], demoCase, v.Version)
			if err != nil {
				return err
			}
			c.printf("   %s looked at the action record and signed it with her own key: %s\n", allinone.Approver, id)
		}
		if p.ends(v) {
			return deskclient.ErrStop
		}
		return nil
	})
	if err != nil {
		return ended{}, err
	}
	shown, err := staff.Record(ctx, allinone.Tenant, demoCase, end.view.Version)
	if err != nil {
		return ended{}, err
	}
	end.record = &amendsv1.CaseRecord{}
	if err := (protojson.UnmarshalOptions{DiscardUnknown: true}).Unmarshal(shown.Record, end.record); err != nil {
		return ended{}, fmt.Errorf("read the case record: %w", err)
	}
	end.ledger, err = desk.Provider.Ledger(ctx)
	return end, err
}

func load(ctx context.Context, desk *allinone.Desk, ledger []byte) error {
	var l sandbox.Ledger
	if err := json.Unmarshal(ledger, &l); err != nil {
		return fmt.Errorf("read the ledger: %w", err)
	}
	return desk.Provider.Load(ctx, l.PlacedAt(time.Now().Add(-48*time.Hour)))
}

func show(c *console, e ended) {
	c.printf("   %-5s %-18s %-21s %s\n", "", "state", "by", "what happened")
	for _, t := range e.record.GetTimeline() {
		c.printf("   v%-4d %-18s %-21s %s\n", t.GetVersion(), casework.StateName(t.GetState()), t.GetActor(), t.GetNote())
	}
	for _, r := range e.view.Replies {
		c.printf("   Reply (%s, verified):\n", r.Kind)
		for _, line := range strings.Split(strings.TrimSpace(r.Text), "\n") {
			c.printf("   │ %s\n", line)
		}
	}
	for _, r := range e.ledger.Refunds {
		c.printf("   Provider: refund %s of %d %s on %s, %s, key %s\n", r.RefundID, r.AmountMinor, r.Currency, r.PaymentID, r.Status, r.Reference)
	}
	if len(e.ledger.Refunds) == 0 {
		c.printf("   Provider: no refund exists.\n")
	}
}
