package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/amends-dev/amends/internal/casefile"
	"github.com/amends-dev/amends/internal/caserun"
)

// casesCmd judges the desk on message cases.
type casesCmd struct {
	File    string        `arg:"" help:"Message cases, one JSON object a line; docs/cases.md describes the format."`
	Only    []string      `help:"Run this case alone; may be given several times." placeholder:"ID" sep:"none"`
	JSON    bool          `name:"json" help:"Print one JSON object a case, and a summary object last."`
	Verbose bool          `short:"v" help:"Print versions, replies, times and what was not judged for every case."`
	Jobs    int           `help:"How many cases run at once, each on a desk of its own." default:"2"`
	Limit   time.Duration `help:"How long one case may take." default:"1m"`
}

// Help is the command's long help.
func (casesCmd) Help() string {
	return `Each case gets a fresh desk that lives in the case's own time: its message is
posted as the caller, its followups arrive at their moments, the approvers act as
the case says or else approve what they are shown. What came of it is compared
with what the case expects. The last line is "N passed, N failed". The exit code
is 0 when all passed, 1 when one failed, 2 when the file cannot be read or an
option is wrong.`
}

// errUsage: the command cannot begin with what it was given.
var errUsage = errors.New("usage")

// errFailed: cases failed, which has been said.
var errFailed = errors.New("cases failed")

// Validate checks the options.
func (cmd casesCmd) Validate() error {
	switch {
	case cmd.Jobs < 1 || cmd.Jobs > 64:
		return fmt.Errorf("--jobs: %d, want 1 to 64", cmd.Jobs)
	case cmd.Limit < time.Second:
		return fmt.Errorf("--limit: %s, want at least 1s", cmd.Limit)
	}
	return nil
}

// Run runs the cases in the file's order, some at once.
func (cmd casesCmd) Run(ctx context.Context, c *console) error {
	entries, err := cmd.read()
	if err != nil {
		return err
	}
	results := make([]chan caserun.Result, len(entries))
	for i := range results {
		results[i] = make(chan caserun.Result, 1)
	}
	var g errgroup.Group
	g.SetLimit(cmd.Jobs)
	go func() {
		for i, e := range entries {
			g.Go(func() error {
				results[i] <- cmd.run(ctx, c, e)
				return nil
			})
		}
	}()
	report := newCaseReport(cmd, c)
	for i, e := range entries {
		report.waiting(e, i, len(entries))
		report.add(e, <-results[i])
	}
	report.sum()
	if report.failed > 0 {
		return errFailed
	}
	return nil
}

func (cmd casesCmd) run(ctx context.Context, c *console, e casefile.Entry) caserun.Result {
	if e.Err != nil {
		return caserun.Result{Err: e.Err, Judgement: casefile.NoJudgement(), Replies: []string{}}
	}
	return caserun.Run(ctx, e.Case, caserun.Options{Limit: cmd.Limit, Log: c.log})
}

// read gives the cases to run.
func (cmd casesCmd) read() ([]casefile.Entry, error) {
	f, err := os.Open(cmd.File)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errUsage, err)
	}
	defer func() { _ = f.Close() }()
	entries, err := casefile.Read(f)
	switch {
	case err != nil:
		return nil, fmt.Errorf("%w: %s: %w", errUsage, cmd.File, err)
	case len(entries) == 0:
		return nil, fmt.Errorf("%w: %s holds no cases", errUsage, cmd.File)
	}
	if len(cmd.Only) == 0 {
		return entries, nil
	}
	var missing []string
	for _, id := range cmd.Only {
		if !slices.ContainsFunc(entries, func(e casefile.Entry) bool { return e.ID == id }) {
			missing = append(missing, id)
		}
	}
	if len(missing) > 0 {
		return nil, fmt.Errorf("%w: --only: %s has no case %s", errUsage, cmd.File, strings.Join(missing, ", "))
	}
	return slices.DeleteFunc(entries, func(e casefile.Entry) bool { return !slices.Contains(cmd.Only, e.ID) }), nil
}
