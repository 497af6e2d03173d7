package boot

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/url"
	"os"
	"reflect"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
)

// ErrConfig marks everything that is wrong with the configuration.
var ErrConfig = errors.New("bad configuration")

// maxConfig bounds a configuration file, in bytes.
const maxConfig = 1 << 20

const defaultShutdownTimeout = 20 * time.Second

// Common is the part of the configuration that every service has. A service
// embeds it:
//
//	type Config struct {
//		boot.Common `yaml:",inline"`
//		...
//	}
//
// A service's Config may have a method Validate() error for its own part;
// it joins all problems it finds.
type Common struct {
	Broker Broker `yaml:"broker"`
	Admin  Admin  `yaml:"admin"`
	Log    Log    `yaml:"log"`
	// ShutdownTimeout bounds a clean shutdown; default 20s.
	ShutdownTimeout time.Duration `yaml:"shutdown_timeout"`
}

// Broker says where the broker is and which credential to use.
type Broker struct {
	// URL of one server, or of several separated by commas.
	URL string `yaml:"url"`
	// SeedFile holds the service's NKEY user seed.
	SeedFile string `yaml:"seed_file"`
}

// Admin is the listener for probes and metrics.
type Admin struct {
	// Listen is host:port; port 0 takes a free one.
	Listen string `yaml:"listen"`
}

// Log is how much is logged.
type Log struct {
	// Level is debug, info, warn or error; default info.
	Level string `yaml:"level"`
}

// Configuration is satisfied by a pointer to a struct that embeds Common.
type Configuration interface{ common() *Common }

func (c *Common) common() *Common { return c }

func (c *Common) level() slog.Level {
	var l slog.Level
	if err := l.UnmarshalText([]byte(c.Log.Level)); err != nil {
		return slog.LevelInfo // refused by problems before it is used
	}
	return l
}

func (c *Common) problems() []error {
	var out []error
	if c.Broker.URL == "" {
		out = append(out, errors.New("broker.url: missing"))
	}
	for _, server := range strings.Split(c.Broker.URL, ",") {
		u, err := url.Parse(strings.TrimSpace(server))
		switch {
		case c.Broker.URL == "":
		case err != nil: // its text would quote the value
			out = append(out, errors.New("broker.url: not a URL"))
		case u.User != nil:
			out = append(out, errors.New("broker.url: holds a credential; the seed file is the only one"))
		case u.Scheme != "nats" && u.Scheme != "tls" || u.Host == "":
			out = append(out, errors.New("broker.url: want nats://host:port or tls://host:port"))
		}
	}
	if c.Broker.SeedFile == "" {
		out = append(out, errors.New("broker.seed_file: missing"))
	}
	if _, _, err := net.SplitHostPort(c.Admin.Listen); err != nil {
		out = append(out, errors.New("admin.listen: want host:port"))
	}
	var l slog.Level
	if err := l.UnmarshalText([]byte(c.Log.Level)); err != nil {
		out = append(out, errors.New("log.level: want debug, info, warn or error"))
	}
	if c.ShutdownTimeout <= 0 {
		out = append(out, errors.New("shutdown_timeout: want more than 0s"))
	}
	return out
}

// ConfigError lists everything that is wrong with a configuration.
type ConfigError struct {
	File     string
	Problems []error
}

func (e *ConfigError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "configuration %s:", e.File)
	for _, p := range e.Problems {
		b.WriteString("\n  ")
		b.WriteString(strings.ReplaceAll(p.Error(), "\n", "\n  "))
	}
	return b.String()
}

// Is makes a ConfigError an ErrConfig.
func (e *ConfigError) Is(target error) bool { return target == ErrConfig }

// Load decodes file over what cfg already holds, applies the overrides found
// in environ (KEY=value) and checks the result. It names the AMENDS_ variables
// that match no key: perhaps a slip, perhaps somebody else's. The error is
// a *ConfigError.
func Load(file string, environ []string, cfg Configuration) (unused []string, err error) {
	c := cfg.common()
	if c.Log.Level == "" {
		c.Log.Level = "info"
	}
	if c.ShutdownTimeout == 0 {
		c.ShutdownTimeout = defaultShutdownTimeout
	}
	text, err := readConfig(file)
	if err != nil {
		return nil, &ConfigError{File: file, Problems: []error{err}}
	}
	var problems []error
	if err := decode(text, cfg); err != nil {
		problems = append(problems, err)
	}
	unused, overrides := override(reflect.ValueOf(cfg).Elem(), environ)
	problems = append(problems, overrides...)
	problems = append(problems, c.problems()...)
	if v, ok := cfg.(interface{ Validate() error }); ok {
		if err := v.Validate(); err != nil {
			problems = append(problems, err)
		}
	}
	if len(problems) > 0 {
		return unused, &ConfigError{File: file, Problems: problems}
	}
	return unused, nil
}

func readConfig(file string) ([]byte, error) {
	f, err := os.Open(file) //nolint:gosec // the operator names the file
	if err != nil {
		return nil, fmt.Errorf("read: %w", err)
	}
	defer func() { _ = f.Close() }() // nothing was written
	text, err := io.ReadAll(io.LimitReader(f, maxConfig+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("read: %w", err)
	case len(text) > maxConfig:
		return nil, fmt.Errorf("read: more than %d bytes", maxConfig)
	}
	return text, nil
}

// decode reads exactly one YAML document, or none, without unknown keys.
func decode(text []byte, into any) error {
	d := yaml.NewDecoder(bytes.NewReader(text))
	d.KnownFields(true)
	err := d.Decode(into)
	var types *yaml.TypeError
	switch {
	case errors.Is(err, io.EOF):
		return nil
	case errors.As(err, &types):
		return errors.New(strings.Join(types.Errors, "\n"))
	case err != nil:
		return err
	}
	if err := d.Decode(new(yaml.Node)); !errors.Is(err, io.EOF) {
		return errors.New("more than one document")
	}
	return nil
}
