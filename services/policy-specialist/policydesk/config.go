package policydesk

import (
	"errors"

	"github.com/amends-dev/amends/internal/boot"
)

// Config is the policy specialist's configuration.
type Config struct {
	boot.Common `yaml:",inline"`
	// Corpus is a directory with another policy corpus than the built-in one.
	Corpus string `yaml:"corpus"`
	// Workers is how many tasks run at once.
	Workers int `yaml:"workers"`
}

// Defaults gives the configuration a file is decoded over.
func Defaults() Config { return Config{Workers: 64} }

// Validate checks the specialist's own part as a whole.
func (c Config) Validate() error {
	if c.Workers < 1 || c.Workers > 1024 {
		return errors.New("workers: want 1 to 1024")
	}
	return nil
}
