package allinone

import (
	"fmt"
	"os"
	"path/filepath"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/amends-dev/amends/internal/boot"
	"github.com/amends-dev/amends/internal/broker"
	"github.com/amends-dev/amends/internal/policy"
	"github.com/amends-dev/amends/internal/roles"
)

// shutdownTimeout bounds a service's clean end.
const shutdownTimeout = 20 * time.Second

// WriteConfigs writes a configuration file for each service into a directory,
// with its own broker credential and an admin listener on a free port, and
// gives the files. The desk's Options say where gateway and console listen.
func (d *Desk) WriteConfigs(dir string, admin func(roles.Service) string) (map[roles.Service]string, error) {
	corpus, err := policy.Embedded()
	if err != nil {
		return nil, err
	}
	c := d.configure(corpus.Version())
	files := map[roles.Service]string{}
	for service, cfg := range map[roles.Service]struct {
		common *boot.Common
		all    any
	}{
		roles.PaymentInvestigator: {&c.investigator.Common, &c.investigator}, roles.PolicySpecialist: {&c.policydesk.Common, &c.policydesk},
		roles.Composer: {&c.composer.Common, &c.composer}, roles.Verifier: {&c.verifier.Common, &c.verifier},
		roles.RefundExecutor: {&c.executor.Common, &c.executor}, roles.Console: {&c.console.Common, &c.console},
		roles.Gateway: {&c.gateway.Common, &c.gateway}, roles.Orchestrator: {&c.orchestrator.Common, &c.orchestrator},
	} {
		cfg.common.Broker = boot.Broker{URL: d.broker.URL(), SeedFile: broker.SeedFile(filepath.Join(d.opts.Dir, "seeds"), service)}
		cfg.common.Admin.Listen = admin(service)
		cfg.common.Log.Level, cfg.common.ShutdownTimeout = "info", shutdownTimeout
		text, err := yaml.Marshal(cfg.all)
		if err != nil {
			return nil, fmt.Errorf("configuration of %s: %w", service, err)
		}
		files[service] = filepath.Join(dir, string(service)+".yaml")
		if err := os.WriteFile(files[service], text, 0o600); err != nil {
			return nil, fmt.Errorf("configuration of %s: %w", service, err)
		}
	}
	return files, nil
}
