package gateway

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/amends-dev/amends/internal/boot"
	"github.com/amends-dev/amends/internal/deskapi"
	"github.com/amends-dev/amends/internal/deskclient"
	"github.com/amends-dev/amends/internal/edge/edgetest"
)

// Over TLS a case is posted and followed as without, by the client on HTTP/1.1
// and by browsers on HTTP/2.
func TestFollowOverTLS(t *testing.T) {
	t.Parallel()
	d, a := newDesk(t), edgetest.New(t)
	files, _ := a.Serving(t, t.TempDir())
	addr := strings.TrimPrefix(d.gatewayWith(t, func(c *Config) { c.TLS = files }), "http://")
	d.publish(t, view("req-8472", 1, "RECEIVED"))

	stream := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: a.Pool}, ForceAttemptHTTP2: true}}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://"+addr+deskapi.EventsPath("req-8472"), nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+webKey)
	resp, err := stream.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK || resp.ProtoMajor != 2 {
		t.Fatalf("%s over %s", resp.Status, resp.Proto)
	}

	client, err := deskclient.NewGateway(deskclient.Config{URL: "https://" + addr, Token: webKey, CAFile: a.File})
	if err != nil {
		t.Fatal(err)
	}
	var seen []uint64
	err = client.Follow(t.Context(), "req-8472", "", 0, func(v deskapi.View) error {
		seen = append(seen, v.Version)
		if v.Version == 1 {
			d.publish(t, view("req-8472", 2, "VERIFIED_CLOSED"))
		}
		return nil
	})
	if err != nil || !slices.Equal(seen, []uint64{1, 2}) {
		t.Errorf("versions %v, %v", seen, err)
	}
	var ids []string
	for lines := bufio.NewScanner(resp.Body); lines.Scan(); {
		if id, ok := strings.CutPrefix(lines.Text(), "id: "); ok {
			ids = append(ids, id)
		}
	}
	if !slices.Equal(ids, []string{"1", "2"}) {
		t.Errorf("over HTTP/2: versions %v", ids)
	}

	distrusting, err := deskclient.NewGateway(deskclient.Config{URL: "https://" + addr, Token: webKey})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := distrusting.View(t.Context(), "req-8472", ""); err == nil {
		t.Error("a client trusts an authority it was not told of")
	}
}

func TestBadCertificateRefusesToStart(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	cfg := testConfig(d.redis.Addr())
	cfg.TLS.CertFile = "cert.pem"
	if err := cfg.Validate(); err == nil || !strings.Contains(err.Error(), "tls: want both") {
		t.Errorf("%v", err)
	}
	cfg.TLS.KeyFile = "missing.pem"
	err := Run(context.WithoutCancel(t.Context()), cfg, Deps{Bus: d.broker.Connect("gateway")})
	if !errors.Is(err, boot.ErrConfig) {
		t.Errorf("%v", err)
	}
}
