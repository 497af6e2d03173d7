// Command gateway is the HTTP edge for customer channels.
package main

import (
	"context"

	"github.com/amends-dev/amends/internal/boot"
	"github.com/amends-dev/amends/internal/roles"
	"github.com/amends-dev/amends/services/gateway/gateway"
)

func main() {
	boot.Main(roles.Gateway, gateway.Defaults(), func(ctx context.Context, cfg gateway.Config, s *boot.Service) error {
		conn, err := s.Connect(ctx, cfg.Common)
		if err != nil {
			return err
		}
		defer conn.Close()
		return gateway.Run(ctx, cfg, gateway.Deps{Bus: conn, Log: s.Log, Meter: s.Telemetry.Meter(), Tracer: s.Telemetry.Tracer()})
	})
}
