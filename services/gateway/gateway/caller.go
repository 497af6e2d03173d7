package gateway

import (
	"net/http"
	"time"

	"github.com/amends-dev/amends/internal/deskapi"
	"github.com/amends-dev/amends/internal/edge"
)

// caller is who a request comes from, as its credential says.
type caller struct {
	tenant   string
	customer string
	channel  *Channel
	// credential names the API key, or the issuer, without giving anything away.
	credential string
	// until is when the credential ends; zero when it does not.
	until time.Time
}

// keyOwner says whose a caller's Idempotency-Keys are: the channel's, or, where
// customers call for themselves, the customer's own. Else one customer could
// use a key that another is likely to choose.
func (c caller) keyOwner() []string {
	if c.channel.OIDC == nil {
		return nil
	}
	return []string{c.customer}
}

var (
	unauthenticated = deskapi.NewProblem(http.StatusUnauthorized, deskapi.CodeUnauthenticated, "send a valid API key or token as a bearer token")
	customerMissing = deskapi.NewProblem(http.StatusBadRequest, deskapi.CodeCustomerMissing, "name the customer in "+deskapi.HeaderCustomer)
)

// identify is the one place where tenant and customer are fixed. What is no API
// key is taken for a token.
func (g *gateway) identify(w http.ResponseWriter, r *http.Request) (caller, *deskapi.Problem) {
	credential := edge.Bearer(r)
	if credential == "" {
		g.credentials.refused(r.Context(), "", "none")
		w.Header().Set("WWW-Authenticate", "Bearer")
		return caller{}, unauthenticated
	}
	ch, ok := g.keys.Find(credential)
	if !ok {
		return g.byToken(w, r, credential)
	}
	c := caller{tenant: ch.Tenant, customer: ch.Customer, channel: ch, credential: "key-" + ch.KeySHA256[:16]}
	if ch.MayNameCustomer {
		c.customer = r.Header.Get(deskapi.HeaderCustomer)
		if outside(c.customer) != nil {
			return caller{}, customerMissing
		}
	}
	g.credentials.accepted(r.Context(), byKey)
	return c, nil
}
