package e2e_test

import (
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"testing"

	"github.com/oauth2-proxy/mockoidc"

	"github.com/amends-dev/amends/internal/allinone"
	"github.com/amends-dev/amends/internal/deskapi"
	"github.com/amends-dev/amends/internal/deskclient"
	"github.com/amends-dev/amends/internal/identity"
	"github.com/amends-dev/amends/services/gateway/gateway"
)

// signIn takes a customer through the provider's code flow, as a channel's own
// web application does, and gives the ID token.
func (w *world) signIn(m *mockoidc.MockOIDC, customer string) string {
	w.t.Helper()
	m.QueueUser(&mockoidc.MockUser{Subject: customer})
	browser := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	query := url.Values{
		"client_id": {m.ClientID}, "response_type": {"code"}, "scope": {"openid"}, "state": {"s"}, "nonce": {"n"},
		"redirect_uri": {"http://127.0.0.1/back"},
	}
	req, err := http.NewRequestWithContext(w.ctx, http.MethodGet, m.AuthorizationEndpoint()+"?"+query.Encode(), nil)
	if err != nil {
		w.t.Fatal(err)
	}
	resp, err := browser.Do(req)
	if err != nil {
		w.t.Fatal(err)
	}
	defer resp.Body.Close()
	back, err := resp.Location()
	if err != nil {
		w.t.Fatalf("sign in: status %d, %v", resp.StatusCode, err)
	}
	resp, err = browser.PostForm(m.TokenEndpoint(), url.Values{
		"client_id": {m.ClientID}, "client_secret": {m.ClientSecret}, "grant_type": {"authorization_code"}, "code": {back.Query().Get("code")},
	})
	if err != nil {
		w.t.Fatal(err)
	}
	defer resp.Body.Close()
	var got struct {
		IDToken string `json:"id_token"`
	}
	if err := json.NewDecoder(resp.Body).Decode(&got); err != nil || got.IDToken == "" {
		w.t.Fatalf("no ID token: status %d, %v", resp.StatusCode, err)
	}
	return got.IDToken
}

// A customer who signed in at an OpenID provider takes a case to its end;
// another one of the same provider sees nothing of it (TENANT-1).
func TestSignedInCustomer(t *testing.T) {
	t.Parallel()
	m, err := mockoidc.Run()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = m.Shutdown() })
	w := start(t, allinone.Options{Channels: []gateway.Channel{{
		Name: "shop", Tenant: allinone.Tenant, MayNameCaseIDs: true,
		OIDC: &gateway.OIDC{Config: identity.Config{Issuer: m.Issuer(), Audiences: []string{m.ClientID}}},
	}}})
	w.orders(1, true)
	other, err := deskclient.NewGateway(deskclient.Config{URL: w.GatewayURL, Token: w.signIn(m, "cust_7001")})
	if err != nil {
		t.Fatal(err)
	}
	if w.gateway, err = deskclient.NewGateway(deskclient.Config{URL: w.GatewayURL, Token: w.signIn(m, allinone.Customer)}); err != nil {
		t.Fatal(err)
	}
	if err := w.post(0); err != nil {
		t.Fatal(err)
	}
	v, err := w.finish(0, closed)
	if err != nil || v.State != "VERIFIED_CLOSED" || len(w.refunds()) != 1 {
		t.Fatalf("ended %s with refunds %v, %v", v.State, w.refunds(), err)
	}
	if rec := w.record(0, 1); rec.GetCustomerId() != allinone.Customer || rec.GetChannel() != "shop" {
		t.Errorf("the record is of customer %s, channel %s", rec.GetCustomerId(), rec.GetChannel())
	}
	_, err = other.View(w.ctx, caseID(0), "")
	if p, ok := errors.AsType[*deskapi.Problem](err); !ok || p.Code != deskapi.CodeNotFound {
		t.Errorf("another customer's look: %v", err)
	}
}
