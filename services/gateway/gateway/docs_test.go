package gateway

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"testing"
	"time"

	"github.com/amends-dev/amends/internal/boot"
)

var yamlBlock = regexp.MustCompile("(?s)```yaml\n(.*?)```")

// The configurations of the identity page are configurations.
func TestIdentityPageIsRight(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile(filepath.Join("..", "..", "..", "docs", "identity.md"))
	if err != nil {
		t.Fatal(err)
	}
	text := bytes.NewBufferString("broker: {url: \"nats://127.0.0.1:4222\", seed_file: seed}\nadmin: {listen: \"127.0.0.1:9100\"}\nredis: {addr: \"127.0.0.1:6379\"}\n")
	blocks := yamlBlock.FindAllSubmatch(page, -1)
	for _, b := range blocks {
		text.Write(b[1])
	}
	file := filepath.Join(t.TempDir(), "gateway.yaml")
	if err := os.WriteFile(file, text.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	cfg := Defaults()
	if _, err := boot.Load(file, nil, &cfg); err != nil {
		t.Fatal(err)
	}
	if len(blocks) != 2 || len(cfg.Channels) != 4 || !cfg.TLS.On() || cfg.TLS.ClientCAFile == "" {
		t.Fatalf("%d blocks give %d channels and %+v", len(blocks), len(cfg.Channels), cfg.TLS)
	}
	app := cfg.Channels[3].OIDC
	if cfg.Channels[0].KeySHA256 != hashOf("hello") || app.TenantClaim == "" || len(app.Tenants) != 2 || app.Leeway != 10*time.Second || app.Keys.MaxStale != 12*time.Hour {
		t.Errorf("%+v", app)
	}
}
