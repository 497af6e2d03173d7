package taskwork

import (
	"errors"

	"github.com/amends-dev/amends/internal/bus"
	"github.com/amends-dev/amends/internal/tools"
	amendsv1 "github.com/amends-dev/amends/proto/amends/v1"
)

// Reasons of a task.error that this package gives.
const (
	ReasonEngineFailed  = "engine_failed"
	ReasonResultInvalid = "result_invalid"
	ReasonTargetDenied  = "target_denied"
	ReasonSliceDenied   = "slice_denied"
	ReasonScopeDenied   = "scope_denied"
	ReasonEffectsDenied = "effects_denied"
	ReasonLeaseExpired  = "lease_expired"
	ReasonHopLimit      = "hop_limit"
	ReasonVersionDenied = "version_denied"
)

// Failure is an engine's error with what the orchestrator is told.
type Failure struct {
	Reason    string
	Retryable bool
	Err       error
	// Session, if any, gives the calls that were made and what they used.
	Session *tools.Session
}

func (f *Failure) Error() string {
	if f.Err == nil {
		return f.Reason
	}
	return f.Reason + ": " + f.Err.Error()
}

func (f *Failure) Unwrap() error { return f.Err }

// Fail gives the error of an engine that cannot do its task; reason is a
// reason code. retryable says that another attempt may succeed.
func Fail(reason string, retryable bool, err error) error {
	return &Failure{Reason: reason, Retryable: retryable, Err: err}
}

// taskError gives the answer to a failed task. An error nobody classified may
// be tried again.
func taskError(err error, messageID string) *amendsv1.TaskError {
	f, ok := errors.AsType[*Failure](err)
	if !ok {
		f = &Failure{Reason: ReasonEngineFailed, Retryable: true, Err: err}
	}
	out := &amendsv1.TaskError{Reason: f.Reason, Retryable: f.Retryable, MessageId: messageID}
	if f.Err != nil {
		out.Detail = bus.Mask(f.Err.Error())
	}
	if f.Session != nil {
		out.Calls, out.Usage = f.Session.Calls(), f.Session.Usage()
	}
	return out
}
