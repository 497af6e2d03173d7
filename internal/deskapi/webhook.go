package deskapi

import "time"

// WebhookReply is the type of a webhook that carries a reply.
const WebhookReply = "case.reply"

// Webhook is the body of a webhook to a channel.
type Webhook struct {
	Type      string      `json:"type"`
	Timestamp *time.Time  `json:"timestamp,omitempty"`
	Data      WebhookData `json:"data"`
}

// WebhookData says which case sent which reply, and the state it was in then.
type WebhookData struct {
	CaseID    string    `json:"case_id"`
	RequestID string    `json:"request_id"`
	State     string    `json:"state"`
	Reply     ViewReply `json:"reply"`
}

// Deliveries answers what became of a case's webhooks.
type Deliveries struct {
	CaseID     string     `json:"case_id"`
	Deliveries []Delivery `json:"deliveries"`
}

// Delivery is one reply on its way to the channel's webhook.
type Delivery struct {
	WebhookID string `json:"webhook_id"`
	// Version is the one that sent the reply.
	Version uint64 `json:"version"`
	Kind    string `json:"kind"`
	// Status is pending, delivered, given_up or suppressed.
	Status    string     `json:"status"`
	CreatedAt *time.Time `json:"created_at,omitempty"`
	// NextAt is when a pending one is tried next, or taken up again when an
	// attempt under way is not heard of.
	NextAt    *time.Time        `json:"next_at,omitempty"`
	SettledAt *time.Time        `json:"settled_at,omitempty"`
	Attempts  []DeliveryAttempt `json:"attempts"`
}

// DeliveryAttempt is one request to a webhook.
type DeliveryAttempt struct {
	Number uint32     `json:"number"`
	At     *time.Time `json:"at,omitempty"`
	// StatusCode is left out when there was no answer.
	StatusCode uint32 `json:"status_code,omitempty"`
	// Reason is a code: delivered, status, gone, timeout, address_refused,
	// name_not_resolved, tls, unreachable, request_invalid.
	Reason string `json:"reason"`
}
