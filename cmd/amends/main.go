package main

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/alecthomas/kong"
	"golang.org/x/term"

	"github.com/amends-dev/amends/internal/completion"
	"github.com/amends-dev/amends/internal/deskapi"
	"github.com/amends-dev/amends/internal/display"
)

// Exit codes.
const (
	exitDone   = 0
	exitFailed = 1
	exitUsage  = 2
	// Of reconcile alone.
	exitDisagrees  = 3
	exitIncomplete = 4
)

// coded is an error with an exit code of its own.
type coded struct {
	code int
	err  error
}

func (c *coded) Error() string { return c.err.Error() }
func (c *coded) Unwrap() error { return c.err }

// cli is the command line; each verb has a file.
type cli struct {
	Approve   approveCmd   `cmd:"" help:"Approve the action a case proposes."`
	Deny      denyCmd      `cmd:"" help:"Deny the action a case proposes."`
	Approver  approverCmd  `cmd:"" help:"Approvers' keys."`
	Case      caseCmd      `cmd:"" help:"Cases as customers see them."`
	Custody   custodyCmd   `cmd:"" help:"Cases that were handed to people."`
	Reconcile reconcileCmd `cmd:"" help:"Compare the provider's refunds, the effect ledger and the cases."`
	Stop      stopCmd      `cmd:"" help:"Emergency stop: no new refund is made, for a tenant or for all."`
	Resume    resumeCmd    `cmd:"" help:"Release the emergency stop of a tenant or of all."`
	Stops     stopsCmd     `cmd:"" help:"Show the switches of the emergency stop."`

	completion.Commands
}

// terminal is what a command has of the outside.
type terminal struct {
	in       io.Reader
	out, err io.Writer
	// interactive says that a person can answer.
	interactive bool
	now         func() time.Time
	entropy     io.Reader
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := run(ctx, os.Args[1:], &terminal{
		in: os.Stdin, out: os.Stdout, err: os.Stderr, interactive: isTerminal(os.Stdin), now: time.Now, entropy: rand.Reader,
	})
	stop()
	os.Exit(code)
}

// isTerminal tells a terminal from other devices, such as /dev/null.
func isTerminal(f *os.File) bool { return term.IsTerminal(int(f.Fd())) }

// exit is how the parser asks for the end, after --help for instance.
type exit int

func run(ctx context.Context, args []string, t *terminal) (code int) {
	defer func() {
		switch asked := recover().(type) {
		case nil:
		case exit:
			code = int(asked)
		default:
			panic(asked)
		}
	}()
	var c cli
	parser, err := kong.New(&c, kong.Name("amends"), kong.Description("Client of the refund desk."),
		kong.Writers(t.out, t.err), kong.Help(printHelp), kong.UsageOnError(), kong.Exit(func(code int) { panic(exit(code)) }),
		kong.BindTo(ctx, (*context.Context)(nil)), kong.Bind(t))
	if err != nil {
		fmt.Fprintf(t.err, "amends: %v\n", err)
		return exitFailed
	}
	parsed, err := parser.Parse(args)
	if err != nil {
		t.fail(err, machineReadable(args))
		return exitUsage
	}
	if err := parsed.Run(); err != nil {
		t.fail(err, machineReadable(args))
		if c, ok := errors.AsType[*coded](err); ok {
			return c.code
		}
		return exitFailed
	}
	return exitDone
}

// output is the flag of commands that machines may call.
type output struct {
	JSON bool `name:"json" help:"Write JSON to standard output, and errors as JSON to standard error."`
}

// machineReadable looks for the flag in the arguments themselves: those that
// are not understood have to be answered too.
func machineReadable(args []string) bool {
	for _, a := range args {
		switch a {
		case "--":
			return false
		case "--json", "--json=true":
			return true
		}
	}
	return false
}

// fail says what went wrong.
func (t *terminal) fail(err error, asJSON bool) {
	if !asJSON {
		fmt.Fprintf(t.err, "amends: %s\n", display.Text(err.Error())) // servers' words are in it
		return
	}
	out := struct {
		Error string       `json:"error"`
		Code  deskapi.Code `json:"code,omitempty"`
	}{Error: err.Error()}
	if p, ok := errors.AsType[*deskapi.Problem](err); ok {
		out.Code = p.Code
	}
	_ = json.NewEncoder(t.err).Encode(out) // there is nowhere else to say it
}

// writeJSON writes a result for machines.
func (t *terminal) writeJSON(v any) error {
	enc := json.NewEncoder(t.out)
	enc.SetIndent("", "  ")
	if err := enc.Encode(v); err != nil {
		return fmt.Errorf("write the result: %w", err)
	}
	return nil
}
