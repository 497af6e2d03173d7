package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/amends-dev/amends/internal/boot"
	"github.com/amends-dev/amends/internal/sandbox"
)

// faultText is a fault as it is typed.
type faultText struct{ sandbox.Fault }

// UnmarshalText reads it.
func (f *faultText) UnmarshalText(text []byte) (err error) {
	f.Fault, err = sandbox.ParseFault(string(text))
	return err
}

func faultsOf(texts []faultText) sandbox.Faults {
	var out sandbox.Faults
	for _, t := range texts {
		out = append(out, t.Fault)
	}
	return out
}

// faultFlags let the provider fail from the start.
type faultFlags struct {
	Fault []faultText `sep:"none" placeholder:"FAULT" help:"Let the provider fail, e.g. answer_lost,times=1,payment=pay_8472_b; may be given often. All there are: amends-dev sandbox faults kinds."`
}

func (f faultFlags) faults() sandbox.Faults { return faultsOf(f.Fault) }

// sandboxAccess says which sandbox is meant.
type sandboxAccess struct {
	URL     string `name:"url" env:"AMENDS_SANDBOX_URL" default:"http://127.0.0.1:8090" placeholder:"URL" help:"Where the sandbox is."`
	KeyFile string `env:"AMENDS_SANDBOX_KEY_FILE" default:".amends/secrets/payments-admin" type:"path" placeholder:"FILE" help:"File with its admin key; the default is that of a desk which amends-dev up has started here."`
	JSON    bool   `name:"json" help:"Print JSON."`
}

func (a sandboxAccess) open(c *console) (*sandbox.Admin, error) {
	key, err := boot.ReadSecret(a.KeyFile, slog.New(c.log))
	if err != nil {
		return nil, err
	}
	return sandbox.NewAdmin(strings.TrimSuffix(a.URL, "/"), string(key)), nil
}

// sandboxFaultsCmd are the faults of a running sandbox.
type sandboxFaultsCmd struct {
	List  faultsListCmd  `cmd:"" help:"List the faults and how often each struck."`
	Set   faultsSetCmd   `cmd:"" help:"Put other faults in the place of those there are."`
	Clear faultsClearCmd `cmd:"" help:"Take every fault away."`
	Kinds faultsKindsCmd `cmd:"" help:"List what can go wrong, with examples."`
}

type faultsListCmd struct{ sandboxAccess }

// Run lists them.
func (f faultsListCmd) Run(ctx context.Context, c *console) error {
	admin, err := f.open(c)
	if err != nil {
		return err
	}
	return f.show(ctx, c, admin)
}

type faultsSetCmd struct {
	Fault []faultText `arg:"" sep:"none" help:"Such as answer_lost,times=1,payment=pay_8472_b or outage,on=reads; amends-dev sandbox faults kinds lists all."`
	sandboxAccess
}

// Run puts them.
func (f faultsSetCmd) Run(ctx context.Context, c *console) error {
	admin, err := f.open(c)
	if err != nil {
		return err
	}
	if err := admin.SetFaults(ctx, faultsOf(f.Fault)); err != nil {
		return err
	}
	return f.show(ctx, c, admin)
}

type faultsClearCmd struct{ sandboxAccess }

// Run takes them away.
func (f faultsClearCmd) Run(ctx context.Context, c *console) error {
	admin, err := f.open(c)
	if err != nil {
		return err
	}
	if err := admin.ClearFaults(ctx); err != nil {
		return err
	}
	return f.show(ctx, c, admin)
}

func (a sandboxAccess) show(ctx context.Context, c *console, admin *sandbox.Admin) error {
	all, err := admin.Faults(ctx)
	if err != nil {
		return err
	}
	if a.JSON {
		return c.json(map[string]any{"faults": append(sandbox.Faults{}, all...)})
	}
	if len(all) == 0 {
		c.printf("no faults\n")
		return nil
	}
	w := tabwriter.NewWriter(c.out, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(w, "struck\tfault")
	for _, x := range all {
		struck := strconv.Itoa(x.Struck)
		if x.Times > 0 {
			struck += " of " + strconv.Itoa(x.Times)
		}
		_, _ = fmt.Fprintf(w, "%s\t%s\n", struck, x)
	}
	return w.Flush()
}

func (c *console) json(v any) error {
	e := json.NewEncoder(c.out)
	e.SetIndent("", "  ")
	return e.Encode(v)
}

type faultsKindsCmd struct{}

// Run lists the kinds.
func (faultsKindsCmd) Run(c *console) error {
	var b strings.Builder
	for _, k := range sandbox.FaultKinds() {
		fmt.Fprintf(&b, "%s\n    %s\n    e.g. %s\n", k.Kind, k.Does, k.Example)
		if own := slices.Concat(k.Needs, k.Takes); len(own) > 0 {
			fmt.Fprintf(&b, "    its own: %s\n", strings.Join(own, ", "))
		}
		fmt.Fprintf(&b, "    on %s\n", strings.Join(k.On, ", "))
	}
	b.WriteString("\nEvery kind takes times=N (how often; until it is removed without), on=PLACE+PLACE, and\ntenant=, order=, payment=, reference= for what it is about.\n")
	_, err := io.WriteString(c.out, b.String())
	return err
}

type sandboxRefundCmd struct {
	Refund string `arg:"" help:"The refund's id, e.g. rf_5521."`
	Status string `arg:"" help:"succeeded, failed, canceled, or any other text."`
	sandboxAccess
}

// Run changes the status.
func (s sandboxRefundCmd) Run(ctx context.Context, c *console) error {
	admin, err := s.open(c)
	if err != nil {
		return err
	}
	if err := admin.SetRefundStatus(ctx, s.Refund, s.Status); err != nil {
		return err
	}
	if s.JSON {
		return c.json(map[string]string{"refund_id": s.Refund, "status": s.Status})
	}
	c.printf("refund %s is %s\n", s.Refund, s.Status)
	return nil
}

type sandboxCaptureCmd struct {
	Payment string `arg:"" help:"The payment's id, e.g. pay_8472_b."`
	Status  string `arg:"" help:"captured, settled, expired, or any other text."`
	Tenant  string `default:"acme-in" help:"Whose payment it is."`
	sandboxAccess
}

// Run changes the status.
func (s sandboxCaptureCmd) Run(ctx context.Context, c *console) error {
	admin, err := s.open(c)
	if err != nil {
		return err
	}
	if err := admin.SetCaptureStatus(ctx, s.Tenant, s.Payment, s.Status); err != nil {
		return err
	}
	if s.JSON {
		return c.json(map[string]string{"tenant": s.Tenant, "payment_id": s.Payment, "status": s.Status})
	}
	c.printf("payment %s is %s\n", s.Payment, s.Status)
	return nil
}
