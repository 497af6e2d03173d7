package boot

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"time"
)

var (
	errEnded    = errors.New("the service ended without being asked to")
	errTimeout  = errors.New("the service did not stop within shutdown_timeout")
	errInsisted = errors.New("told twice to stop; stopped at once")
)

// serve runs the service until it ends, or until it was told to stop and did.
func (s *Service) serve(c Common, signals <-chan os.Signal, run func(context.Context) error) error {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	probes, err := listen(ctx, c.Admin.Listen, s.Readiness, s.Telemetry.Handler())
	if err != nil {
		return err
	}
	s.Admin = probes.addr
	s.Log.Info("started", slog.String("version", s.Version), slog.String("admin", probes.addr.String()))

	ended := make(chan error, 1)
	go func() { ended <- run(ctx) }()
	select {
	case err = <-ended:
		if err == nil {
			err = errEnded
		}
	case err = <-probes.failed:
		cancel()
		err = errors.Join(err, s.wind(c.ShutdownTimeout, signals, ended))
	case got := <-signals:
		s.Log.Info("stopping", slog.String("signal", got.String()))
		s.Readiness.close()
		cancel()
		err = s.wind(c.ShutdownTimeout, signals, ended)
		if errors.Is(err, errInsisted) {
			return errors.Join(err, probes.server.Close())
		}
	}
	after, stop := context.WithTimeout(context.Background(), closing)
	defer stop()
	return errors.Join(err, probes.stop(after), s.Telemetry.Shutdown(after))
}

// wind waits for a cancelled service, not longer than limit and not after
// another signal.
func (s *Service) wind(limit time.Duration, signals <-chan os.Signal, ended <-chan error) error {
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case err := <-ended:
		if errors.Is(err, context.Canceled) {
			return nil // it was told to stop, and this is how it says so
		}
		return err
	case <-timer.C:
		return errTimeout
	case <-signals:
		return errInsisted
	}
}
