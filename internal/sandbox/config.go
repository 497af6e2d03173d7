package sandbox

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/amends-dev/amends/internal/ident"
)

// Scope is what an API key may do.
type Scope string

// The scopes. RefundWrite may also read an order whole and its refunds.
const (
	ScopeVerifyOwner Scope = "verify_owner"
	ScopeRead        Scope = "read"
	ScopeRefundWrite Scope = "refund_write"
	ScopeAdmin       Scope = "admin"
)

// Key is one API key; the token itself is never configured or stored.
type Key struct {
	// Name identifies the key's holder; idempotency keys are scoped by it.
	Name  string
	Scope Scope
	// SHA256 of the token, lower-case hex; see HashKey.
	SHA256 string
}

// HashKey gives the hash under which a token is configured.
func HashKey(token string) string {
	sum := sha256.Sum256([]byte(token))
	return hex.EncodeToString(sum[:])
}

// Config is what a sandbox needs.
type Config struct {
	// Listen is host:port; by default a free port on 127.0.0.1.
	Listen string
	// File is the journal; its directory must exist.
	File string
	// Sync puts every entry on the disk before it is answered.
	Sync bool
	Keys []Key
	// Events say where webhooks go; Server.SendEvents says so later.
	Events Events
	// FirstRefund numbers the first refund id, rf_<n>; by default 5521.
	FirstRefund int64
	// KeyWindow is how long an idempotency key is known; by default 24 h.
	KeyWindow time.Duration
	// NoKeys: idempotency keys are taken and not kept.
	NoKeys bool
	// Faults go wrong from the start; Server.SetFaults changes them.
	Faults Faults
	// Now is the provider's clock.
	Now func() time.Time
	// Log may be nil.
	Log *slog.Logger
}

func (c Config) withDefaults() Config {
	if c.Listen == "" {
		c.Listen = "127.0.0.1:0"
	}
	if c.FirstRefund == 0 {
		c.FirstRefund = 5521
	}
	if c.KeyWindow == 0 {
		c.KeyWindow = 24 * time.Hour
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	return c
}

func (c Config) validate() error {
	switch {
	case c.File == "":
		return errors.New("no journal file")
	case c.Now == nil:
		return errors.New("no clock")
	case c.FirstRefund < 1:
		return fmt.Errorf("first refund number %d is below 1", c.FirstRefund)
	case c.KeyWindow < 0:
		return fmt.Errorf("key window %s is negative", c.KeyWindow)
	}
	return nil
}

// apiKey is a checked Key.
type apiKey struct {
	name  string
	scope Scope
	sum   [sha256.Size]byte
}

func parseKeys(keys []Key) ([]apiKey, error) {
	out := make([]apiKey, 0, len(keys))
	names := make(map[string]bool, len(keys))
	for _, k := range keys {
		if err := ident.Token(k.Name); err != nil {
			return nil, fmt.Errorf("API key name: %w", err)
		}
		if names[k.Name] {
			return nil, fmt.Errorf("API key %s is given twice", k.Name)
		}
		names[k.Name] = true
		switch k.Scope {
		case ScopeVerifyOwner, ScopeRead, ScopeRefundWrite, ScopeAdmin:
		default:
			return nil, fmt.Errorf("API key %s: unknown scope %q", k.Name, k.Scope)
		}
		sum, err := hex.DecodeString(k.SHA256)
		if err != nil || len(sum) != sha256.Size {
			return nil, fmt.Errorf("API key %s: its hash is not a SHA-256 in hex", k.Name)
		}
		out = append(out, apiKey{name: k.Name, scope: k.Scope, sum: [sha256.Size]byte(sum)})
	}
	return out, nil
}
