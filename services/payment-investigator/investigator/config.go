package investigator

import (
	"errors"

	"github.com/amends-dev/amends/internal/boot"
	"github.com/amends-dev/amends/internal/payments"
)

// Config is the investigator's configuration.
type Config struct {
	boot.Common `yaml:",inline"`
	Payments    payments.Access `yaml:"payments"`
	// Workers is how many tasks run at once.
	Workers int `yaml:"workers"`
}

// Defaults gives the configuration a file is decoded over.
func Defaults() Config {
	return Config{Payments: payments.DefaultAccess(), Workers: 64}
}

// Validate checks the investigator's own part as a whole.
func (c Config) Validate() error {
	problems := []error{c.Payments.Validate()}
	if c.Workers < 1 || c.Workers > 1024 {
		problems = append(problems, errors.New("workers: want 1 to 1024"))
	}
	return errors.Join(problems...)
}
