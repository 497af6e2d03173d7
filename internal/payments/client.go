package payments

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/amends-dev/amends/internal/ident"
)

var (
	// ErrNotFound: there is no such order or refund in this tenant.
	ErrNotFound = errors.New("not found at the payments provider")
	// ErrUnauthorized: the key is unknown or lacks the scope.
	ErrUnauthorized = errors.New("refused by the payments provider for its key")
	// ErrUnavailable: no usable answer came; trying again may help.
	ErrUnavailable = errors.New("payments provider unavailable")
	// ErrRejected: the request itself was refused; trying again will not help.
	ErrRejected = errors.New("rejected by the payments provider")
)

const (
	maxAnswer      = 1 << 20
	defaultTimeout = 2 * time.Second
)

// Config says where the provider is and with which key it is read.
type Config struct {
	// URL is the base address, e.g. https://payments.example.
	URL string
	// Key is the API key's token.
	Key string
	// Timeout bounds one call; by default two seconds.
	Timeout time.Duration
}

// Client reads the provider. It is safe for concurrent use.
type Client struct {
	base    string
	header  http.Header
	timeout time.Duration
	http    *http.Client
}

// New gives a client; it connects when it is used.
func New(c Config) (*Client, error) {
	base, err := BaseURL(c.URL)
	if err != nil {
		return nil, fmt.Errorf("payments client: %w", err)
	}
	if c.Key == "" {
		return nil, errors.New("payments client: no key")
	}
	if c.Timeout <= 0 {
		c.Timeout = defaultTimeout
	}
	return &Client{
		base: base, timeout: c.Timeout, http: NewHTTPClient(),
		header: http.Header{
			"Authorization": {"Bearer " + c.Key},
			"Accept":        {"application/json"},
			"Content-Type":  {"application/json"},
		},
	}, nil
}

// Close lets go of idle connections.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// BaseURL checks a provider's address and strips a trailing slash.
func BaseURL(raw string) (string, error) {
	u, err := url.Parse(raw)
	switch {
	case err != nil:
		return "", fmt.Errorf("provider address: %w", err)
	case u.Scheme != "http" && u.Scheme != "https", u.Host == "", u.User != nil, u.RawQuery != "", u.Fragment != "":
		return "", fmt.Errorf("provider address %q is not a plain http or https address", u.Redacted())
	}
	return strings.TrimSuffix(raw, "/"), nil
}

// NewHTTPClient gives a client of its own transport: many kept connections to
// one peer, no proxy taken from the environment, and no redirects, which would
// carry a key to an address nobody configured.
func NewHTTPClient() *http.Client {
	return &http.Client{
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		Transport: &http.Transport{
			DialContext:            (&net.Dialer{Timeout: 2 * time.Second, KeepAlive: 30 * time.Second}).DialContext,
			TLSHandshakeTimeout:    5 * time.Second,
			MaxIdleConns:           256,
			MaxIdleConnsPerHost:    256,
			MaxConnsPerHost:        256,
			IdleConnTimeout:        30 * time.Second,
			MaxResponseHeaderBytes: 64 << 10,
			DisableCompression:     true,
		},
	}
}

// get reads one resource of a tenant into out and gives the answer's bytes.
func (c *Client) get(ctx context.Context, path, tenant string, out any) ([]byte, error) {
	return c.do(ctx, http.MethodGet, path+"?tenant="+tenant, nil, out)
}

func (c *Client) do(ctx context.Context, method, path string, body []byte, out any) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, method, c.base+path, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	req.Header = c.header                        // never written to after New
	resp, err := c.http.Transport.RoundTrip(req) // no redirects, no cookies: one request is one request
	if err != nil {
		return nil, unavailable(err)
	}
	defer func() { _ = resp.Body.Close() }() // everything wanted has been read
	raw, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer+1))
	if err != nil {
		return nil, unavailable(err)
	}
	if err := statusError(resp.StatusCode); err != nil {
		return nil, err
	}
	if len(raw) > maxAnswer {
		return nil, unavailable(fmt.Errorf("answer is larger than %d bytes", maxAnswer))
	}
	if err := json.Unmarshal(raw, out); err != nil {
		return nil, unavailable(fmt.Errorf("decode answer: %w", err))
	}
	return raw, nil
}

func unavailable(err error) error { return fmt.Errorf("%w: %w", ErrUnavailable, err) }

func statusError(status int) error {
	switch {
	case status == http.StatusOK:
		return nil
	case status == http.StatusNotFound:
		return ErrNotFound
	case status == http.StatusUnauthorized, status == http.StatusForbidden:
		return fmt.Errorf("%w: status %d", ErrUnauthorized, status)
	case status == http.StatusRequestTimeout, status == http.StatusTooEarly, status == http.StatusTooManyRequests, status >= 500:
		return fmt.Errorf("%w: status %d", ErrUnavailable, status)
	}
	return fmt.Errorf("%w: status %d", ErrRejected, status)
}

// tokens checks what goes into a path or a query; it needs no escaping then.
func tokens(named ...string) error {
	if err := ident.Tokens(named...); err != nil {
		return fmt.Errorf("%w: %w", ErrRejected, err)
	}
	return nil
}
