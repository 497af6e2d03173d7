package payments

import (
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/amends-dev/amends/internal/boot"
)

// Access is the part of a service's configuration that says where the provider
// is and with which key of its own the service reads it.
type Access struct {
	URL     string `yaml:"url"`
	KeyFile string `yaml:"key_file"`
	// Timeout bounds one look-up.
	Timeout time.Duration `yaml:"timeout"`
}

const maxTimeout = 10 * time.Second

// DefaultAccess gives the defaults a file is decoded over.
func DefaultAccess() Access { return Access{Timeout: 5 * time.Second} }

// Validate names everything that is missing or out of range.
func (a Access) Validate() error {
	var problems []error
	if _, err := BaseURL(a.URL); err != nil {
		problems = append(problems, fmt.Errorf("payments.url: %w", err))
	}
	if a.KeyFile == "" {
		problems = append(problems, errors.New("payments.key_file: missing"))
	}
	if a.Timeout <= 0 || a.Timeout > maxTimeout {
		problems = append(problems, fmt.Errorf("payments.timeout: want more than 0s and at most %s", maxTimeout))
	}
	return errors.Join(problems...)
}

// Open reads the key and gives a client; the caller closes it.
func (a Access) Open(log *slog.Logger) (*Client, error) {
	key, err := boot.ReadSecret(a.KeyFile, log)
	if err != nil {
		return nil, err
	}
	c, err := New(Config{URL: a.URL, Key: string(key), Timeout: a.Timeout})
	if err != nil {
		return nil, fmt.Errorf("%w: %w", boot.ErrConfig, err)
	}
	return c, nil
}
