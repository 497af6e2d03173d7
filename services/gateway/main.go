// Command gateway is the HTTP edge for customer channels.
package main

import (
	"context"
	"fmt"

	"github.com/amends-dev/amends/internal/boot"
	"github.com/amends-dev/amends/internal/bus"
	"github.com/amends-dev/amends/internal/roles"
	"github.com/amends-dev/amends/services/gateway/gateway"
)

func main() {
	boot.Main(roles.Gateway, gateway.Defaults(), func(ctx context.Context, cfg gateway.Config, s *boot.Service) error {
		seed, err := boot.ReadSecret(cfg.Broker.SeedFile, s.Log)
		if err != nil {
			return err
		}
		conn, err := bus.Connect(ctx, bus.Config{URL: cfg.Broker.URL, Service: roles.Gateway, Seed: seed, Manifest: roles.Desk()},
			bus.Deps{Log: s.Log, Meter: s.Telemetry.Meter()})
		if err != nil {
			return fmt.Errorf("connect to the broker: %w", err)
		}
		defer conn.Close()
		s.Readiness.Add("broker", conn.Ready)
		return gateway.Run(ctx, cfg, gateway.Deps{Bus: conn, Log: s.Log, Meter: s.Telemetry.Meter(), Tracer: s.Telemetry.Tracer()})
	})
}
