package verifier

import (
	"errors"
	"fmt"
	"time"

	"github.com/amends-dev/amends/internal/boot"
	"github.com/amends-dev/amends/internal/payments"
)

// Config is the verifier's configuration.
type Config struct {
	boot.Common `yaml:",inline"`
	Payments    Payments `yaml:"payments"`
	// Workers is how many tasks run at once.
	Workers int `yaml:"workers"`
}

// Payments says where the provider is and with which key it is read.
type Payments struct {
	URL string `yaml:"url"`
	// KeyFile holds the verifier's own read-only API key.
	KeyFile string `yaml:"key_file"`
	// Timeout bounds one look-up.
	Timeout time.Duration `yaml:"timeout"`
}

const maxTimeout = 10 * time.Second

// Defaults gives the configuration a file is decoded over.
func Defaults() Config {
	return Config{Payments: Payments{Timeout: 5 * time.Second}, Workers: 64}
}

// Validate checks the verifier's own part as a whole.
func (c Config) Validate() error {
	var problems []error
	if _, err := payments.BaseURL(c.Payments.URL); err != nil {
		problems = append(problems, fmt.Errorf("payments.url: %w", err))
	}
	if c.Payments.KeyFile == "" {
		problems = append(problems, errors.New("payments.key_file: missing"))
	}
	if c.Payments.Timeout <= 0 || c.Payments.Timeout > maxTimeout {
		problems = append(problems, fmt.Errorf("payments.timeout: want more than 0s and at most %s", maxTimeout))
	}
	if c.Workers < 1 || c.Workers > 1024 {
		problems = append(problems, errors.New("workers: want 1 to 1024"))
	}
	return errors.Join(problems...)
}
