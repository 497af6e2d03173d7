package identity_test

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/amends-dev/amends/internal/identity"
)

const unavailable = "keys of the issuer not available"

func TestKeysRotate(t *testing.T) {
	t.Parallel()
	i := newIssuer(t, public("one", rsaKey()))
	v := i.verifier(t)
	old, next := i.token(t, nil), sign(t, jose.RS256, nextKey(), "two", i.claims(nil))
	check := func(when, token, want string, asked int) {
		t.Helper()
		if got := reasonOf(t, v, token); got != want || i.questions() != asked {
			t.Fatalf("%s: %q after %d questions, want %q after %d", when, got, i.questions(), want, asked)
		}
	}
	check("at first", old, "", 1)
	check("before it is published", next, "key_unknown", 1)
	i.set(func(i *issuer) { i.keys = append(i.keys, public("two", nextKey())) })
	i.pass(29 * time.Second)
	check("within the interval", next, "key_unknown", 1)
	i.pass(time.Second)
	check("after the interval", next, "", 2)
	check("the old one while it is published", old, "", 2)
	i.set(func(i *issuer) { i.keys = i.keys[1:] })
	i.pass(10*time.Minute - time.Second)
	check("withdrawn, still held", old, "", 2)
	i.pass(time.Second)
	check("withdrawn and too old", old, "key_unknown", 3)
	check("the new one", next, "", 3)
}

// However many tokens name unknown keys, the issuer is asked once in an
// interval.
func TestUnknownKeysAskOnce(t *testing.T) {
	t.Parallel()
	i := newIssuer(t, public("one", rsaKey()))
	v := i.verifier(t)
	forged := sign(t, jose.RS256, nextKey(), "forged", i.claims(nil))
	for round := 1; round <= 3; round++ {
		var all sync.WaitGroup
		for range 50 {
			all.Go(func() {
				if got := reasonOf(t, v, forged); got != "key_unknown" {
					t.Errorf("%q", got)
				}
			})
		}
		all.Wait()
		if n := i.questions(); n != round {
			t.Fatalf("asked %d times in %d intervals", n, round)
		}
		i.pass(30 * time.Second)
	}
}

// While the issuer is away its keys go on working; what needs a new one cannot
// be judged.
func TestIssuerAway(t *testing.T) {
	t.Parallel()
	i := newIssuer(t, public("one", rsaKey()))
	v := i.verifier(t)
	i.set(func(i *issuer) { i.status = http.StatusBadGateway })
	token := sign(t, jose.RS256, rsaKey(), "one", i.claims(claims{"exp": begin.Add(48 * time.Hour).Unix()}))
	if got := reasonOf(t, v, token); got != unavailable {
		t.Fatalf("without any keys: %q", got)
	}
	i.set(func(i *issuer) { i.status = http.StatusOK })
	if got := reasonOf(t, v, token); got != unavailable {
		t.Fatalf("before the interval is over: %q", got)
	}
	i.pass(30 * time.Second)
	if got := reasonOf(t, v, token); got != "" {
		t.Fatalf("when it is back: %q", got)
	}
	i.set(func(i *issuer) { i.status = http.StatusBadGateway })
	i.pass(time.Hour)
	if got := reasonOf(t, v, token); got != "" {
		t.Errorf("on the last keys: %q", got)
	}
	if got := reasonOf(t, v, sign(t, jose.RS256, nextKey(), "two", i.claims(nil))); got != unavailable {
		t.Errorf("unknown key: %q", got)
	}
	if got := reasonOf(t, v, sign(t, jose.RS256, nextKey(), "one", i.claims(nil))); got != "signature" {
		t.Errorf("forged: %q", got)
	}
	i.pass(11 * time.Hour)
	if got := reasonOf(t, v, token); got != unavailable {
		t.Errorf("on keys of half a day ago: %q", got)
	}
	// A clock set back makes nobody wait for it to come round.
	i.set(func(i *issuer) { i.status, i.now = http.StatusOK, begin.Add(-time.Hour) })
	if got := reasonOf(t, v, sign(t, jose.RS256, rsaKey(), "one", i.claims(claims{"iat": begin.Add(-2 * time.Hour).Unix()}))); got != "" {
		t.Errorf("with the clock set back: %q", got)
	}
}

// A slow issuer holds a token up for a bounded time and not the others.
func TestSlowIssuer(t *testing.T) {
	t.Parallel()
	i := newIssuer(t, public("one", rsaKey()))
	v := i.verifier(t)
	if got := reasonOf(t, v, i.token(t, nil)); got != "" {
		t.Fatal(got)
	}
	hold := make(chan struct{})
	i.set(func(i *issuer) { i.hold = hold })
	i.pass(time.Minute)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		_, err := v.Verify(ctx, sign(t, jose.RS256, nextKey(), "two", i.claims(nil)))
		ended <- err
	}()
	if got := reasonOf(t, v, i.token(t, nil)); got != "" {
		t.Errorf("a known key waits for an unknown one: %q", got)
	}
	cancel()
	if err := <-ended; !errors.Is(err, identity.ErrUnavailable) {
		t.Errorf("given up with %v", err)
	}
	close(hold)
}

func TestWarmAsksUntilItIsAnswered(t *testing.T) {
	t.Parallel()
	i := newIssuer(t, public("one", rsaKey()))
	v := i.verifier(t, func(c *identity.Config) { c.Keys.Refresh = time.Second })
	i.set(func(i *issuer) { i.status = http.StatusInternalServerError })
	if got := reasonOf(t, v, i.token(t, nil)); got != unavailable {
		t.Fatal(got)
	}
	i.set(func(i *issuer) { i.status = http.StatusOK })
	v.Warm(t.Context())
	if got := reasonOf(t, v, i.token(t, nil)); got != "" || i.questions() != 1 {
		t.Errorf("%q after %d questions", got, i.questions())
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	i.set(func(i *issuer) { i.status = http.StatusInternalServerError })
	i.verifier(t).Warm(ctx) // returns
}

func TestWhatIssuersMayPublish(t *testing.T) {
	t.Parallel()
	small := public("one", smallKey())
	secret := jose.JSONWebKey{KeyID: "one", Key: []byte("0123456789abcdef0123456789abcdef")}
	private := jose.JSONWebKey{KeyID: "one", Key: rsaKey()}
	forEncryption := public("one", rsaKey())
	forEncryption.Use = "enc"
	otherAlgorithm := public("one", rsaKey())
	otherAlgorithm.Algorithm = "RS512"
	many := make([]jose.JSONWebKey, 65)
	for k := range many {
		many[k] = public("one", rsaKey())
	}
	for name, c := range map[string]struct {
		change func(i *issuer)
		want   string
	}{
		"others beside it":      {func(i *issuer) { i.keys = append([]jose.JSONWebKey{small, secret, forEncryption}, i.keys...) }, ""},
		"nothing":               {func(i *issuer) { i.keys = nil }, unavailable},
		"too small":             {func(i *issuer) { i.keys = []jose.JSONWebKey{small} }, unavailable},
		"a secret":              {func(i *issuer) { i.keys = []jose.JSONWebKey{secret} }, unavailable},
		"a private key":         {func(i *issuer) { i.keys = []jose.JSONWebKey{private} }, unavailable},
		"for encryption":        {func(i *issuer) { i.keys = []jose.JSONWebKey{forEncryption} }, unavailable},
		"for another algorithm": {func(i *issuer) { i.keys = []jose.JSONWebKey{otherAlgorithm} }, "key_unknown"},
		"too many":              {func(i *issuer) { i.keys = many }, unavailable},
		"no JSON":               {func(i *issuer) { i.raw = "<html>" }, unavailable},
		"an unknown kind":       {func(i *issuer) { i.raw = `{"keys":[{"kty":"future","kid":"one"}]}` }, unavailable},
		"a redirect":            {func(i *issuer) { i.status = http.StatusFound }, unavailable},
		"another issuer": {func(i *issuer) {
			i.discovery = `{"issuer":"https://elsewhere.example","jwks_uri":"` + i.url + `/keys"}`
		}, unavailable},
		"keys over plain http": {func(i *issuer) { i.discovery = `{"issuer":"` + i.url + `","jwks_uri":"http://elsewhere.example/keys"}` }, unavailable},
		"no address of keys":   {func(i *issuer) { i.discovery = `{"issuer":"` + i.url + `"}` }, unavailable},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			i := newIssuer(t, public("one", rsaKey()))
			i.set(c.change)
			if got := reasonOf(t, i.verifier(t), i.token(t, nil)); got != c.want {
				t.Errorf("%q, want %q", got, c.want)
			}
		})
	}
}

func TestKeysByAddressNeedNoDiscovery(t *testing.T) {
	t.Parallel()
	i := newIssuer(t, public("one", rsaKey()))
	i.set(func(i *issuer) { i.discovery = "{" })
	v := i.verifier(t, func(c *identity.Config) { c.JWKSURL = i.url + "/keys" })
	if got := reasonOf(t, v, i.token(t, nil)); got != "" {
		t.Error(got)
	}
}
