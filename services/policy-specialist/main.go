// Command policy-specialist finds the policy that applies.
package main

import (
	"context"

	"github.com/amends-dev/amends/internal/boot"
	"github.com/amends-dev/amends/internal/roles"
	"github.com/amends-dev/amends/services/policy-specialist/policydesk"
)

func main() {
	boot.Main(roles.PolicySpecialist, policydesk.Defaults(), func(ctx context.Context, cfg policydesk.Config, s *boot.Service) error {
		conn, err := s.Connect(ctx, cfg.Common)
		if err != nil {
			return err
		}
		defer conn.Close()
		return policydesk.Run(ctx, cfg, policydesk.Deps{Bus: conn, Log: s.Log})
	})
}
