package readmodel

import (
	"log/slog"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/amends-dev/amends/internal/boot"
)

// Prefix begins the keys of the desk's model. Another form of entry takes another
// one, so that old and new gateways do not read each other's.
const Prefix = "amends-cases-2"

// Access says where Redis is.
type Access struct {
	// Addr is host:port.
	Addr         string `yaml:"addr"`
	PasswordFile string `yaml:"password_file"`
}

// Open gives a client that waits no longer than timeout for anything; it
// connects when it is first used.
func (a Access) Open(log *slog.Logger, name string, timeout time.Duration) (*redis.Client, error) {
	var password string
	if a.PasswordFile != "" {
		secret, err := boot.ReadSecret(a.PasswordFile, log)
		if err != nil {
			return nil, err
		}
		password = string(secret)
	}
	return redis.NewClient(&redis.Options{
		Addr: a.Addr, Password: password, ClientName: name,
		DialTimeout: timeout, ReadTimeout: timeout, WriteTimeout: timeout, PoolTimeout: timeout,
		ContextTimeoutEnabled: true, MaxRetries: -1, DialerRetries: 1, PoolSize: 8,
	}), nil
}
