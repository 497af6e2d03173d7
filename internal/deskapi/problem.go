package deskapi

import (
	"net/http"
	"strconv"
	"time"
)

// ProblemType is the media type of a problem document.
const ProblemType = "application/problem+json"

// problemBase precedes a code in the type URI of a problem; it identifies, it
// need not resolve. docs/problems.md says what each code means.
const problemBase = "https://github.com/amends-dev/amends/problems/"

// Code says what went wrong; clients branch on it, never on words.
type Code string

// Codes of both APIs.
const (
	CodeUnauthenticated Code = "unauthenticated"
	CodeNotFound        Code = "not_found"
	CodeMethod          Code = "method_not_allowed"
	CodeBodyInvalid     Code = "body_invalid"
	CodeBodyTooLarge    Code = "body_too_large"
	CodeRateLimited     Code = "rate_limited"
	CodeOverloaded      Code = "overloaded"
	CodeUnavailable     Code = "unavailable"
	CodeInternal        Code = "internal"

	// What a good token does not allow.
	CodeInsufficient       Code = "token_insufficient"
	CodeTenantNotAllowed   Code = "tenant_not_allowed"
	CodeCustomerInvalid    Code = "customer_invalid"
	CodeCustomerNotAllowed Code = "customer_not_allowed"

	CodeCustomerMissing   Code = "customer_missing"
	CodeKeyMissing        Code = "idempotency_key_missing"
	CodeKeyInvalid        Code = "idempotency_key_invalid"
	CodeKeyReused         Code = "idempotency_key_reused"
	CodeCaseIDNotAllowed  Code = "case_id_not_allowed"
	CodeCaseClosed        Code = "case_closed"
	CodeNotConfirmed      Code = "not_confirmed"
	CodeQueryInvalid      Code = "query_invalid"
	CodeListUnavailable   Code = "list_unavailable"
	CodeNoAction          Code = "no_action"
	CodeNotInCustody      Code = "not_in_custody"
	CodeVersionNotReached Code = "version_not_reached"
	CodeDecisionMalformed Code = "decision_malformed"

	// Of the emergency stop.
	CodeRightMissing     Code = "right_missing"
	CodeStopConflict     Code = "stop_conflict"
	CodeStopUnconfirmed  Code = "stop_unconfirmed"
	CodeReconciling      Code = "reconciliation_running"
	CodeAuditUnavailable Code = "audit_unavailable"
)

// Problem is a problem document. As an error it is what a client got.
type Problem struct {
	Type   string `json:"type"`
	Title  string `json:"title"`
	Status int    `json:"status"`
	Code   Code   `json:"code"`
	Detail string `json:"detail,omitempty"`
	// Current is the switch a change of the emergency stop was refused over; no
	// channel is ever sent one.
	Current *Stop `json:"current,omitempty" api:"console"`
	// RetryAfter travels as the header of that name; 0 says nothing.
	RetryAfter time.Duration `json:"-"`
}

// NewProblem gives the problem of a status and code.
func NewProblem(status int, code Code, detail string) *Problem {
	return &Problem{Type: problemBase + string(code), Title: http.StatusText(status), Status: status, Code: code, Detail: detail}
}

// After gives the problem with the time after which a retry makes sense.
func (p *Problem) After(d time.Duration) *Problem {
	q := *p
	q.RetryAfter = d
	return &q
}

// Over gives the problem with the switch that is in the way.
func (p *Problem) Over(s Stop) *Problem {
	q := *p
	q.Current = &s
	return &q
}

func (p *Problem) Error() string {
	s := strconv.Itoa(p.Status) + " " + string(p.Code)
	if p.Detail != "" {
		s += ": " + p.Detail
	}
	return s
}
