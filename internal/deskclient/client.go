package deskclient

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/amends-dev/amends/internal/deskapi"
)

const (
	// maxAnswer bounds one answer; a case record is at most some 256 KiB of
	// protobuf.
	maxAnswer = 4 << 20
	// callTimeout bounds a call; the servers wait up to 2 s for a version.
	callTimeout = 15 * time.Second
	// maxRetryAfter bounds what a server may ask for, in seconds.
	maxRetryAfter = 24 * 60 * 60
)

// Config says where one of the two APIs is and with which token.
type Config struct {
	// URL is scheme and host, e.g. http://127.0.0.1:8080.
	URL string
	// Token is the bearer token.
	Token string
	// CAFile holds the only authorities that the server's certificate may come
	// from; empty takes the system's.
	CAFile string
	// Transport is shared between clients; nil takes NewTransport. It excludes
	// CAFile.
	Transport http.RoundTripper
}

// NewTransport gives a transport that keeps enough connections open for the
// given number of concurrent callers.
func NewTransport(callers int) *http.Transport {
	return &http.Transport{
		DialContext:           (&net.Dialer{Timeout: 5 * time.Second}).DialContext,
		MaxIdleConns:          0, // bounded per host
		MaxIdleConnsPerHost:   callers,
		IdleConnTimeout:       time.Minute,
		TLSHandshakeTimeout:   5 * time.Second,
		ResponseHeaderTimeout: callTimeout,
		DisableCompression:    true,
		WriteBufferSize:       4 << 10,
		ReadBufferSize:        16 << 10,
	}
}

// api is one HTTP API.
type api struct {
	base  string
	auth  string
	trips http.RoundTripper
}

// CheckURL checks an address as a client would be given it.
func CheckURL(address string) error {
	_, err := parseURL(address)
	return err
}

func parseURL(address string) (*url.URL, error) {
	u, err := url.Parse(address)
	if err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Host == "" || strings.Trim(u.Path, "/") != "" {
		return nil, fmt.Errorf("address %q: want http://host:port or https://host:port", address)
	}
	return u, nil
}

func newAPI(cfg Config) (api, error) {
	u, err := parseURL(cfg.URL)
	if err != nil {
		return api{}, err
	}
	if cfg.Transport == nil {
		t := NewTransport(2)
		if t.TLSClientConfig, err = trust(cfg.CAFile); err != nil {
			return api{}, err
		}
		cfg.Transport = t
	} else if cfg.CAFile != "" {
		return api{}, errors.New("want either a transport or a CA file")
	}
	return api{base: u.Scheme + "://" + u.Host, auth: "Bearer " + cfg.Token, trips: cfg.Transport}, nil
}

// trust gives the TLS configuration of a CA file, nil without one.
func trust(file string) (*tls.Config, error) {
	if file == "" {
		return nil, nil //nolint:nilnil // nil is what net/http takes for the system's
	}
	text, err := os.ReadFile(file) //nolint:gosec // the user names the file
	if err != nil {
		return nil, fmt.Errorf("CA file: %w", err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(text) {
		return nil, fmt.Errorf("CA file: %s holds no certificate", file)
	}
	return &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}, nil
}

// call sends one request and decodes its answer into out.
func (a api) call(ctx context.Context, method, path string, header map[string]string, body []byte, out any) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	resp, err := a.send(ctx, method, path, header, body)
	if err != nil {
		return fmt.Errorf("%s %s: %w", method, path, err)
	}
	defer func() { _ = resp.Body.Close() }()
	data, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer+1))
	switch {
	case err != nil:
		return fmt.Errorf("%s %s: read the answer: %w", method, path, err)
	case len(data) > maxAnswer:
		return fmt.Errorf("%s %s: the answer is larger than %d bytes", method, path, maxAnswer)
	case resp.StatusCode >= http.StatusMultipleChoices:
		return problemOf(resp, data)
	}
	if err := json.Unmarshal(data, out); err != nil {
		return fmt.Errorf("%s %s: decode the answer: %w", method, path, err)
	}
	return nil
}

// send goes straight to the transport: no redirect is followed, so a token
// never travels to another host.
func (a api) send(ctx context.Context, method, path string, header map[string]string, body []byte) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, method, a.base+path, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Authorization", a.auth)
	if len(body) > 0 {
		req.Header.Set("Content-Type", "application/json")
	}
	for name, value := range header {
		if value != "" {
			req.Header.Set(name, value)
		}
	}
	return a.trips.RoundTrip(req)
}

// problemOf reads a problem document; an answer that is none becomes one.
func problemOf(resp *http.Response, data []byte) error {
	p := new(deskapi.Problem)
	if json.Unmarshal(data, p) != nil || p.Status != resp.StatusCode || p.Code == "" {
		p = deskapi.NewProblem(resp.StatusCode, deskapi.CodeInternal, "the answer is no problem document")
	}
	if s, err := strconv.Atoi(resp.Header.Get("Retry-After")); err == nil && s > 0 {
		p.RetryAfter = time.Duration(min(s, maxRetryAfter)) * time.Second
	}
	return p
}
