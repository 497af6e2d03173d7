package bus

import (
	"errors"
	"fmt"
)

// What a publish or read can end as; tested with errors.Is.
var (
	// ErrConflict: the subject's last sequence was not the expected one.
	ErrConflict = errors.New("the subject has moved on")
	// ErrUncertain: sent, and no answer came; it may have been stored.
	ErrUncertain = errors.New("no acknowledgement; the message may have been stored")
	// ErrDenied: the broker's permissions refuse it.
	ErrDenied = errors.New("not permitted")
	// ErrUnavailable: nothing was sent or nobody was there to take it.
	ErrUnavailable = errors.New("broker not available; nothing was stored")
	// ErrNotFound: the stream holds no such message.
	ErrNotFound = errors.New("no such message")
	// ErrMissing: a stream or consumer the manifest requires is not there.
	ErrMissing = errors.New("a required stream or consumer is missing")
)

// Error codes of the JetStream API that callers are told apart by.
const (
	codeWrongLastSequence     = 10071
	codeWrongLastSequenceRepl = 10164 // the same, found by a replica
	codeNoMessageFound        = 10037
	codeConsumerNotFound      = 10014
	codeStreamNotFound        = 10059
)

// APIError is what the broker's API answered, when it is none of the errors
// above. It means that nothing was stored.
type APIError struct {
	Status      int    `json:"code"`
	Code        int    `json:"err_code"`
	Description string `json:"description"`
}

func (e *APIError) Error() string {
	return fmt.Sprintf("broker error %d: %s", e.Code, e.Description)
}

// Is classifies the codes that callers branch on.
func (e *APIError) Is(target error) bool {
	switch e.Code {
	case codeWrongLastSequence, codeWrongLastSequenceRepl:
		return target == ErrConflict
	case codeNoMessageFound:
		return target == ErrNotFound
	case codeConsumerNotFound, codeStreamNotFound:
		return target == ErrMissing
	}
	return false
}
