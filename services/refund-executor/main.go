// Command refund-executor is the one service that moves money.
package main

import (
	"context"

	"github.com/amends-dev/amends/internal/boot"
	"github.com/amends-dev/amends/internal/roles"
	"github.com/amends-dev/amends/services/refund-executor/executor"
)

func main() {
	boot.Main(roles.RefundExecutor, executor.Defaults(), func(ctx context.Context, cfg executor.Config, s *boot.Service) error {
		conn, err := s.Connect(ctx, cfg.Common)
		if err != nil {
			return err
		}
		defer conn.Close()
		return executor.Run(ctx, cfg, executor.Deps{Bus: conn, Log: s.Log, Meter: s.Telemetry.Meter()})
	})
}
