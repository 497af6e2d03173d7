package webhook

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"net/http"
	"time"
)

const (
	// sendTimeout bounds an attempt as a whole.
	sendTimeout = 10 * time.Second
	// maxAnswer is how much of an answer is read; nothing of it is used.
	maxAnswer = 4 << 10
	idleConns = 4
)

// Reason says what became of an attempt.
type Reason string

// The reasons. All but the first are failures.
const (
	ReasonDelivered   Reason = "delivered"
	ReasonStatus      Reason = "status" // an answer that is neither 2xx nor 410
	ReasonGone        Reason = "gone"   // 410: the receiver wants no more
	ReasonTimeout     Reason = "timeout"
	ReasonAddress     Reason = "address_refused"
	ReasonName        Reason = "name_not_resolved"
	ReasonTLS         Reason = "tls"
	ReasonUnreachable Reason = "unreachable"
	ReasonRequest     Reason = "request_invalid"
)

// Outcome is what became of an attempt.
type Outcome struct {
	Reason Reason
	// Status is the answer's, 0 without one.
	Status int
	// RetryAfter is what the receiver asked for, or 0.
	RetryAfter time.Duration
	Took       time.Duration
}

// Options are what a Client may be given beside its defaults.
type Options struct {
	// Private lets it reach any address.
	Private bool
	// Roots replace the system's certificate authorities.
	Roots *x509.CertPool
	Now   func() time.Time
}

// Client sends webhooks.
type Client struct {
	trips *http.Transport
	now   func() time.Time
}

// NewClient gives a client; Close it when done.
func NewClient(o Options) *Client {
	dialer := &net.Dialer{Timeout: sendTimeout / 2, FallbackDelay: time.Second}
	if !o.Private {
		dialer.Control = publicOnly
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	return &Client{now: o.Now, trips: &http.Transport{
		Proxy:                  nil, // a proxy would resolve the name itself
		DialContext:            dialer.DialContext,
		TLSClientConfig:        &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: o.Roots},
		TLSHandshakeTimeout:    sendTimeout / 2,
		ResponseHeaderTimeout:  sendTimeout,
		MaxResponseHeaderBytes: 16 << 10,
		MaxIdleConnsPerHost:    idleConns,
		IdleConnTimeout:        time.Minute,
		DisableCompression:     true,
		ForceAttemptHTTP2:      true,
	}}
}

// Close drops the connections that are kept.
func (c *Client) Close() { c.trips.CloseIdleConnections() }

// Send makes one attempt. It goes straight to the transport: a redirect is an
// answer like others, and is not followed.
func (c *Client) Send(ctx context.Context, url string, header http.Header, body []byte) Outcome {
	ctx, cancel := context.WithTimeout(ctx, sendTimeout)
	defer cancel()
	start := c.now()
	o := c.send(ctx, url, header, body)
	o.Took = c.now().Sub(start)
	return o
}

func (c *Client) send(ctx context.Context, url string, header http.Header, body []byte) Outcome {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		return Outcome{Reason: ReasonRequest}
	}
	for name, values := range header {
		req.Header[name] = values
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("User-Agent", "amends-webhooks/1")
	resp, err := c.trips.RoundTrip(req)
	if err != nil {
		return Outcome{Reason: reasonOf(err)}
	}
	defer func() { _ = resp.Body.Close() }()                         // nothing of it is wanted
	_, _ = io.Copy(io.Discard, io.LimitReader(resp.Body, maxAnswer)) // so that the connection can be used again
	o := Outcome{Status: resp.StatusCode, Reason: ReasonStatus, RetryAfter: retryAfter(resp.Header, c.now())}
	switch {
	case resp.StatusCode >= 200 && resp.StatusCode < 300:
		o.Reason = ReasonDelivered
	case resp.StatusCode == http.StatusGone:
		o.Reason = ReasonGone
	}
	return o
}

func reasonOf(err error) Reason {
	var network net.Error
	var name *net.DNSError
	var cert *tls.CertificateVerificationError
	var record tls.RecordHeaderError
	var alert tls.AlertError
	switch {
	case errors.Is(err, errAddress):
		return ReasonAddress
	case errors.As(err, &name):
		return ReasonName
	case errors.As(err, &cert), errors.As(err, &record), errors.As(err, &alert):
		return ReasonTLS
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &network) && network.Timeout():
		return ReasonTimeout
	}
	return ReasonUnreachable
}
