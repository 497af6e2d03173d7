package identity_test

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"encoding/base64"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/amends-dev/amends/internal/identity"
)

var begin = time.Date(2026, 3, 12, 10, 14, 0, 0, time.UTC)

// Keys are made once: an RSA key takes its time.
var (
	rsaKey   = sync.OnceValue(func() *rsa.PrivateKey { return must(rsa.GenerateKey(rand.Reader, 2048)) })
	nextKey  = sync.OnceValue(func() *rsa.PrivateKey { return must(rsa.GenerateKey(rand.Reader, 2048)) })
	smallKey = sync.OnceValue(func() *rsa.PrivateKey { return must(rsa.GenerateKey(rand.Reader, 1024)) })
	ecKey    = sync.OnceValue(func() *ecdsa.PrivateKey { return must(ecdsa.GenerateKey(elliptic.P256(), rand.Reader)) })
	edKey    = sync.OnceValue(func() ed25519.PrivateKey { return ed25519.NewKeyFromSeed(make([]byte, ed25519.SeedSize)) })
)

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// issuer is an OpenID provider as far as verifiers see it.
type issuer struct {
	url string

	mu        sync.Mutex
	keys      []jose.JSONWebKey
	raw       string // in the place of the keys
	discovery string // in the place of the discovery document
	status    int
	asked     int
	hold      chan struct{}
	now       time.Time
}

func newIssuer(t *testing.T, keys ...jose.JSONWebKey) *issuer {
	t.Helper()
	i := &issuer{keys: keys, status: http.StatusOK, now: begin}
	srv := httptest.NewServer(i)
	t.Cleanup(srv.Close)
	i.url = srv.URL
	return i
}

func (i *issuer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	i.mu.Lock()
	hold := i.hold
	i.mu.Unlock()
	if hold != nil {
		<-hold
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	switch {
	case i.status != http.StatusOK:
		w.Header().Set("Location", i.url+"/keys")
		w.WriteHeader(i.status)
	case r.URL.Path == "/.well-known/openid-configuration" && i.discovery != "":
		_, _ = w.Write([]byte(i.discovery))
	case r.URL.Path == "/.well-known/openid-configuration":
		_ = json.NewEncoder(w).Encode(map[string]any{"issuer": i.url, "jwks_uri": i.url + "/keys"})
	case r.URL.Path == "/keys":
		i.asked++
		if i.raw != "" {
			_, _ = w.Write([]byte(i.raw))
			return
		}
		_ = json.NewEncoder(w).Encode(jose.JSONWebKeySet{Keys: i.keys})
	default:
		w.WriteHeader(http.StatusNotFound)
	}
}

func (i *issuer) set(change func(i *issuer)) {
	i.mu.Lock()
	defer i.mu.Unlock()
	change(i)
}

func (i *issuer) questions() int {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.asked
}

func (i *issuer) pass(d time.Duration) { i.set(func(i *issuer) { i.now = i.now.Add(d) }) }

func (i *issuer) clock() time.Time {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.now
}

func (i *issuer) config() identity.Config {
	return identity.Config{Issuer: i.url, Audiences: []string{"desk", "desk-app"}}
}

func (i *issuer) verifier(t *testing.T, change ...func(*identity.Config)) *identity.Verifier {
	t.Helper()
	cfg := i.config()
	for _, c := range change {
		c(&cfg)
	}
	v, err := identity.New(cfg, identity.Deps{Log: slog.New(slog.DiscardHandler), Now: i.clock})
	if err != nil {
		t.Fatal(err)
	}
	return v
}

type claims map[string]any

// claims of a good token, with changes; nil takes one away.
func (i *issuer) claims(change claims) claims {
	c := claims{"iss": i.url, "aud": "desk", "sub": "cust_5519", "iat": begin.Unix(), "exp": begin.Add(time.Hour).Unix()}
	for name, value := range change {
		if c[name] = value; value == nil {
			delete(c, name)
		}
	}
	return c
}

func public(kid string, key crypto.Signer) jose.JSONWebKey {
	return jose.JSONWebKey{KeyID: kid, Use: "sig", Key: key.Public()}
}

// sign makes a token; header holds names and values in turn.
func sign(t *testing.T, alg jose.SignatureAlgorithm, key any, kid string, c claims, header ...any) string {
	t.Helper()
	o := new(jose.SignerOptions)
	if kid != "" {
		o.WithHeader("kid", kid)
	}
	for k := 0; k+1 < len(header); k += 2 {
		o.WithHeader(jose.HeaderKey(header[k].(string)), header[k+1])
	}
	s, err := jose.NewSigner(jose.SigningKey{Algorithm: alg, Key: key}, o)
	if err != nil {
		t.Fatal(err)
	}
	jws, err := s.Sign(must(json.Marshal(c)))
	if err != nil {
		t.Fatal(err)
	}
	return must(jws.CompactSerialize())
}

// token is a token of the first key.
func (i *issuer) token(t *testing.T, change claims, header ...any) string {
	t.Helper()
	return sign(t, jose.RS256, rsaKey(), "one", i.claims(change), header...)
}

func encode(v any) string { return base64.RawURLEncoding.EncodeToString(must(json.Marshal(v))) }

// replaced gives a token with another first part.
func replaced(token string, head any) string {
	_, rest, _ := strings.Cut(token, ".")
	return encode(head) + "." + rest
}

func reasonOf(t *testing.T, v *identity.Verifier, token string) string {
	t.Helper()
	_, err := v.Verify(context.WithoutCancel(t.Context()), token)
	if err == nil {
		return ""
	}
	return strings.TrimPrefix(err.Error(), "token refused: ")
}
