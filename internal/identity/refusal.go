package identity

import "errors"

// Reason says why a token is refused; for metrics and logs, never for whoever
// sent it.
type Reason string

// Reasons of a refusal.
const (
	Oversized   Reason = "oversized"
	Malformed   Reason = "malformed"
	Type        Reason = "type"
	Algorithm   Reason = "algorithm"
	KeyUnknown  Reason = "key_unknown"
	Signature   Reason = "signature"
	Issuer      Reason = "issuer"
	Audience    Reason = "audience"
	Party       Reason = "party"
	Expired     Reason = "expired"
	NotYetValid Reason = "not_yet_valid"
	Times       Reason = "times"
	Bound       Reason = "bound"
)

// Refusal is a token that is not good.
type Refusal struct{ Reason Reason }

func (r *Refusal) Error() string { return "token refused: " + string(r.Reason) }

func refuse(r Reason) error { return &Refusal{Reason: r} }

// ErrUnavailable: the issuer's keys are not there, so the token cannot be
// judged.
var ErrUnavailable = errors.New("keys of the issuer not available")
