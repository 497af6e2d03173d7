package main

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/amends-dev/amends/internal/deskapi"
	"github.com/amends-dev/amends/internal/deskclient"
	"github.com/amends-dev/amends/internal/display"
	"github.com/amends-dev/amends/internal/ident"
)

// caseShowCmd is `amends case show`.
type caseShowCmd struct {
	Case string `arg:"" help:"Case id."`
	gatewayFlags
}

// AfterApply checks what was said.
func (c *caseShowCmd) AfterApply() error {
	if err := ident.Tokens("case", c.Case); err != nil {
		return err
	}
	return c.gatewayFlags.AfterApply()
}

// Run shows the case.
func (c *caseShowCmd) Run(ctx context.Context, t *terminal) error {
	token, err := readToken(c.TokenFile)
	if err != nil {
		return err
	}
	desk, err := deskclient.NewGateway(deskclient.Config{URL: c.Gateway, Token: token})
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
	for _, e := range v.Timeline {
		fmt.Fprintf(w, "  v%-3d %-20s  %s\n", e.Version, clock("", e.At), display.Line(e.State))
	}
	for _, r := range v.Replies {
		fmt.Fprintf(w, "reply of v%d (%s)%s:\n", r.Version, display.Line(r.Kind), clock(", ", r.SentAt))
		fmt.Fprintf(w, "  %s\n", strings.ReplaceAll(display.Text(r.Text), "\n", "\n  "))
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
