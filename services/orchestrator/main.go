// Command orchestrator owns the case state machine: it turns posts, results,
// decisions and timers into case versions, and sends what they want.
package main

import (
	"context"

	"github.com/amends-dev/amends/internal/boot"
	"github.com/amends-dev/amends/internal/roles"
	"github.com/amends-dev/amends/services/orchestrator/orchestrator"
)

func main() {
	boot.Main(roles.Orchestrator, orchestrator.Defaults(), func(ctx context.Context, cfg orchestrator.Config, s *boot.Service) error {
		conn, err := s.Connect(ctx, cfg.Common)
		if err != nil {
			return err
		}
		defer conn.Close()
		return orchestrator.Run(ctx, cfg, orchestrator.Deps{Bus: conn, Log: s.Log, Meter: s.Telemetry.Meter()})
	})
}
