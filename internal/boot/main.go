package boot

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"os/signal"
	"runtime/debug"
	"syscall"
	"time"

	"github.com/amends-dev/amends/internal/roles"
	"github.com/amends-dev/amends/internal/telemetry"
)

// Exit codes.
const (
	exitClean   = 0
	exitFailure = 1
	exitConfig  = 2
)

// closing bounds what comes after the service itself has ended.
const closing = 3 * time.Second

// Service is what a running process offers to the service inside it.
type Service struct {
	Name      roles.Service
	Version   string
	Log       *slog.Logger
	Telemetry *telemetry.Telemetry
	Readiness *Readiness
	// Admin is where the probes are served.
	Admin net.Addr
}

// Run is a service: it works until ctx ends and then returns nil. cfg has been
// checked.
type Run[C any] func(ctx context.Context, cfg C, s *Service) error

// Main is the whole main function of a service. The file is decoded over
// defaults. It does not return.
func Main[C any, P interface {
	*C
	Configuration
}](name roles.Service, defaults C, run Run[C]) {
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	p := process{args: os.Args[1:], environ: os.Environ(), stdout: os.Stdout, stderr: os.Stderr, signals: signals}
	os.Exit(start[C, P](p, name, defaults, run))
}

// process is what the outside gives a process.
type process struct {
	args, environ  []string
	stdout, stderr io.Writer
	signals        <-chan os.Signal
}

func (p process) say(w io.Writer, format string, args ...any) {
	_, _ = fmt.Fprintf(w, format+"\n", args...) // there is nowhere else to say it
}

// start reads the command line and the configuration, and runs the service. It
// gives the exit code.
func start[C any, P interface {
	*C
	Configuration
}](p process, name roles.Service, cfg C, run Run[C]) int {
	flags := flag.NewFlagSet(string(name), flag.ContinueOnError)
	flags.SetOutput(p.stderr)
	file := flags.String("config", "", "read the configuration from this `FILE` (required)")
	check := flags.Bool("check-config", false, "check the configuration and exit")
	version := flags.Bool("version", false, "print the version and exit")
	switch err := flags.Parse(p.args); {
	case errors.Is(err, flag.ErrHelp):
		return exitClean
	case err != nil:
		return exitConfig
	case *version:
		p.say(p.stdout, "%s %s", name, buildVersion())
		return exitClean
	case flags.NArg() > 0:
		p.say(p.stderr, "%s: unexpected argument %q", name, flags.Arg(0))
		return exitConfig
	case *file == "":
		p.say(p.stderr, "%s: --config FILE is required", name)
		return exitConfig
	}
	unused, err := Load(*file, p.environ, P(&cfg))
	if err != nil {
		p.say(p.stderr, "%s: %v", name, err)
		return exitConfig
	}
	if *check {
		for _, v := range unused {
			p.say(p.stderr, "%s: %s matches no key", name, v)
		}
		p.say(p.stdout, "%s: configuration %s is valid", name, *file)
		return exitClean
	}
	common := P(&cfg).common()
	tel, err := telemetry.New(string(name), telemetry.WithVersion(buildVersion()),
		telemetry.WithLevel(common.level()), telemetry.WithOutput(p.stderr))
	if err != nil {
		p.say(p.stderr, "%s: %v", name, err)
		return exitFailure
	}
	log := tel.Logger()
	for _, v := range unused {
		log.Warn("environment variable matches no configuration key", slog.String("variable", v))
	}
	s := &Service{Name: name, Version: buildVersion(), Log: log, Telemetry: tel, Readiness: new(Readiness)}
	err = s.serve(*common, p.signals, func(ctx context.Context) error { return run(ctx, cfg, s) })
	switch {
	case errors.Is(err, ErrConfig):
		log.Error("refused to start", slog.Any("error", err))
		return exitConfig
	case err != nil:
		log.Error("ended with a failure", slog.Any("error", err))
		return exitFailure
	}
	log.Info("ended")
	return exitClean
}

// buildVersion is what the build recorded about itself.
func buildVersion() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	v := info.Main.Version
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" {
			v += " " + s.Value
		}
	}
	return v + " " + info.GoVersion
}
