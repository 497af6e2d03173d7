package boot

import (
	"context"
	"fmt"

	"github.com/amends-dev/amends/internal/bus"
	"github.com/amends-dev/amends/internal/roles"
)

// Connect opens the service's connection to the broker on its own credential
// and makes readiness depend on it. The caller closes it.
func (s *Service) Connect(ctx context.Context, c Common) (*bus.Conn, error) {
	seed, err := ReadSecret(c.Broker.SeedFile, s.Log)
	if err != nil {
		return nil, fmt.Errorf("broker credential of %s: %w", s.Name, err)
	}
	conn, err := bus.Connect(ctx, bus.Config{URL: c.Broker.URL, Service: s.Name, Seed: seed, Manifest: roles.Desk()},
		bus.Deps{Log: s.Log, Meter: s.Telemetry.Meter()})
	if err != nil {
		return nil, fmt.Errorf("connect %s to the broker: %w", s.Name, err)
	}
	s.Readiness.Add("broker", conn.Ready)
	return conn, nil
}
