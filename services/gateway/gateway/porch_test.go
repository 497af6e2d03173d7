package gateway

import (
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/amends-dev/amends/internal/bus/bustest"
	"github.com/amends-dev/amends/internal/deskapi"
)

// Whoever opens connections and says nothing takes no place from callers with
// a credential: their requests are answered, and the provider's events as soon
// as the silent ones are cut off.
func TestSlowStrangersHoldUpNobody(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	takes := takesEvents(t)
	base := d.gatewayWith(t, func(c *Config) { takes(c); c.Limits.InFlight = 1 })
	d.orderView(t, "req-1", "8472", "HOLD_FOR_EVIDENCE")
	d.untilListed(t, base, 1)
	addr := strings.TrimPrefix(base, "http://")
	for range eventsAtOnce {
		conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", addr)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = conn.Close() })
		if _, err := conn.Write([]byte("POST " + deskapi.ProviderEventsPath + " HTTP/1.1\r\nHost: desk\r\nContent-Length: 9\r\n\r\n{")); err != nil {
			t.Fatal(err)
		}
	}
	body := eventBody("capture.settled", "8472", "pay_1", "")
	bustest.Await(t, "all places of strangers are taken", func() bool {
		a := tell(t, base, signed(t, "evt_1", body), body)
		return a.status == http.StatusServiceUnavailable && a.problem(t).Code == deskapi.CodeOverloaded && a.header.Get("Retry-After") != ""
	})
	start := time.Now()
	if a := ask(t, http.MethodGet, base+"/v1/cases/req-1", webKey, ""); a.status != http.StatusOK || time.Since(start) > eventRead/2 {
		t.Errorf("%d after %s", a.status, time.Since(start))
	}
	bustest.Await(t, "silence is cut off", func() bool { return tell(t, base, signed(t, "evt_2", body), body).status == http.StatusAccepted })
}

// What does not verify is limited, and costs the provider nothing until then.
func TestStrangersEventsAreLimited(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	at := time.Now()
	base := d.gatewayOf(t, takesEvents(t), Deps{Now: func() time.Time { return at }})
	body := eventBody("payout.paid", "8472", "pay_1", "")
	bad := func() answer { return tell(t, base, http.Header{}, body) }
	for i := range strangersBurst {
		if a := bad(); a.status != http.StatusUnauthorized {
			t.Fatalf("%d: %d %s", i, a.status, a.body)
		}
		if i%100 == 0 {
			if a := tell(t, base, signed(t, "evt_1", body), body); a.status != http.StatusAccepted {
				t.Fatalf("the provider: %d %s", a.status, a.body)
			}
		}
	}
	if a := bad(); a.status != http.StatusTooManyRequests || a.problem(t).Code != deskapi.CodeRateLimited || a.header.Get("Retry-After") == "" {
		t.Errorf("%d %s", a.status, a.body)
	}
}
