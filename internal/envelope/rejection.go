package envelope

import "fmt"

// Reason codes of a rejection, in the order of the checks.
const (
	ReasonTooLarge         = "too_large"
	ReasonUndecodable      = "undecodable"
	ReasonSubjectMismatch  = "subject_mismatch"
	ReasonSenderForged     = "sender_forged"
	ReasonSenderNotAllowed = "sender_not_allowed"
	ReasonTypeUnknown      = "type_unknown"
	ReasonVersionUnknown   = "version_unknown"
	ReasonSchemaInvalid    = "schema_invalid"
	ReasonDeadlinePassed   = "deadline_passed"
)

// Rejection says why a message was refused. None of its reasons goes away by
// trying again. Err names fields and rules but never quotes the message.
type Rejection struct {
	Reason string
	Err    error
}

func (r *Rejection) Error() string { return r.Reason + ": " + r.Err.Error() }

func (r *Rejection) Unwrap() error { return r.Err }

func reject(reason, format string, args ...any) *Rejection {
	return &Rejection{Reason: reason, Err: fmt.Errorf(format, args...)}
}
