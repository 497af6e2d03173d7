package main

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/amends-dev/amends/internal/deskapi"
	"github.com/amends-dev/amends/internal/display"
)

// caseShowCmd is `amends case show`.
type caseShowCmd struct {
	caseArg
	gatewayFlags
}

// AfterApply checks what was said.
func (c *caseShowCmd) AfterApply() error { return checkAll(&c.caseArg, &c.gatewayFlags) }

// Run shows the case.
func (c *caseShowCmd) Run(ctx context.Context, t *terminal) error {
	desk, err := c.desk()
	if err != nil {
		return err
	}
	v, err := desk.View(ctx, c.Case, c.Customer)
	if err != nil {
		return err
	}
	if c.JSON {
		return t.writeJSON(v)
	}
	showView(t.out, v)
	return nil
}

func showView(w io.Writer, v deskapi.View) {
	fmt.Fprintf(w, "%s  %s  v%d", display.Line(v.CaseID), display.Line(v.State), v.Version)
	if v.OrderID != "" {
		fmt.Fprintf(w, "  order %s", display.Line(v.OrderID))
	}
	fmt.Fprintln(w)
	showSince(w, v, 0)
	showNext(w, v)
}

// showSince shows the versions after one and the replies they sent.
func showSince(w io.Writer, v deskapi.View, seen uint64) {
	for _, e := range v.Timeline {
		if e.Version > seen {
			fmt.Fprintf(w, "  v%-3d %-20s  %s\n", e.Version, clock("", e.At), display.Line(e.State))
		}
	}
	for _, r := range v.Replies {
		if r.Version > seen {
			fmt.Fprintf(w, "reply of v%d (%s)%s:\n", r.Version, display.Line(r.Kind), clock(", ", r.SentAt))
			fmt.Fprintf(w, "  %s\n", strings.ReplaceAll(display.Text(r.Text), "\n", "\n  "))
		}
	}
}

func showNext(w io.Writer, v deskapi.View) {
	if v.ContinuedBy != "" {
		fmt.Fprintf(w, "continued by: %s\n", display.Line(v.ContinuedBy))
	}
	if v.Next != "" {
		fmt.Fprintf(w, "next: %s%s\n", display.Line(v.Next), clock(" ", v.NextAt))
	}
}

// clock gives a time, if there is one, after what leads to it.
func clock(lead string, t *time.Time) string {
	if t == nil {
		return ""
	}
	return lead + t.UTC().Format(time.RFC3339)
}
