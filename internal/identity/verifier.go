package identity

import (
	"context"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"github.com/go-jose/go-jose/v4"
)

// Deps are a verifier's collaborators.
type Deps struct {
	Log *slog.Logger
	Now func() time.Time
	// Fetched, if given, is told how each question for keys went.
	Fetched func(ctx context.Context, err error)
}

// Verifier judges the tokens of one issuer.
type Verifier struct {
	cfg    Config
	now    func() time.Time
	keys   *keySet
	signed *oidc.Config
	algs   []jose.SignatureAlgorithm
}

// New gives a verifier. It asks the issuer nothing yet.
func New(cfg Config, deps Deps) (*Verifier, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	cfg = cfg.withDefaults()
	pool, err := cfg.pool()
	if err != nil {
		return nil, err
	}
	if deps.Fetched == nil {
		deps.Fetched = func(context.Context, error) {}
	}
	v := &Verifier{
		cfg: cfg, now: deps.Now,
		keys: &keySet{
			ask: newSource(cfg, pool).keys, now: deps.Now, told: deps.Fetched, limits: cfg.Keys,
			log: deps.Log.With(slog.String("issuer", cfg.Issuer)), room: make(chan struct{}, maxWaiting),
		},
		// Times and audience are checked here: go-oidc has no leeway for exp, and
		// five minutes for nbf.
		signed: &oidc.Config{SkipClientIDCheck: true, SkipExpiryCheck: true, SupportedSigningAlgs: cfg.Algorithms},
	}
	for _, a := range cfg.Algorithms {
		v.algs = append(v.algs, jose.SignatureAlgorithm(a))
	}
	return v, nil
}

// Warm asks the issuer for its keys until they came once, or ctx ends.
func (v *Verifier) Warm(ctx context.Context) { v.keys.warm(ctx) }

// Expects reports that a token is for this verifier to judge, going by what it
// says of itself.
func (v *Verifier) Expects(c Claims) bool {
	return c.Issuer == v.cfg.Issuer && slices.ContainsFunc(c.Audience, v.isAudience)
}

func (v *Verifier) isAudience(a string) bool { return slices.Contains(v.cfg.Audiences, a) }

// Verify judges a token: its claims, or a *Refusal, or ErrUnavailable.
func (v *Verifier) Verify(ctx context.Context, token string) (Claims, error) {
	head, _, err := take(token)
	switch {
	case err != nil:
		return Claims{}, err
	case !slices.Contains(v.cfg.Algorithms, head.alg):
		return Claims{}, refuse(Algorithm)
	case !credential(head.typ):
		return Claims{}, refuse(Type)
	}
	// go-oidc flattens what a key set says; the attempt keeps it.
	try := &attempt{verifier: v, err: refuse(Malformed)}
	if _, err := oidc.NewVerifier(v.cfg.Issuer, try, v.signed).Verify(ctx, token); err != nil {
		return Claims{}, try.err
	}
	c, err := readClaims(try.payload)
	if err != nil {
		return Claims{}, err
	}
	return c, v.judge(c)
}

// Ends gives the moment from which a token that was good is good no more.
func (v *Verifier) Ends(c Claims) time.Time {
	expires, _ := c.moment("exp") // Verify refuses a token without one
	return expires.Add(v.cfg.Leeway)
}

// credential reports the types of tokens that speak for somebody. Some issuers
// set none.
func credential(typ string) bool {
	switch strings.ToLower(strings.TrimPrefix(typ, "application/")) {
	case "", "jwt", "at+jwt":
		return true
	}
	return false
}

// judge checks what is signed.
func (v *Verifier) judge(c Claims) error {
	switch {
	case c.Issuer != v.cfg.Issuer:
		return refuse(Issuer)
	case !slices.ContainsFunc(c.Audience, v.isAudience):
		return refuse(Audience)
	case !v.party(c):
		return refuse(Party)
	case c.has("events"): // logout tokens and security events
		return refuse(Type)
	case c.has("cnf"): // good only with a proof that is not asked for here
		return refuse(Bound)
	}
	now, leeway := v.now(), v.cfg.Leeway
	_, ok1 := c.moment("exp")
	issued, ok2 := c.moment("iat")
	begins := issued
	ok3 := true
	if c.has("nbf") {
		begins, ok3 = c.moment("nbf")
	}
	switch {
	case !ok1 || !ok2 || !ok3:
		return refuse(Times)
	case !now.Before(v.Ends(c)):
		return refuse(Expired)
	case now.Add(leeway).Before(issued), now.Add(leeway).Before(begins):
		return refuse(NotYetValid)
	}
	return nil
}

// party reports whether the token was issued to a party it may have been
// issued to.
func (v *Verifier) party(c Claims) bool {
	azp := c.Text("azp")
	if len(v.cfg.AuthorizedParties) > 0 {
		return slices.Contains(v.cfg.AuthorizedParties, azp)
	}
	return len(c.Audience) == 1 || v.isAudience(azp)
}

// attempt is one token's way through the keys.
type attempt struct {
	verifier *Verifier
	payload  []byte
	err      error
}

// VerifySignature looks for the key that signed the token.
func (a *attempt) VerifySignature(ctx context.Context, token string) ([]byte, error) {
	jws, err := jose.ParseSignedCompact(token, a.verifier.algs)
	if err != nil {
		return nil, err
	}
	a.payload, a.err = a.verifier.keys.verify(ctx, jws)
	if a.err != nil {
		return nil, a.err
	}
	// Why go-oidc may still say no.
	a.err = refuse(Malformed)
	if c, err := readClaims(a.payload); err == nil && c.Issuer != a.verifier.cfg.Issuer {
		a.err = refuse(Issuer)
	}
	return a.payload, nil
}
