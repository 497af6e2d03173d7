package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/amends-dev/amends/internal/deskapi"
	"github.com/amends-dev/amends/internal/deskclient"
	"github.com/amends-dev/amends/internal/display"
)

// reconcileCmd is `amends reconcile`.
type reconcileCmd struct {
	consoleFlags
	DryRun  bool          `help:"Look and report, and change nothing: no finding becomes a case, no status is recorded."`
	Timeout time.Duration `default:"5m" help:"How long to wait for the reports, 1s to 1h."`
}

// Help says more.
func (reconcileCmd) Help() string {
	return `The executor compares the provider's refunds with its ledger, the orchestrator
the ledger with the cases. What disagrees becomes a case for people, once; it is
listed again for as long as it disagrees, also when its case is settled: a job
that runs by itself tells new findings from known ones by finding_id (--json).

  amends reconcile --tenant acme-in --dry-run
  amends reconcile --tenant acme-in --json

Exit codes: 0 all agrees; 3 records disagree; 4 not everything was looked at, or
not in time; 1 gone wrong; 2 not understood.`
}

// AfterApply checks the flags.
func (c *reconcileCmd) AfterApply() error {
	if c.Timeout < time.Second || c.Timeout > time.Hour {
		return errors.New("--timeout: want 1s to 1h")
	}
	return c.consoleFlags.AfterApply()
}

// Run asks for a run and waits for what it finds.
func (c *reconcileCmd) Run(ctx context.Context, t *terminal) error {
	desk, err := c.desk()
	if err != nil {
		return err
	}
	asked, err := desk.Reconcile(ctx, deskapi.ReconciliationRequest{Tenant: c.Tenant, DryRun: c.DryRun})
	if err != nil {
		return err
	}
	waiting, cancel := context.WithTimeout(ctx, c.Timeout)
	defer cancel()
	run, last, err := c.await(waiting, t, desk, asked.RunID)
	if err != nil {
		return err
	}
	if c.JSON {
		if err := t.writeJSON(run); err != nil {
			return err
		}
	} else if err := showRun(t, run); err != nil {
		return err
	}
	return verdictOn(run, last)
}

// await reads the run until it is complete or the time is up, and gives it as
// far as it came, and why the last look came to nothing if it did.
func (c *reconcileCmd) await(ctx context.Context, t *terminal, desk *deskclient.Console, id string) (run deskapi.Reconciliation, last, _ error) {
	run = deskapi.Reconciliation{Tenant: c.Tenant, RunID: id, Status: deskapi.RunRunning}
	said := ""
	for pause := askAgain; ; pause = min(2*pause, maxPause) {
		got, err := desk.Reconciliation(ctx, c.Tenant, id)
		p, refused := errors.AsType[*deskapi.Problem](err)
		switch {
		case err == nil:
			run, last = got, nil
		case refused && p.RetryAfter == 0 && p.Code != deskapi.CodeNotFound: // a direct read may be behind the request
			return run, nil, err
		case ctx.Err() == nil:
			last = err
		}
		if run.Status == deskapi.RunComplete {
			return run, nil, nil
		}
		now, more := "waiting for "+strings.Join(run.Waiting, " and "), ""
		if last != nil {
			now, more = "asking again: ", last.Error() // ports and times differ in it
		}
		if now != said && !c.JSON {
			fmt.Fprintf(t.err, "%s: %s\n", display.Line(id), display.Line(now+more))
			said = now
		}
		if sleep(ctx, pause) != nil {
			return run, last, nil
		}
	}
}

// verdictOn says what a run came to, with its exit code; last is why it could
// not be read in the end.
func verdictOn(run deskapi.Reconciliation, last error) error {
	findings, why := uint64(0), ""
	for _, r := range run.Reports {
		findings += uint64(len(r.Findings)) + r.Omitted
		if r.Incomplete != "" && why == "" {
			why = r.Service + ": " + r.Incomplete
		}
	}
	switch {
	case last != nil:
		why = "run " + run.RunID + " could not be read: " + last.Error()
	case run.Status != deskapi.RunComplete && len(run.Waiting) == 0:
		why = "run " + run.RunID + " could not be read in time"
	case run.Status != deskapi.RunComplete:
		why = "run " + run.RunID + " has no finished report yet of " + strings.Join(run.Waiting, ", ")
	}
	switch {
	case findings > 0 && why != "":
		return &coded{exitDisagrees, fmt.Errorf("findings: %d, and not everything was looked at: %s", findings, why)}
	case findings > 0:
		return &coded{exitDisagrees, fmt.Errorf("findings: %d", findings)}
	case why != "":
		return &coded{exitIncomplete, fmt.Errorf("not everything was looked at: %s", why)}
	}
	return nil
}

func showRun(t *terminal, run deskapi.Reconciliation) error {
	table := tabwriter.NewWriter(t.out, 0, 0, 2, ' ', 0)
	listed := false
	for _, r := range run.Reports {
		for _, f := range r.Findings {
			if !listed {
				fmt.Fprintln(table, "code\torder\tpayment\trefund\tcase\trecords")
				listed = true
			}
			fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%s\n", display.Line(f.Code), orNone(display.Line(f.OrderID)), orNone(display.Line(f.PaymentID)),
				orNone(display.Line(f.RefundID)), display.Line(f.CaseID), sidesOf(f.Records))
		}
	}
	if listed {
		fmt.Fprintln(table)
	}
	fmt.Fprintln(table, "service\torders\trefunds\tcases\tupdated\tfindings\tomitted\tincomplete")
	for _, r := range run.Reports {
		fmt.Fprintf(table, "%s\t%d\t%d\t%d\t%d\t%d\t%d\t%s\n", display.Line(r.Service), r.Orders, r.Refunds, r.Cases, r.Updated, len(r.Findings), r.Omitted, orNone(display.Line(r.Incomplete)))
	}
	if err := table.Flush(); err != nil {
		return fmt.Errorf("write the list: %w", err)
	}
	switch {
	case run.Agrees:
		fmt.Fprintf(t.out, "all agrees (%s)\n", display.Line(run.RunID))
	case run.DryRun && listed:
		fmt.Fprintln(t.out, "a dry run: nothing was changed, and no case was opened")
	case listed:
		fmt.Fprintf(t.out, "each goes to the case beside it, once, and is listed for as long as its records disagree, also when that case is settled\n"+
			"what waits for people: amends custody list --tenant %s --queue reconciliation\n", display.Line(run.Tenant))
	}
	return nil
}

// sidesOf writes the records that disagree, one beside the other.
func sidesOf(records []deskapi.FindingRecord) string {
	sides := make([]string, len(records))
	for i, r := range records {
		words := []string{r.Source, r.Kind}
		if r.ID != "" {
			words = append(words, r.ID)
		}
		if r.Amount != nil {
			words = append(words, format(*r.Amount))
		}
		if r.Status != "" {
			words = append(words, r.Status)
		}
		sides[i] = display.Line(strings.Join(words, " "))
	}
	return strings.Join(sides, " | ")
}
