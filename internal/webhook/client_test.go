package webhook_test

import (
	"context"
	"crypto/x509"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/amends-dev/amends/internal/webhook"
)

// No address of the inside can be a target, however it is written.
func TestPublic(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bool{
		"8.8.8.8": true, "1.1.1.1": true, "93.184.215.14": true, "172.15.0.1": true, "172.32.0.1": true, "100.63.0.1": true, "100.128.0.1": true,
		"2606:4700:4700::1111": true, "2a00:1450:4001:800::200e": true,
		"0.0.0.0": false, "0.1.2.3": false, "127.0.0.1": false, "127.8.9.10": false, "10.0.0.1": false, "172.16.0.1": false, "172.31.255.255": false,
		"192.168.1.1": false, "100.64.0.1": false, "100.127.255.255": false, "169.254.169.254": false, "169.254.0.1": false, "192.0.0.8": false,
		"192.0.2.1": false, "192.88.99.1": false, "198.18.0.1": false, "198.19.255.255": false, "198.51.100.7": false, "203.0.113.9": false,
		"224.0.0.1": false, "239.255.255.255": false, "240.0.0.1": false, "255.255.255.255": false,
		"::": false, "::1": false, "fe80::1": false, "fe80::1%eth0": false, "fec0::1": false, "fc00::1": false, "fd00:ec2::254": false, "ff02::1": false,
		"::ffff:127.0.0.1": false, "::ffff:10.0.0.1": false, "::ffff:8.8.8.8": false, "::127.0.0.1": false, "64:ff9b::7f00:1": false, "64:ff9b:1::1": false,
		"2001::1": false, "2001:db8::1": false, "2002:7f00:1::": false, "3fff::1": false, "100::1": false, "5f00::1": false,
	} {
		if got := webhook.Public(netip.MustParseAddr(text)); got != want {
			t.Errorf("Public(%s) = %t", text, got)
		}
	}
	if webhook.Public(netip.Addr{}) {
		t.Error("no address is public")
	}
}

func TestCheckURL(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		url             string
		public, private bool
	}{
		{"https://hooks.example.com/amends?x=1", true, true},
		{"https://hooks.example.com:8443/", true, true},
		{"https://8.8.8.8/", true, true},
		{"http://hooks.example.com/", false, true},
		{"http://127.0.0.1:9000/", false, true},
		{"https://127.0.0.1/", false, true},
		{"https://[::1]/", false, true},
		{"https://[fe80::1%25eth0]/", false, true},
		{"https://169.254.169.254/latest", false, true},
		{"https://user:secret@example.com/", false, false},
		{"https://user@example.com/", false, false},
		{"https:///x", false, false},
		{"https://example.com/#x", false, false},
		{"ftp://example.com/", false, false},
		{"file:///etc/passwd", false, false},
		{"", false, false},
		{"https:example.com", false, false},
		{"//example.com/", false, false},
		{"https://exa mple.com/", false, false},
		{"https://example.com/" + strings.Repeat("x", 2048), false, false},
	} {
		for private, want := range map[bool]bool{false: c.public, true: c.private} {
			err := webhook.CheckURL(c.url, private)
			if (err == nil) != want {
				t.Errorf("CheckURL(%q, %t): %v", c.url, private, err)
			}
			if err != nil && strings.Contains(err.Error(), "secret") {
				t.Errorf("the error quotes a credential: %v", err)
			}
		}
	}
}

func receiver(t *testing.T, h http.HandlerFunc) *httptest.Server {
	t.Helper()
	s := httptest.NewUnstartedServer(h)
	s.StartTLS()
	t.Cleanup(s.Close)
	return s
}

func client(t *testing.T, s *httptest.Server, private bool) *webhook.Client {
	t.Helper()
	roots := x509.NewCertPool()
	roots.AddCert(s.Certificate())
	c := webhook.NewClient(webhook.Options{Private: private, Roots: roots})
	t.Cleanup(c.Close)
	return c
}

func TestOutcomes(t *testing.T) {
	t.Parallel()
	asked := 0
	s := receiver(t, func(w http.ResponseWriter, r *http.Request) {
		asked++
		switch r.URL.Path {
		case "/ok":
			body, err := io.ReadAll(r.Body)
			if err != nil || string(body) != "{}" || r.Header.Get("Content-Type") != "application/json" || r.Header.Get(webhook.HeaderID) != "msg_1" {
				t.Errorf("got %q, %v, %v", body, err, r.Header)
			}
			w.WriteHeader(http.StatusNoContent)
		case "/moved":
			http.Redirect(w, r, "/ok", http.StatusTemporaryRedirect)
		case "/busy":
			w.Header().Set("Retry-After", "120")
			w.WriteHeader(http.StatusTooManyRequests)
		case "/gone":
			w.WriteHeader(http.StatusGone)
		case "/endless": // more than anybody reads
			_, _ = w.Write(make([]byte, 1<<20))
		default:
			w.WriteHeader(http.StatusInternalServerError)
		}
	})
	c := client(t, s, true)
	header := http.Header{webhook.HeaderID: {"msg_1"}}
	for path, want := range map[string]webhook.Outcome{
		"/ok":      {Reason: webhook.ReasonDelivered, Status: 204},
		"/endless": {Reason: webhook.ReasonDelivered, Status: 200},
		"/moved":   {Reason: webhook.ReasonStatus, Status: 307},
		"/busy":    {Reason: webhook.ReasonStatus, Status: 429, RetryAfter: 2 * time.Minute},
		"/gone":    {Reason: webhook.ReasonGone, Status: 410},
		"/fault":   {Reason: webhook.ReasonStatus, Status: 500},
	} {
		before := asked
		got := c.Send(t.Context(), s.URL+path, header, []byte("{}"))
		got.Took = 0
		if got != want || asked != before+1 {
			t.Errorf("%s: %+v after %d requests, want %+v", path, got, asked-before, want)
		}
	}
}

// The address is judged where the connection is made: a name that leads inside
// is refused like the address itself, and nothing arrives there.
func TestPrivateAddressesAreNotDialled(t *testing.T) {
	t.Parallel()
	s := receiver(t, func(http.ResponseWriter, *http.Request) { t.Error("a request arrived") })
	c := client(t, s, false)
	_, port, _ := strings.Cut(strings.TrimPrefix(s.URL, "https://"), ":")
	for _, host := range []string{"127.0.0.1", "localhost", "[::ffff:127.0.0.1]", "0.0.0.0"} {
		if got := c.Send(t.Context(), "https://"+host+":"+port+"/", nil, nil); got.Reason != webhook.ReasonAddress || got.Status != 0 {
			t.Errorf("%s: %+v", host, got)
		}
	}
}

func TestUnreachable(t *testing.T) {
	t.Parallel()
	s := receiver(t, func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	c := client(t, s, true)
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if got := c.Send(ctx, s.URL, nil, nil); got.Reason != webhook.ReasonTimeout {
		t.Errorf("a receiver that hangs: %+v", got)
	}
	strangers := webhook.NewClient(webhook.Options{Private: true})
	t.Cleanup(strangers.Close)
	if got := strangers.Send(t.Context(), s.URL, nil, nil); got.Reason != webhook.ReasonTLS {
		t.Errorf("a certificate of nobody: %+v", got)
	}
	closed := httptest.NewServer(nil)
	closed.Close()
	if got := c.Send(t.Context(), closed.URL, nil, nil); got.Reason != webhook.ReasonUnreachable {
		t.Errorf("nobody there: %+v", got)
	}
}
