package identity

import (
	"context"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"github.com/go-jose/go-jose/v4"
)

const (
	// maxDocument bounds a discovery document or key set, in bytes.
	maxDocument = 256 << 10
	// maxKeys bounds how many keys an issuer may publish.
	maxKeys = 64
	// minRSA is the least size of an RSA key, in bits.
	minRSA = 2048
)

// source is where an issuer's keys are.
type source struct {
	cfg    Config
	client *http.Client
}

func newSource(cfg Config, pool *x509.CertPool) *source {
	return &source{cfg: cfg, client: &http.Client{
		Transport: documents{&http.Transport{
			Proxy:               http.ProxyFromEnvironment,
			TLSClientConfig:     &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12},
			TLSHandshakeTimeout: fetchTimeout,
			ForceAttemptHTTP2:   true,
			MaxConnsPerHost:     2,
			IdleConnTimeout:     time.Minute,
		}},
		// A redirect could lead anywhere; documents refuses its status.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

// documents lets only answers pass that are of status 200, and bounds them.
type documents struct{ next http.RoundTripper }

func (d documents) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := d.next.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	if resp.StatusCode != http.StatusOK {
		_ = resp.Body.Close() // its text is of no use
		return nil, fmt.Errorf("answered with status %d", resp.StatusCode)
	}
	resp.Body = http.MaxBytesReader(nil, resp.Body, maxDocument)
	return resp, nil
}

// keys asks where the keys are and reads them.
func (s *source) keys(ctx context.Context) ([]jose.JSONWebKey, error) {
	where, err := s.place(ctx)
	if err != nil {
		return nil, fmt.Errorf("discover the keys: %w", err)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, where, nil)
	if err != nil {
		return nil, fmt.Errorf("read the keys: %w", err)
	}
	resp, err := s.client.Do(req)
	if err != nil {
		return nil, fmt.Errorf("read the keys: %w", err)
	}
	defer func() { _ = resp.Body.Close() }()
	data, err := io.ReadAll(resp.Body)
	if err != nil {
		return nil, fmt.Errorf("read the keys: %w", err)
	}
	return usable(data)
}

func (s *source) place(ctx context.Context) (string, error) {
	if s.cfg.JWKSURL != "" {
		return s.cfg.JWKSURL, nil
	}
	provider, err := oidc.NewProvider(oidc.ClientContext(ctx, s.client), s.cfg.Issuer)
	if err != nil {
		return "", err
	}
	var document struct {
		JWKSURL string `json:"jwks_uri"`
	}
	if err := provider.Claims(&document); err != nil {
		return "", err
	}
	if err := checkURL(document.JWKSURL); err != nil {
		return "", fmt.Errorf("jwks_uri: %w", err)
	}
	if strings.HasPrefix(s.cfg.Issuer, "https:") && !strings.HasPrefix(document.JWKSURL, "https:") {
		return "", errors.New("jwks_uri: want https, as the issuer's")
	}
	return document.JWKSURL, nil
}

// usable gives the keys of a set that may verify signatures. Others are passed
// over: sets hold keys for other purposes, and of kinds yet to come.
func usable(set []byte) ([]jose.JSONWebKey, error) {
	var listed struct {
		Keys []json.RawMessage `json:"keys"`
	}
	if err := json.Unmarshal(set, &listed); err != nil {
		return nil, fmt.Errorf("decode the keys: %w", err)
	}
	if len(listed.Keys) > maxKeys {
		return nil, fmt.Errorf("%d keys, more than %d", len(listed.Keys), maxKeys)
	}
	var out []jose.JSONWebKey
	for _, data := range listed.Keys {
		var k jose.JSONWebKey
		if json.Unmarshal(data, &k) != nil || k.Use != "" && k.Use != "sig" {
			continue
		}
		switch public := k.Key.(type) {
		case *rsa.PublicKey:
			if public.N.BitLen() < minRSA {
				continue
			}
		case *ecdsa.PublicKey, ed25519.PublicKey:
		default: // symmetric, or private: published, so no secret any more
			continue
		}
		out = append(out, k)
	}
	if len(out) == 0 {
		return nil, errors.New("no key that may verify a signature")
	}
	return out, nil
}
