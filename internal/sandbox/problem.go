package sandbox

import (
	"encoding/json"
	"errors"
	"net/http"
	"strconv"
)

// Problem codes; they are API, the texts are not.
const (
	codeUnauthorized      = "unauthorized"
	codeWrongScope        = "wrong_scope"
	codeNotFound          = "not_found"
	codeMethodNotAllowed  = "method_not_allowed"
	codeInvalidRequest    = "invalid_request"
	codeBodyTooLarge      = "body_too_large"
	codeMediaType         = "unsupported_media_type"
	codeOrderNotFound     = "order_not_found"
	codePaymentNotFound   = "payment_not_found"
	codeRefundNotFound    = "refund_not_found"
	codeKeyRequired       = "idempotency_key_required"
	codeKeyInvalid        = "idempotency_key_invalid"
	codeKeyReused         = "idempotency_key_reused"
	codeAmountNotPositive = "amount_not_positive"
	codeCurrencyMismatch  = "currency_mismatch"
	codeDisputed          = "disputed"
	codeNotRefundable     = "not_refundable"
	codeExceedsRemaining  = "amount_exceeds_remaining"
	codeLedgerInvalid     = "ledger_invalid"
	codeJournal           = "journal_unavailable"
	codeInternal          = "internal"
	codeUnavailable       = "unavailable"
)

// problem is an error that is answered as RFC 9457 problem details.
type problem struct {
	status int
	code   string
	detail string
	// allow goes with 405.
	allow string
	// fault: it is there because a fault says so.
	fault bool
}

func (p *problem) Error() string {
	if p.detail == "" {
		return p.code
	}
	return p.code + ": " + p.detail
}

func notFound(code string) error { return &problem{status: http.StatusNotFound, code: code} }

func unprocessable(code string) error {
	return &problem{status: http.StatusUnprocessableEntity, code: code}
}

func invalid(err error) error {
	return &problem{status: http.StatusBadRequest, code: codeInvalidRequest, detail: err.Error()}
}

// problemOf classifies an error once; what is not a problem is ours to mend.
func problemOf(err error) *problem {
	var p *problem
	var tooLarge *http.MaxBytesError
	switch {
	case errors.As(err, &p):
		return p
	case errors.As(err, &tooLarge):
		return &problem{status: http.StatusRequestEntityTooLarge, code: codeBodyTooLarge}
	case errors.Is(err, errJournal):
		return &problem{status: http.StatusServiceUnavailable, code: codeJournal}
	}
	return &problem{status: http.StatusInternalServerError, code: codeInternal}
}

func (p *problem) write(w http.ResponseWriter) {
	body, err := json.Marshal(struct {
		Type   string `json:"type"`
		Title  string `json:"title"`
		Status int    `json:"status"`
		Code   string `json:"code"`
		Detail string `json:"detail,omitempty"`
	}{"about:blank", http.StatusText(p.status), p.status, p.code, p.detail})
	if err != nil { // strings and a number always encode
		panic(err)
	}
	h := w.Header()
	switch p.status {
	case http.StatusUnauthorized:
		h.Set("WWW-Authenticate", "Bearer")
	case http.StatusMethodNotAllowed:
		h.Set("Allow", p.allow)
	case http.StatusRequestEntityTooLarge:
		h.Set("Connection", "close") // the rest of the body stays unread
	}
	send(w, p.status, "application/problem+json", body)
}

func send(w http.ResponseWriter, status int, contentType string, body []byte) {
	h := w.Header()
	h.Set("Content-Type", contentType)
	h.Set("Content-Length", strconv.Itoa(len(body)))
	h.Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_, _ = w.Write(body) // a client that left cannot be told
}
