package refunds

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/amends-dev/amends/internal/ident"
	"github.com/amends-dev/amends/internal/payments"
	amendsv1 "github.com/amends-dev/amends/proto/amends/v1"
	"github.com/amends-dev/amends/services/refund-executor/provider"
)

const (
	maxAnswer      = 64 << 10
	maxKey         = 255
	defaultTimeout = 5 * time.Second
)

// Config says where the provider is and with which key it is written to.
type Config struct {
	URL string
	// Key is the refund-write API key's token.
	Key string
	// Timeout bounds one call; by default five seconds.
	Timeout time.Duration
	// KeyWindow is how long the provider promises to know a key.
	KeyWindow time.Duration
	// Now is the clock a call's last moment is judged by; by default time.Now.
	Now func() time.Time
}

// Client creates refunds. It is safe for concurrent use.
type Client struct {
	endpoint      string
	authorization string
	timeout       time.Duration
	now           func() time.Time
	http          *http.Client
}

// New gives a client; it connects when it is used.
func New(c Config) (*Client, error) {
	base, err := payments.BaseURL(c.URL)
	if err != nil {
		return nil, fmt.Errorf("refund client: %w", err)
	}
	if c.Key == "" {
		return nil, errors.New("refund client: no key")
	}
	if c.Timeout <= 0 {
		c.Timeout = defaultTimeout
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	return &Client{
		endpoint: base + "/v1/refunds", authorization: "Bearer " + c.Key,
		timeout: c.Timeout, now: c.Now, http: payments.NewHTTPClient(),
	}, nil
}

// Close lets go of idle connections.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// Create asks for the refund that body describes, once, under an idempotency
// key, and not after a moment. A repeat passes the same key and the same bytes.
func (c *Client) Create(ctx context.Context, key string, body []byte, notAfter time.Time) provider.Outcome {
	var asked wireRequest
	if err := json.Unmarshal(body, &asked); err != nil {
		return noEffect("body_invalid", err)
	}
	if !visible(key, maxKey) {
		return noEffect(provider.ReasonKeyInvalid, nil)
	}
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	payload := newOnce(body, func() bool { return !c.now().Before(notAfter) })
	// The type of payload is unknown to net/http, so it sets no GetBody: see
	// the package's doc on repeats.
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.endpoint, payload)
	if err != nil {
		return noEffect("request_invalid", err)
	}
	req.ContentLength = int64(len(body))
	req.Header = http.Header{
		"Authorization":   {c.authorization},
		"Content-Type":    {"application/json"},
		"Accept":          {"application/json"},
		"Idempotency-Key": {key},
	}
	resp, err := c.http.Do(req)
	if err != nil {
		switch nothing := payload.withdraw(); {
		case nothing && payload.expired.Load():
			return noEffect(provider.ReasonWithdrawn, err)
		case nothing:
			return noEffect("not_sent", err)
		}
		return unknown(lost(err), err)
	}
	defer func() { _ = resp.Body.Close() }() // everything wanted has been read
	answer, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if resp.StatusCode/100 != 2 {
		return refusal(resp.StatusCode, answer)
	}
	if err != nil {
		return unknown("answer_"+lost(err), err)
	}
	out := acknowledgement(asked, answer)
	out.Replayed = resp.Header.Get("Idempotent-Replayed") == "true"
	return out
}

// acknowledgement reads a 2xx: it counts only if it names a refund, and of
// exactly what was asked.
func acknowledgement(asked wireRequest, answer []byte) provider.Outcome {
	var a struct {
		Refund struct {
			RefundID    string `json:"refund_id"`
			PaymentID   string `json:"payment_id"`
			AmountMinor int64  `json:"amount_minor"`
			Currency    string `json:"currency"`
			Status      string `json:"status"`
		} `json:"refund"`
	}
	if err := json.Unmarshal(answer, &a); err != nil {
		return unknown("answer_unreadable", err)
	}
	r := a.Refund
	if err := ident.Token(r.RefundID); err != nil {
		return unknown("answer_without_refund_id", err)
	}
	if r.PaymentID != asked.PaymentID || r.AmountMinor != asked.AmountMinor || r.Currency != asked.Currency {
		return unknown("answer_mismatch", fmt.Errorf("refund %s is not the one asked for", r.RefundID))
	}
	return provider.Outcome{
		Class:    amendsv1.EffectClass_EFFECT_CLASS_ACKNOWLEDGED,
		RefundID: r.RefundID, Status: payments.RefundStatus(r.Status),
	}
}

// refusal classes every status that is not 2xx.
func refusal(status int, answer []byte) provider.Outcome {
	reason := problemCode(answer)
	if reason == "" {
		reason = "http_" + strconv.Itoa(status)
	}
	switch {
	case status == http.StatusUnauthorized, status == http.StatusForbidden,
		status == http.StatusTooEarly, status == http.StatusTooManyRequests:
		return noEffect(reason, nil)
	case status == http.StatusConflict && reason != provider.ReasonKeyReused,
		// Another request under the key may be at work, or this one was.
		status == http.StatusRequestTimeout:
		return unknown(reason, nil)
	case status >= 400 && status < 500:
		return provider.Outcome{Class: amendsv1.EffectClass_EFFECT_CLASS_REFUSED, Reason: reason}
	}
	return unknown(reason, nil)
}

// problemCode reads the code of a problem document; it is the provider's text,
// so nothing but a code passes.
func problemCode(answer []byte) string {
	var p struct {
		Code string `json:"code"`
	}
	if err := json.Unmarshal(answer, &p); err != nil || len(p.Code) > 64 ||
		strings.Trim(p.Code, "abcdefghijklmnopqrstuvwxyz0123456789_") != "" {
		return ""
	}
	return p.Code
}

// lost names how a connection ended.
func lost(err error) string {
	var timeout net.Error
	switch {
	case errors.As(err, &timeout) && timeout.Timeout(), errors.Is(err, context.DeadlineExceeded):
		return "timeout"
	case errors.Is(err, context.Canceled):
		return "canceled"
	}
	return "connection_lost"
}

func noEffect(reason string, err error) provider.Outcome {
	return provider.Outcome{Class: amendsv1.EffectClass_EFFECT_CLASS_NO_EFFECT, Reason: reason, Err: err}
}

func unknown(reason string, err error) provider.Outcome {
	return provider.Outcome{Class: amendsv1.EffectClass_EFFECT_CLASS_UNKNOWN, Reason: reason, Err: err}
}

// visible reports whether s is 1 to most visible ASCII characters.
func visible(s string, most int) bool {
	for i := range len(s) {
		if s[i] <= ' ' || s[i] >= 0x7f {
			return false
		}
	}
	return s != "" && len(s) <= most
}
