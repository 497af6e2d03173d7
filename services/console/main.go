// Command console is the staff edge: cases, actions and signed decisions.
package main

import (
	"context"

	"github.com/amends-dev/amends/internal/boot"
	"github.com/amends-dev/amends/internal/roles"
	"github.com/amends-dev/amends/services/console/console"
)

func main() {
	boot.Main(roles.Console, console.Defaults(), func(ctx context.Context, cfg console.Config, s *boot.Service) error {
		conn, err := s.Connect(ctx, cfg.Common)
		if err != nil {
			return err
		}
		defer conn.Close()
		return console.Run(ctx, cfg, console.Deps{Bus: conn, Log: s.Log, Meter: s.Telemetry.Meter()})
	})
}
