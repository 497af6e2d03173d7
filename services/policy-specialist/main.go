// Command policy-specialist finds the policy that applies.
package main

import (
	"context"
	"fmt"

	"github.com/amends-dev/amends/internal/boot"
	"github.com/amends-dev/amends/internal/bus"
	"github.com/amends-dev/amends/internal/roles"
	"github.com/amends-dev/amends/services/policy-specialist/policydesk"
)

func main() {
	boot.Main(roles.PolicySpecialist, policydesk.Defaults(), func(ctx context.Context, cfg policydesk.Config, s *boot.Service) error {
		seed, err := boot.ReadSecret(cfg.Broker.SeedFile, s.Log)
		if err != nil {
			return err
		}
		conn, err := bus.Connect(ctx, bus.Config{URL: cfg.Broker.URL, Service: roles.PolicySpecialist, Seed: seed, Manifest: roles.Desk()},
			bus.Deps{Log: s.Log, Meter: s.Telemetry.Meter()})
		if err != nil {
			return fmt.Errorf("connect to the broker: %w", err)
		}
		defer conn.Close()
		s.Readiness.Add("broker", conn.Ready)
		return policydesk.Run(ctx, cfg, policydesk.Deps{Bus: conn, Log: s.Log})
	})
}
