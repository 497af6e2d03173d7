// Command payment-investigator finds out what happened to the money of an order.
package main

import (
	"context"
	"fmt"

	"github.com/amends-dev/amends/internal/boot"
	"github.com/amends-dev/amends/internal/bus"
	"github.com/amends-dev/amends/internal/roles"
	"github.com/amends-dev/amends/services/payment-investigator/investigator"
)

func main() {
	boot.Main(roles.PaymentInvestigator, investigator.Defaults(), func(ctx context.Context, cfg investigator.Config, s *boot.Service) error {
		seed, err := boot.ReadSecret(cfg.Broker.SeedFile, s.Log)
		if err != nil {
			return err
		}
		conn, err := bus.Connect(ctx, bus.Config{URL: cfg.Broker.URL, Service: roles.PaymentInvestigator, Seed: seed, Manifest: roles.Desk()},
			bus.Deps{Log: s.Log, Meter: s.Telemetry.Meter()})
		if err != nil {
			return fmt.Errorf("connect to the broker: %w", err)
		}
		defer conn.Close()
		s.Readiness.Add("broker", conn.Ready)
		return investigator.Run(ctx, cfg, investigator.Deps{Bus: conn, Log: s.Log})
	})
}
