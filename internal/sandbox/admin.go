package sandbox

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"
)

// Admin is a client of the admin routes, for seeding and for counting what
// happened. It holds an admin key, which no service of the desk has.
type Admin struct {
	url, key string
	client   *http.Client
}

// NewAdmin gives a client for a sandbox's address and an admin token.
func NewAdmin(address, token string) *Admin {
	return &Admin{url: address, key: token, client: &http.Client{Timeout: time.Minute}}
}

// Load merges a ledger, all of it or nothing. One call takes at most 32 MiB;
// a larger ledger goes in parts, an order together with what is on it.
func (a *Admin) Load(ctx context.Context, l Ledger) error {
	if err := a.call(ctx, http.MethodPut, "/v1/admin/ledger", l, nil); err != nil {
		return fmt.Errorf("load ledger: %w", err)
	}
	return nil
}

// Ledger reads everything back, sorted by tenant and order.
func (a *Admin) Ledger(ctx context.Context) (Ledger, error) {
	var l Ledger
	if err := a.call(ctx, http.MethodGet, "/v1/admin/ledger", nil, &l); err != nil {
		return Ledger{}, fmt.Errorf("read ledger: %w", err)
	}
	return l, nil
}

// SetRefundStatus says what became of a refund, e.g. succeeded or failed.
func (a *Admin) SetRefundStatus(ctx context.Context, refundID, status string) error {
	err := a.call(ctx, http.MethodPost, "/v1/admin/refunds/"+url.PathEscape(refundID), map[string]string{"status": status}, nil)
	if err != nil {
		return fmt.Errorf("set refund status: %w", err)
	}
	return nil
}

// SetCaptureStatus says what became of a payment: captured, settled, expired or
// anything else.
func (a *Admin) SetCaptureStatus(ctx context.Context, tenant, paymentID, status string) error {
	body := map[string]string{"tenant": tenant, "status": status}
	if err := a.call(ctx, http.MethodPost, "/v1/admin/captures/"+url.PathEscape(paymentID), body, nil); err != nil {
		return fmt.Errorf("set capture status: %w", err)
	}
	return nil
}

// SetFaults puts other faults in the place of those there are, all or nothing.
func (a *Admin) SetFaults(ctx context.Context, f Faults) error {
	if err := a.call(ctx, http.MethodPut, "/v1/admin/faults", faultList{list(f)}, nil); err != nil {
		return fmt.Errorf("set faults: %w", err)
	}
	return nil
}

// Faults gives the faults with how often each struck.
func (a *Admin) Faults(ctx context.Context) (Faults, error) {
	var l faultList
	if err := a.call(ctx, http.MethodGet, "/v1/admin/faults", nil, &l); err != nil {
		return nil, fmt.Errorf("read faults: %w", err)
	}
	return l.Faults, nil
}

// ClearFaults takes every fault away.
func (a *Admin) ClearFaults(ctx context.Context) error {
	if err := a.call(ctx, http.MethodDelete, "/v1/admin/faults", nil, nil); err != nil {
		return fmt.Errorf("clear faults: %w", err)
	}
	return nil
}

func (a *Admin) call(ctx context.Context, method, path string, in, out any) error {
	var body io.Reader
	if in != nil {
		data, err := json.Marshal(in)
		if err != nil {
			return fmt.Errorf("encode request: %w", err)
		}
		body = bytes.NewReader(data)
	}
	req, err := http.NewRequestWithContext(ctx, method, a.url+path, body)
	if err != nil {
		return err
	}
	req.Header.Set("Authorization", "Bearer "+a.key)
	req.Header.Set("Content-Type", "application/json")
	resp, err := a.client.Do(req)
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }() // everything wanted has been read
	if resp.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(io.LimitReader(resp.Body, 4096)) // for the message only
		return fmt.Errorf("status %d: %s", resp.StatusCode, text)
	}
	if out == nil {
		return nil
	}
	if err := json.NewDecoder(resp.Body).Decode(out); err != nil {
		return fmt.Errorf("decode answer: %w", err)
	}
	return nil
}
