package identity_test

import (
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"strings"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/amends-dev/amends/internal/identity"
)

func TestGoodTokens(t *testing.T) {
	t.Parallel()
	i := newIssuer(t, public("one", rsaKey()), public("ec", ecKey()), public("ed", edKey()))
	v := i.verifier(t)
	for name, token := range map[string]string{
		"RS256":             i.token(t, nil),
		"PS256":             sign(t, jose.PS256, rsaKey(), "one", i.claims(nil)),
		"ES256":             sign(t, jose.ES256, ecKey(), "ec", i.claims(nil)),
		"EdDSA":             sign(t, jose.EdDSA, edKey(), "ed", i.claims(nil)),
		"no kid":            sign(t, jose.RS256, rsaKey(), "", i.claims(nil)),
		"access token":      i.token(t, nil, "typ", "at+jwt"),
		"long type":         i.token(t, nil, "typ", "application/at+JWT"),
		"list of one":       i.token(t, claims{"aud": []string{"desk-app"}}),
		"two, azp is ours":  i.token(t, claims{"aud": []string{"desk", "other"}, "azp": "desk"}),
		"one, azp of app":   i.token(t, claims{"azp": "web-app"}),
		"begun":             i.token(t, claims{"nbf": begin.Unix()}),
		"fractions":         i.token(t, claims{"exp": float64(begin.Unix()) + 60.5, "iat": float64(begin.Unix()) - 0.5}),
		"ended in leeway":   i.token(t, claims{"iat": begin.Unix() - 90, "exp": begin.Unix() - 29}),
		"ahead in leeway":   i.token(t, claims{"iat": begin.Unix() + 30, "nbf": begin.Unix() + 30}),
		"as large as it is": i.token(t, claims{"pad": strings.Repeat("x", 5000)}),
	} {
		c, err := v.Verify(t.Context(), token)
		if err != nil || c.Text("sub") != "cust_5519" || c.Issuer != i.url {
			t.Errorf("%s: %+v, %v", name, c.Audience, err)
		}
		if says, ok := identity.Peek(token); !ok || !v.Expects(says) {
			t.Errorf("%s: not expected", name)
		}
	}
	if n := i.questions(); n != 1 {
		t.Errorf("the issuer was asked %d times", n)
	}
}

// Every claim, header and signature that is wrong, one at a time.
func TestBadTokens(t *testing.T) {
	t.Parallel()
	i := newIssuer(t, public("one", rsaKey()), public("ec", ecKey()))
	v := i.verifier(t)
	good := i.token(t, nil)
	der := must(x509.MarshalPKIXPublicKey(rsaKey().Public()))
	asSecret := pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der})
	body, signature := good[:strings.LastIndex(good, ".")], good[strings.LastIndex(good, ".")+1:]
	other := i.token(t, claims{"sub": "cust_7001"})
	for name, c := range map[string]struct{ token, want string }{
		"other issuer":          {i.token(t, claims{"iss": "https://elsewhere.example"}), "issuer"},
		"issuer with a slash":   {i.token(t, claims{"iss": i.url + "/"}), "issuer"},
		"no issuer":             {i.token(t, claims{"iss": nil}), "issuer"},
		"issuer in capitals":    {i.token(t, claims{"iss": nil, "ISS": i.url}), "issuer"},
		"issuer is a number":    {i.token(t, claims{"iss": 7}), "malformed"},
		"other audience":        {i.token(t, claims{"aud": "billing"}), "audience"},
		"no audience":           {i.token(t, claims{"aud": nil}), "audience"},
		"empty audiences":       {i.token(t, claims{"aud": []string{}}), "audience"},
		"audience is a number":  {i.token(t, claims{"aud": []any{"desk", 7}}), "malformed"},
		"two, no azp":           {i.token(t, claims{"aud": []string{"desk", "other"}}), "party"},
		"two, azp of another":   {i.token(t, claims{"aud": []string{"desk", "other"}, "azp": "other"}), "party"},
		"two, azp is no text":   {i.token(t, claims{"aud": []string{"desk", "other"}, "azp": []string{"desk"}}), "party"},
		"ended":                 {i.token(t, claims{"iat": begin.Unix() - 90, "exp": begin.Unix() - 31}), "expired"},
		"ended by leeway":       {i.token(t, claims{"iat": begin.Unix() - 90, "exp": begin.Unix() - 30}), "expired"},
		"no end":                {i.token(t, claims{"exp": nil}), "times"},
		"end is text":           {i.token(t, claims{"exp": "1773310440"}), "times"},
		"end is null":           {i.token(t, claims{"exp": json.RawMessage("null")}), "malformed"},
		"endless":               {i.token(t, claims{"exp": 1e30}), "times"},
		"negative end":          {i.token(t, claims{"exp": -1}), "times"},
		"no iat":                {i.token(t, claims{"iat": nil}), "times"},
		"issued in the future":  {i.token(t, claims{"iat": begin.Unix() + 31}), "not_yet_valid"},
		"begins in the future":  {i.token(t, claims{"nbf": begin.Unix() + 31}), "not_yet_valid"},
		"nbf is text":           {i.token(t, claims{"nbf": "soon"}), "malformed"},
		"logout token":          {i.token(t, claims{"events": claims{"http://schemas.openid.net/event/backchannel-logout": claims{}}}), "type"},
		"logout type":           {i.token(t, nil, "typ", "logout+jwt"), "type"},
		"bound to a key":        {i.token(t, claims{"cnf": claims{"jkt": "x"}}), "bound"},
		"alg none":              {encode(claims{"alg": "none"}) + "." + encode(i.claims(nil)) + ".", "algorithm"},
		"alg None":              {encode(claims{"alg": "None", "kid": "one"}) + "." + encode(i.claims(nil)) + "." + signature, "algorithm"},
		"alg none, signed":      {replaced(good, claims{"alg": "none", "kid": "one"}), "algorithm"},
		"no alg":                {replaced(good, claims{"kid": "one"}), "algorithm"},
		"alg is a number":       {replaced(good, claims{"alg": 256, "kid": "one"}), "malformed"},
		"HS256 with the key":    {sign(t, jose.HS256, asSecret, "one", i.claims(nil)), "algorithm"},
		"HS256 with the modulo": {sign(t, jose.HS256, rsaKey().N.Bytes(), "one", i.claims(nil)), "algorithm"},
		"RS512 is not listed":   {sign(t, jose.RS512, rsaKey(), "one", i.claims(nil)), "algorithm"},
		"alg of another key":    {sign(t, jose.RS256, rsaKey(), "ec", i.claims(nil)), "signature"},
		"alg swapped":           {replaced(good, claims{"alg": "ES256", "kid": "one"}), "signature"},
		"another's key":         {sign(t, jose.RS256, nextKey(), "one", i.claims(nil)), "signature"},
		"another's, no kid":     {sign(t, jose.RS256, nextKey(), "", i.claims(nil)), "key_unknown"},
		"unknown kid":           {sign(t, jose.RS256, rsaKey(), "two", i.claims(nil)), "key_unknown"},
		"key in the token":      {sign(t, jose.RS256, jose.JSONWebKey{Key: nextKey(), KeyID: "one"}, "", i.claims(nil)), "signature"},
		"key by address":        {sign(t, jose.RS256, nextKey(), "one", i.claims(nil), "jku", "https://elsewhere.example/keys"), "signature"},
		"unknown crit":          {sign(t, jose.RS256, rsaKey(), "one", i.claims(nil), "crit", []string{"exp"}), "signature"},
		"header changed":        {replaced(good, claims{"alg": "RS256", "kid": "one", "x": 1}), "signature"},
		"claims of another":     {strings.Join([]string{strings.Split(good, ".")[0], strings.Split(other, ".")[1], signature}, "."), "signature"},
		"no signature":          {body + ".", "signature"},
		"cut signature":         {good[:len(good)-4], "signature"},
		"oversized":             {i.token(t, claims{"pad": strings.Repeat("x", 8000)}), "oversized"},
		"four parts":            {good + ".x", "malformed"},
		"two parts":             {body, "malformed"},
		"encrypted":             {"a.b.c.d.e", "malformed"},
		"padded":                {strings.Replace(good, ".", "=.", 1), "malformed"},
		"line end":              {strings.Replace(good, ".", "\n.", 1), "malformed"},
		"no claims":             {sign(t, jose.RS256, rsaKey(), "one", nil), "malformed"},
		"nothing":               {"", "malformed"},
		"dots":                  {"..", "malformed"},
	} {
		if got := reasonOf(t, v, c.token); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
	// One question at the start, and one for all the unknown kids.
	if n := i.questions(); n != 1 {
		t.Errorf("the issuer was asked %d times within one interval", n)
	}
}

// The leeway counts to the second, on both sides.
func TestLeeway(t *testing.T) {
	t.Parallel()
	i := newIssuer(t, public("one", rsaKey()))
	for _, leeway := range []time.Duration{time.Second, 30 * time.Second, 2 * time.Minute} {
		v := i.verifier(t, func(c *identity.Config) { c.Leeway = leeway })
		l := int64(leeway / time.Second)
		for name, c := range map[string]struct {
			change claims
			want   string
		}{
			"a second inside":  {claims{"iat": begin.Unix() - 600, "exp": begin.Unix() - l + 1}, ""},
			"at the end":       {claims{"iat": begin.Unix() - 600, "exp": begin.Unix() - l}, "expired"},
			"a second outside": {claims{"iat": begin.Unix() - 600, "exp": begin.Unix() - l - 1}, "expired"},
			"begins inside":    {claims{"nbf": begin.Unix() + l}, ""},
			"begins outside":   {claims{"nbf": begin.Unix() + l + 1}, "not_yet_valid"},
			"issued inside":    {claims{"iat": begin.Unix() + l}, ""},
			"issued outside":   {claims{"iat": begin.Unix() + l + 1}, "not_yet_valid"},
		} {
			if got := reasonOf(t, v, i.token(t, c.change)); got != c.want {
				t.Errorf("leeway %s, %s: %q, want %q", leeway, name, got, c.want)
			}
		}
	}
}

func TestAuthorizedParties(t *testing.T) {
	t.Parallel()
	i := newIssuer(t, public("one", rsaKey()))
	v := i.verifier(t, func(c *identity.Config) { c.AuthorizedParties = []string{"web-app"} })
	for want, change := range map[string]claims{
		"":      {"aud": []string{"desk", "account"}, "azp": "web-app"},
		"party": {"azp": "desk"},
	} {
		if got := reasonOf(t, v, i.token(t, change)); got != want {
			t.Errorf("%v: %q", change, got)
		}
	}
	if got := reasonOf(t, v, i.token(t, nil)); got != "party" {
		t.Errorf("no azp: %q", got)
	}
}

func TestClaimsSay(t *testing.T) {
	t.Parallel()
	i := newIssuer(t, public("one", rsaKey()))
	c, err := i.verifier(t).Verify(t.Context(), i.token(t, claims{
		"https://acme.example/tenant": "acme-in", "groups": []string{"a", "b"}, "n": 5519, "scope": "openid refunds", "scp": []string{"desk"},
	}))
	if err != nil {
		t.Fatal(err)
	}
	if c.Text("https://acme.example/tenant") != "acme-in" || c.Text("n") != "" || c.Text("groups") != "" || c.Text("none") != "" {
		t.Error("text claims are read wrongly")
	}
	if !c.Holds("groups", "b") || c.Holds("groups", "c") || !c.Holds("sub", "cust_5519") || c.Holds("none", "") {
		t.Error("lists are read wrongly")
	}
	if !c.Scoped("refunds") || !c.Scoped("desk") || c.Scoped("refund") || c.Scoped("") {
		t.Error("scopes are read wrongly")
	}
}
