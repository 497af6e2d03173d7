// Command verifier checks every claim of a draft against records.
package main

import (
	"context"

	"github.com/amends-dev/amends/internal/boot"
	"github.com/amends-dev/amends/internal/roles"
	"github.com/amends-dev/amends/services/verifier/verifier"
)

func main() {
	boot.Main(roles.Verifier, verifier.Defaults(), func(ctx context.Context, cfg verifier.Config, s *boot.Service) error {
		conn, err := s.Connect(ctx, cfg.Common)
		if err != nil {
			return err
		}
		defer conn.Close()
		return verifier.Run(ctx, cfg, verifier.Deps{Bus: conn, Log: s.Log})
	})
}
