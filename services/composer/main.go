// Command composer writes replies from the facts of a case.
package main

import (
	"context"

	"github.com/amends-dev/amends/internal/boot"
	"github.com/amends-dev/amends/internal/roles"
	"github.com/amends-dev/amends/services/composer/composer"
)

func main() {
	boot.Main(roles.Composer, composer.Defaults(), func(ctx context.Context, cfg composer.Config, s *boot.Service) error {
		conn, err := s.Connect(ctx, cfg.Common)
		if err != nil {
			return err
		}
		defer conn.Close()
		return composer.Run(ctx, cfg, composer.Deps{Bus: conn, Log: s.Log})
	})
}
