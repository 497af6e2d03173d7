package gateway

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/amends-dev/amends/internal/deskapi"
	"github.com/amends-dev/amends/internal/identity"
	"github.com/amends-dev/amends/internal/subject"
)

// OIDC says whose tokens a channel takes, and which tenant and customer such
// a token speaks for.
type OIDC struct {
	identity.Config `yaml:",inline"`
	// TenantClaim names the claim with the tenant, one of Tenants, where the
	// channel has no Tenant of its own.
	TenantClaim string   `yaml:"tenant_claim,omitempty"`
	Tenants     []string `yaml:"tenants,omitempty"`
	// CustomerClaim names the claim with the customer; default sub.
	CustomerClaim string `yaml:"customer_claim,omitempty"`
	// RequiredClaims must have these values, RequiredScope be among the scopes.
	RequiredClaims map[string]string `yaml:"required_claims,omitempty"`
	RequiredScope  string            `yaml:"required_scope,omitempty"`
}

// Why a good token gets its bearer nowhere; in metrics and logs.
const (
	noVerifier identity.Reason = "issuer_unknown"
	ambiguous  identity.Reason = "ambiguous"
	noClaim    identity.Reason = "claim_missing"
	noScope    identity.Reason = "scope_missing"
	noTenant   identity.Reason = "tenant_not_allowed"
	noCustomer identity.Reason = "customer_invalid"
	notNamed   identity.Reason = "customer_not_allowed"
	keysAway   identity.Reason = "unavailable"
)

// check checks a channel's block; the channel itself must leave to it what it
// decides.
func (o *OIDC) check(ch *Channel) error {
	var problems []error
	wrong := func(text string) { problems = append(problems, errors.New(text)) }
	if ch.Customer != "" || ch.MayNameCustomer {
		wrong("customer, may_name_customer: a token names its customer")
	}
	switch {
	case (ch.Tenant != "") == (o.TenantClaim != ""):
		wrong("want either tenant or oidc.tenant_claim")
	case (o.TenantClaim != "") != (len(o.Tenants) > 0):
		wrong("oidc.tenants: want the values that oidc.tenant_claim may have")
	}
	for _, t := range o.Tenants {
		if err := subject.CheckTenant("oidc.tenants", t); err != nil {
			problems = append(problems, err)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(o.RequiredClaims)) {
		if name == "" || o.RequiredClaims[name] == "" {
			wrong("oidc.required_claims: empty")
		}
	}
	if strings.ContainsAny(o.RequiredScope, " \t\"\\") {
		wrong("oidc.required_scope: want one scope")
	}
	if err := o.Validate(); err != nil {
		problems = append(problems, fmt.Errorf("oidc: %w", err))
	}
	return errors.Join(problems...)
}

// overlap reports that a token may be for both.
func (o *OIDC) overlap(other *OIDC) bool {
	return o.Issuer == other.Issuer && slices.ContainsFunc(o.Audiences, func(a string) bool { return slices.Contains(other.Audiences, a) })
}

// login is a channel whose callers come with a token.
type login struct {
	cfg        *OIDC
	name       string
	verifier   *identity.Verifier
	credential string
	// tenants gives the channel in each tenant it may be of; tenant is the one
	// that needs no claim.
	tenants map[string]*Channel
	tenant  string
}

// newLogins makes the configuration's.
func newLogins(cfg Config, deps Deps, m *credentialMetrics) ([]*login, error) {
	var out []*login
	for i := range cfg.Channels {
		ch := &cfg.Channels[i]
		if ch.OIDC == nil {
			continue
		}
		l := &login{cfg: ch.OIDC, name: ch.Name, tenant: ch.Tenant, tenants: map[string]*Channel{}}
		sum := sha256.Sum256([]byte(ch.OIDC.Issuer + "\n" + strings.Join(ch.OIDC.Audiences, "\n")))
		l.credential = "oidc-" + hex.EncodeToString(sum[:8])
		tenants := ch.OIDC.Tenants
		if ch.Tenant != "" {
			tenants = []string{ch.Tenant}
		}
		for _, t := range tenants {
			own := *ch
			own.Tenant = t
			l.tenants[t] = &own
		}
		var err error
		l.verifier, err = identity.New(ch.OIDC.Config, identity.Deps{
			Log: deps.Log.With(slog.String("channel", ch.Name)), Now: deps.Now,
			Fetched: func(ctx context.Context, err error) { m.fetched(ctx, ch.Name, err) },
		})
		if err != nil {
			return nil, fmt.Errorf("channel %s: oidc: %w", ch.Name, err)
		}
		out = append(out, l)
	}
	return out, nil
}

// loginOf gives the one channel a token says it is for.
func (g *gateway) loginOf(token string) (*login, identity.Reason) {
	if len(token) > identity.MaxToken {
		return nil, identity.Oversized
	}
	says, ok := identity.Peek(token)
	if !ok {
		return nil, identity.Malformed
	}
	var found *login
	for _, l := range g.logins {
		if !l.verifier.Expects(says) {
			continue
		}
		if found != nil {
			return nil, ambiguous
		}
		found = l
	}
	if found == nil {
		return nil, noVerifier
	}
	return found, ""
}

// callerOf maps what a good token says. X-Customer-Id may repeat its customer
// and no more.
func (l *login) callerOf(r *http.Request, c identity.Claims) (caller, identity.Reason) {
	for name, value := range l.cfg.RequiredClaims {
		if !c.Holds(name, value) {
			return caller{}, noClaim
		}
	}
	if l.cfg.RequiredScope != "" && !c.Scoped(l.cfg.RequiredScope) {
		return caller{}, noScope
	}
	tenant := l.tenant
	if tenant == "" {
		tenant = c.Text(l.cfg.TenantClaim)
	}
	ch := l.tenants[tenant]
	if ch == nil {
		return caller{}, noTenant
	}
	claim := l.cfg.CustomerClaim
	if claim == "" {
		claim = "sub"
	}
	customer := c.Text(claim)
	if outside(customer) != nil {
		return caller{}, noCustomer
	}
	for _, named := range r.Header.Values(deskapi.HeaderCustomer) {
		if named != customer {
			return caller{}, notNamed
		}
	}
	return caller{tenant: ch.Tenant, customer: customer, channel: ch, credential: l.credential, until: l.verifier.Ends(c)}, ""
}

// keysWait is after what time a token that cannot be judged may be sent again.
const keysWait = 5 * time.Second

var (
	noKeys    = deskapi.NewProblem(http.StatusServiceUnavailable, deskapi.CodeUnavailable, "the issuer of the token does not answer; send the same request again").After(keysWait)
	forbidden = map[identity.Reason]*deskapi.Problem{
		noClaim:    deskapi.NewProblem(http.StatusForbidden, deskapi.CodeInsufficient, "the token does not carry what this channel asks for"),
		noScope:    deskapi.NewProblem(http.StatusForbidden, deskapi.CodeInsufficient, "the token does not carry what this channel asks for"),
		noTenant:   deskapi.NewProblem(http.StatusForbidden, deskapi.CodeTenantNotAllowed, "the token's tenant is none of this channel's"),
		noCustomer: deskapi.NewProblem(http.StatusForbidden, deskapi.CodeCustomerInvalid, "the token names no customer with a valid identifier"),
		notNamed:   deskapi.NewProblem(http.StatusForbidden, deskapi.CodeCustomerNotAllowed, "the token is for another customer than "+deskapi.HeaderCustomer+" names"),
	}
)

// byToken identifies the bearer of a token.
func (g *gateway) byToken(w http.ResponseWriter, r *http.Request, token string) (caller, *deskapi.Problem) {
	l, reason := g.loginOf(token)
	if l == nil {
		return g.refuse(w, r, "", reason)
	}
	claims, err := l.verifier.Verify(r.Context(), token)
	if refusal, ok := errors.AsType[*identity.Refusal](err); ok {
		return g.refuse(w, r, l.name, refusal.Reason)
	}
	if err != nil {
		g.credentials.refused(r.Context(), l.name, keysAway)
		return caller{}, noKeys
	}
	c, reason := l.callerOf(r, claims)
	if problem := forbidden[reason]; problem != nil {
		if reason == noScope {
			w.Header().Set("WWW-Authenticate", `Bearer error="insufficient_scope", scope="`+l.cfg.RequiredScope+`"`)
		}
		g.credentials.refused(r.Context(), l.name, reason)
		return caller{}, problem
	}
	g.credentials.accepted(r.Context(), byLogin)
	return c, nil
}

// refuse gives every bad credential the same answer.
func (g *gateway) refuse(w http.ResponseWriter, r *http.Request, channel string, reason identity.Reason) (caller, *deskapi.Problem) {
	g.credentials.refused(r.Context(), channel, reason)
	w.Header().Set("WWW-Authenticate", `Bearer error="invalid_token"`)
	return caller{}, unauthenticated
}
