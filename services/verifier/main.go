// Command verifier checks every claim of a draft against records.
package main

import (
	"context"
	"fmt"

	"github.com/amends-dev/amends/internal/boot"
	"github.com/amends-dev/amends/internal/bus"
	"github.com/amends-dev/amends/internal/roles"
	"github.com/amends-dev/amends/services/verifier/verifier"
)

func main() {
	boot.Main(roles.Verifier, verifier.Defaults(), func(ctx context.Context, cfg verifier.Config, s *boot.Service) error {
		seed, err := boot.ReadSecret(cfg.Broker.SeedFile, s.Log)
		if err != nil {
			return err
		}
		conn, err := bus.Connect(ctx, bus.Config{URL: cfg.Broker.URL, Service: roles.Verifier, Seed: seed, Manifest: roles.Desk()},
			bus.Deps{Log: s.Log, Meter: s.Telemetry.Meter()})
		if err != nil {
			return fmt.Errorf("connect to the broker: %w", err)
		}
		defer conn.Close()
		s.Readiness.Add("broker", conn.Ready)
		return verifier.Run(ctx, cfg, verifier.Deps{Bus: conn, Log: s.Log})
	})
}
