// Command payment-investigator finds out what happened to the money of an order.
package main

import (
	"context"

	"github.com/amends-dev/amends/internal/boot"
	"github.com/amends-dev/amends/internal/roles"
	"github.com/amends-dev/amends/services/payment-investigator/investigator"
)

func main() {
	boot.Main(roles.PaymentInvestigator, investigator.Defaults(), func(ctx context.Context, cfg investigator.Config, s *boot.Service) error {
		conn, err := s.Connect(ctx, cfg.Common)
		if err != nil {
			return err
		}
		defer conn.Close()
		return investigator.Run(ctx, cfg, investigator.Deps{Bus: conn, Log: s.Log})
	})
}
