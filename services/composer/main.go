// Command composer writes replies from the facts of a case.
package main

import (
	"context"
	"fmt"

	"github.com/amends-dev/amends/internal/boot"
	"github.com/amends-dev/amends/internal/bus"
	"github.com/amends-dev/amends/internal/roles"
	"github.com/amends-dev/amends/services/composer/composer"
)

func main() {
	boot.Main(roles.Composer, composer.Defaults(), func(ctx context.Context, cfg composer.Config, s *boot.Service) error {
		seed, err := boot.ReadSecret(cfg.Broker.SeedFile, s.Log)
		if err != nil {
			return err
		}
		conn, err := bus.Connect(ctx, bus.Config{URL: cfg.Broker.URL, Service: roles.Composer, Seed: seed, Manifest: roles.Desk()},
			bus.Deps{Log: s.Log, Meter: s.Telemetry.Meter()})
		if err != nil {
			return fmt.Errorf("connect to the broker: %w", err)
		}
		defer conn.Close()
		s.Readiness.Add("broker", conn.Ready)
		return composer.Run(ctx, cfg, composer.Deps{Bus: conn, Log: s.Log})
	})
}
