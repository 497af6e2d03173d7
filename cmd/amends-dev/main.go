package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"runtime"
	"runtime/debug"
	"syscall"

	"github.com/alecthomas/kong"

	"github.com/amends-dev/amends/internal/completion"
)

// cli is the command line.
type cli struct {
	LogLevel string `help:"Log the services at this level to standard error: debug, info, warn, error, off." default:"off" enum:"debug,info,warn,error,off"`

	Demo    demoCmd    `cmd:"" help:"Run the founding request req-8472 on a real desk, both endings, and check them."`
	Up      upCmd      `cmd:"" help:"Keep a desk running and print how to use it."`
	Bench   benchCmd   `cmd:"" help:"Measure cases a second, each with a signed approval, and check that refunds equal cases."`
	Cases   casesCmd   `cmd:"" help:"Run message cases against the whole desk and compare what came of them with what they expect."`
	Sandbox sandboxCmd `cmd:"" help:"Run the payments sandbox alone, or change one that runs."`

	completion.Commands
}

// console is where a command writes, and how the services log.
type console struct {
	out io.Writer
	log slog.Handler
}

func (c *console) printf(format string, args ...any) {
	_, _ = fmt.Fprintf(c.out, format, args...) // standard output gone: nothing to tell anybody
}

// errCheck: the command ran, and what it checked is not so.
var errCheck = errors.New("not as specified")

func main() {
	tune()
	os.Exit(run(os.Args[1:], os.Stdout, os.Stderr))
}

// tune fits the runtime to a process that holds broker, Redis, provider and all
// services at once; the environment's own settings win. The broker's file
// writes block a thread each, so there are twice as many processors as cores;
// and nothing else needs the memory, so garbage is collected less often.
func tune() {
	if os.Getenv("GOMAXPROCS") == "" {
		runtime.GOMAXPROCS(2 * runtime.NumCPU())
	}
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(400)
	}
}

// run gives the exit code: 0 clean, 1 failed or not as specified, 2 usage.
func run(args []string, out, errs io.Writer) int {
	var c cli
	parser, err := kong.New(&c, kong.Name("amends-dev"), kong.Description("The Amends refund desk in one process."), kong.Writers(out, errs), kong.UsageOnError())
	if err != nil {
		fmt.Fprintln(errs, "amends-dev:", err)
		return 1
	}
	parsed, err := parser.Parse(args)
	if err != nil {
		fmt.Fprintln(errs, "amends-dev:", err)
		return 2
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	parsed.BindTo(ctx, (*context.Context)(nil))
	err = parsed.Run(&console{out: out, log: logHandler(c.LogLevel)})
	switch {
	case err == nil:
		return 0
	case errors.Is(err, errFailed):
		return 1 // said, with the count last
	}
	fmt.Fprintln(errs, "amends-dev:", err)
	if errors.Is(err, errUsage) {
		return 2
	}
	return 1
}

func logHandler(level string) slog.Handler {
	if level == "off" {
		return slog.DiscardHandler
	}
	var l slog.Level
	if err := l.UnmarshalText([]byte(level)); err != nil {
		l = slog.LevelInfo // the parser lets only known names through
	}
	return slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: l})
}
