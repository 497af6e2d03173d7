package deskapi

import "time"

// Headers of the gateway's API.
const (
	HeaderIdempotencyKey = "Idempotency-Key"
	HeaderCustomer       = "X-Customer-Id"
	HeaderRequestID      = "X-Request-Id"
	HeaderLastEventID    = "Last-Event-ID"
)

// CasesPath is where cases are posted and read.
const CasesPath = "/v1/cases"

// CasePath is where one case is read.
func CasePath(caseID string) string { return CasesPath + "/" + caseID }

// EventsPath is where one case is followed.
func EventsPath(caseID string) string { return CasePath(caseID) + "/events" }

// MessagesPath is where later messages of a case's customer are posted.
func MessagesPath(caseID string) string { return CasePath(caseID) + "/messages" }

// CancelPath is where a customer withdraws a case.
func CancelPath(caseID string) string { return CasePath(caseID) + "/cancel" }

// DeliveriesPath is where the webhooks of one case are looked at.
func DeliveriesPath(caseID string) string { return CasePath(caseID) + "/deliveries" }

// ProviderEventsPath is where the payments provider posts its webhooks.
const ProviderEventsPath = "/v1/provider/events"

// Post is the body of a new case.
type Post struct {
	Message string `json:"message"`
	// CaseID names the case; only a channel entitled to it may.
	CaseID string `json:"case_id,omitempty"`
}

// Accepted answers a post. Every retry of a post gets the same answer.
type Accepted struct {
	CaseID    string `json:"case_id"`
	RequestID string `json:"request_id"`
	// State is the one every case starts in.
	State string `json:"state"`
	Links Links  `json:"links"`
}

// Message is the body of a later message.
type Message struct {
	Message string `json:"message"`
}

// AcceptedMessage answers a message or a cancel. Every retry has the same id.
type AcceptedMessage struct {
	CaseID    string `json:"case_id"`
	MessageID string `json:"message_id"`
	Links     Links  `json:"links"`
}

// Links are paths on the gateway.
type Links struct {
	Self   string `json:"self"`
	Events string `json:"events"`
}

// LinksOf gives the links of a case.
func LinksOf(caseID string) Links {
	return Links{Self: CasePath(caseID), Events: EventsPath(caseID)}
}

// View is what a customer may see of a case at one version.
type View struct {
	CaseID    string      `json:"case_id"`
	RequestID string      `json:"request_id"`
	Version   uint64      `json:"version"`
	State     string      `json:"state"`
	OrderID   string      `json:"order_id,omitempty"`
	OpenedAt  *time.Time  `json:"opened_at,omitempty"`
	UpdatedAt *time.Time  `json:"updated_at,omitempty"`
	Timeline  []ViewEntry `json:"timeline"`
	Replies   []ViewReply `json:"replies"`
	// NextAt is when something is due next, and Next says what.
	NextAt *time.Time `json:"next_at,omitempty"`
	Next   string     `json:"next,omitempty"`
	Closed bool       `json:"closed"`
	// ContinuedBy is the linked case in which the customer wrote on after this
	// one was closed.
	ContinuedBy string `json:"continued_by,omitempty"`
	TraceID     string `json:"trace_id,omitempty"`
}

// ViewEntry is one version of the case.
type ViewEntry struct {
	Version uint64     `json:"version"`
	State   string     `json:"state"`
	At      *time.Time `json:"at,omitempty"`
}

// ViewReply is a verified text that was sent to the customer.
type ViewReply struct {
	Kind    string     `json:"kind"`
	Text    string     `json:"text"`
	SentAt  *time.Time `json:"sent_at,omitempty"`
	Version uint64     `json:"version"`
}

// RequestsPath is where all cases of one request are read.
const RequestsPath = "/v1/requests"

// RequestPath is where one request is read.
func RequestPath(requestID string) string { return RequestsPath + "/" + requestID }

// OpenAPIPath is where the description of the API is served.
const OpenAPIPath = "/openapi.json"

// ParamState names the query parameter of a state; ParamLimit and ParamCursor
// are those of every list.
const ParamState = "state"

// CaseList is part of a customer's cases, newest first.
type CaseList struct {
	Cases []CaseSummary `json:"cases"`
	// Next is the cursor of what follows; absent at the end.
	Next string `json:"next,omitempty"`
}

// CaseSummary is what a list shows of a case.
type CaseSummary struct {
	CaseID    string     `json:"case_id"`
	RequestID string     `json:"request_id"`
	OrderID   string     `json:"order_id,omitempty"`
	State     string     `json:"state"`
	Version   uint64     `json:"version"`
	Closed    bool       `json:"closed"`
	OpenedAt  *time.Time `json:"opened_at,omitempty"`
	UpdatedAt *time.Time `json:"updated_at,omitempty"`
	Links     Links      `json:"links"`
}

// Request is what a customer asked for in one go, with the cases made of it.
type Request struct {
	RequestID string `json:"request_id"`
	// Closed says that every case is.
	Closed bool   `json:"closed"`
	Cases  []View `json:"cases"`
}
