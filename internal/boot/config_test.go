package boot_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/amends-dev/amends/internal/boot"
)

type config struct {
	boot.Common `yaml:",inline"`
	Workers     int           `yaml:"workers"`
	Lease       time.Duration `yaml:"lease"`
	Tenants     []string      `yaml:"tenants"`
	Limits      struct {
		PerHour uint32 `yaml:"per_hour"`
		Strict  bool
	} `yaml:"limits"`
}

func (c *config) Validate() error {
	var out []error
	if c.Workers < 1 || c.Workers > 256 {
		out = append(out, errors.New("workers: want 1 to 256"))
	}
	if c.Lease < time.Second {
		out = append(out, errors.New("lease: want at least 1s"))
	}
	return errors.Join(out...)
}

const valid = `
broker: {url: "nats://127.0.0.1:4222", seed_file: /run/secrets/broker-composer}
admin: {listen: "127.0.0.1:0"}
`

func defaults() config { return config{Workers: 8, Lease: 15 * time.Second} }

func file(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "composer.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestLoadDecodesOverTheDefaults(t *testing.T) {
	t.Parallel()
	cfg := defaults()
	unused, err := boot.Load(file(t, valid+"lease: 1m30s\nlimits: {per_hour: 5}\n"), nil, &cfg)
	if err != nil || len(unused) > 0 {
		t.Fatal(unused, err)
	}
	if cfg.Workers != 8 || cfg.Lease != 90*time.Second || cfg.Limits.PerHour != 5 ||
		cfg.Log.Level != "info" || cfg.ShutdownTimeout != 20*time.Second || cfg.Broker.SeedFile != "/run/secrets/broker-composer" {
		t.Errorf("%+v", cfg)
	}
}

func TestEnvironmentReplacesValuesByTheirPath(t *testing.T) {
	t.Parallel()
	cfg := defaults()
	unused, err := boot.Load(file(t, valid), []string{
		"AMENDS_BROKER_URL=tls://one:4222,tls://two:4222", "AMENDS_BROKER_SEED_FILE=/elsewhere", "AMENDS_WORKERS=3",
		"AMENDS_LEASE=2s", "AMENDS_TENANTS=[acme-in, acme-de]", "AMENDS_LIMITS_PER_HOUR=7", "AMENDS_LIMITS_STRICT=true",
		"AMENDS_BROKER_ULR=nats://typo", "HOME=/root", "AMENDS_SHUTDOWN_TIMEOUT=1s",
	}, &cfg)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(unused, []string{"AMENDS_BROKER_ULR"}) {
		t.Errorf("unused %v", unused)
	}
	if cfg.Broker.URL != "tls://one:4222,tls://two:4222" || cfg.Broker.SeedFile != "/elsewhere" || cfg.Workers != 3 ||
		cfg.Lease != 2*time.Second || !slices.Equal(cfg.Tenants, []string{"acme-in", "acme-de"}) ||
		cfg.Limits.PerHour != 7 || !cfg.Limits.Strict || cfg.ShutdownTimeout != time.Second {
		t.Errorf("%+v", cfg)
	}
}

func TestLoadListsEveryProblemAtOnce(t *testing.T) {
	t.Parallel()
	cfg := defaults()
	_, err := boot.Load(file(t, `
broker: {url: "nats://user:hunter2@host:4222", seedfile: x}
admin: {listen: nowhere}
log: {level: loud}
shutdown_timeout: -1s
workers: 0
lease: 30
surprise: 1
`), []string{"AMENDS_LIMITS_PER_HOUR=-1", "AMENDS_LIMITS_STRICT="}, &cfg)
	if !errors.Is(err, boot.ErrConfig) {
		t.Fatal(err)
	}
	for _, want := range []string{
		"broker.url: holds a credential", "field seedfile not found", "broker.seed_file: missing", "admin.listen", "log.level",
		"shutdown_timeout", "workers: want 1 to 256", "`30` into time.Duration", "field surprise not found",
		"AMENDS_LIMITS_PER_HOUR: ", "AMENDS_LIMITS_STRICT: empty",
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("problem not listed: %s", want)
		}
	}
	if strings.Contains(err.Error(), "hunter2") {
		t.Error("the error quotes a credential")
	}
	if t.Failed() {
		t.Log(err)
	}
}

func TestLoadRefuses(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{
		"empty file":      "",
		"repeated key":    valid + "workers: 1\nworkers: 2\n",
		"two documents":   valid + "---\nworkers: 1\n",
		"not YAML":        "broker: [",
		"not a mapping":   "- 1",
		"too large":       "# " + strings.Repeat("x", 1<<20) + valid,
		"scheme of a URL": "broker: {url: 'http://h:1', seed_file: x}\nadmin: {listen: ':1'}",
	} {
		cfg := defaults()
		if _, err := boot.Load(file(t, text), nil, &cfg); !errors.Is(err, boot.ErrConfig) {
			t.Errorf("%s: %v", name, err)
		}
	}
	cfg := defaults()
	if _, err := boot.Load(filepath.Join(t.TempDir(), "none.yaml"), nil, &cfg); !errors.Is(err, boot.ErrConfig) {
		t.Errorf("no file: %v", err)
	}
}

func TestTwoKeysWithOneVariableAreFound(t *testing.T) {
	t.Parallel()
	cfg := struct {
		boot.Common `yaml:",inline"`
		Flat        string `yaml:"broker_url"`
	}{}
	if _, err := boot.Load(file(t, valid), nil, &cfg); err == nil || !strings.Contains(err.Error(), "AMENDS_BROKER_URL stands for two keys") {
		t.Error(err)
	}
}
