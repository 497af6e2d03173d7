package main

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"testing"

	"github.com/amends-dev/amends/internal/deskapi"
	"github.com/amends-dev/amends/internal/edge"
)

func TestCaseDeliveries(t *testing.T) {
	t.Parallel()
	dir, _ := files(t)
	s := httptest.NewServer(edge.Handler(func(w http.ResponseWriter, r *http.Request) *deskapi.Problem {
		switch r.URL.Path {
		case "/v1/cases/req-8472/deliveries":
			edge.WriteJSON(w, 200, deskapi.Deliveries{CaseID: "req-8472", Deliveries: []deskapi.Delivery{
				{WebhookID: "msg_1", Version: 5, Kind: "holding", Status: "pending", NextAt: &now, Attempts: []deskapi.DeliveryAttempt{
					{Number: 1, At: &now, StatusCode: 500, Reason: "status"}, {Number: 2, At: &now, Reason: "timeout"},
				}},
				{WebhookID: "msg_2", Version: 9, Kind: "refunded", Status: "delivered", SettledAt: &now},
			}})
		case "/v1/cases/req-1/deliveries":
			edge.WriteJSON(w, 200, deskapi.Deliveries{CaseID: "req-1"})
		default:
			return deskapi.NewProblem(404, deskapi.CodeNotFound, "no such case")
		}
		return nil
	}))
	t.Cleanup(s.Close)
	run := func(id string, more ...string) result {
		return amends(t, nil, append([]string{"case", "deliveries", id, "--gateway", s.URL, "--token-file", filepath.Join(dir, "token")}, more...)...)
	}
	want := "reply of v5 (holding)  pending, next try 2026-03-12T10:20:00Z  msg_1\n" +
		"  1  2026-03-12T10:20:00Z  status 500\n  2  2026-03-12T10:20:00Z  timeout\n" +
		"reply of v9 (refunded)  delivered 2026-03-12T10:20:00Z  msg_2\n"
	if got := run("req-8472"); got.code != exitDone || got.out != want {
		t.Errorf("%+v\nwant %q", got, want)
	}
	if got := run("req-1"); got.code != exitDone || got.out != "req-1  no webhooks\n" {
		t.Errorf("%+v", got)
	}
	var d deskapi.Deliveries
	if got := run("req-8472", "--json"); json.Unmarshal([]byte(got.out), &d) != nil || len(d.Deliveries) != 2 {
		t.Errorf("%+v", got)
	}
	if got := run("req-2"); got.code != exitFailed {
		t.Errorf("%+v", got)
	}
}
