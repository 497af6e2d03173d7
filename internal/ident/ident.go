package ident

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// MaxToken is the longest accepted token, in bytes.
const MaxToken = 64

// ErrToken marks a value that may not become a subject token.
var ErrToken = errors.New("not a valid identifier")

// Token checks that s is 1 to 64 characters of [A-Za-z0-9_-].
func Token(s string) error {
	if s == "" || len(s) > MaxToken {
		return fmt.Errorf("%w: length %d, want 1 to %d", ErrToken, len(s), MaxToken)
	}
	for i := range len(s) {
		c := s[i]
		switch {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', c == '_', c == '-':
		default:
			return fmt.Errorf("%w: byte %#02x at %d", ErrToken, c, i)
		}
	}
	return nil
}

// Tokens checks several values and names the first that fails.
func Tokens(named ...string) error {
	for i := 0; i+1 < len(named); i += 2 {
		if err := Token(named[i+1]); err != nil {
			return fmt.Errorf("%s: %w", named[i], err)
		}
	}
	return nil
}

// Derive gives the message id that follows from parts at a recorded moment:
// the time bits are at, in milliseconds, the rest is a hash of parts.
func Derive(at time.Time, parts ...string) string {
	h := sha256.New()
	for _, p := range parts {
		_, _ = fmt.Fprintf(h, "%d:%s", len(p), p) // a hash never fails to write
	}
	return uuid7(at, h.Sum(nil))
}

func uuid7(at time.Time, fill []byte) string {
	var b [16]byte
	copy(b[6:], fill)
	ms := max(at.UnixMilli(), 0)
	for i := range 6 {
		b[i] = byte(ms >> (8 * (5 - i)))
	}
	b[6] = b[6]&0x0f | 0x70
	b[8] = b[8]&0x3f | 0x80
	var out [36]byte
	hex.Encode(out[:8], b[:4])
	hex.Encode(out[9:13], b[4:6])
	hex.Encode(out[14:18], b[6:8])
	hex.Encode(out[19:23], b[8:10])
	hex.Encode(out[24:], b[10:])
	out[8], out[13], out[18], out[23] = '-', '-', '-', '-'
	return string(out[:])
}

// TimeOf gives the moment in a message id, to the millisecond. Unlike the
// broker's time of a message it is the same when the message is sent again, and
// so is then the id of what follows from it.
func TimeOf(id string) (time.Time, bool) {
	if len(id) != 36 {
		return time.Time{}, false
	}
	ms, err := strconv.ParseInt(id[:8]+id[9:13], 16, 64)
	return time.UnixMilli(ms), err == nil
}

// Case gives the case id of a post: one key of one tenant's channel and
// endpoint is one case, however often it is sent. Where customers choose their
// keys themselves, owner keeps those of one apart from another's; else there is
// none.
func Case(tenant, channel, endpoint, key string, owner ...string) string {
	h := sha256.New()
	for _, p := range append([]string{tenant, channel, endpoint, key}, owner...) {
		_, _ = fmt.Fprintf(h, "%d:%s", len(p), p)
	}
	return "req-" + hex.EncodeToString(h.Sum(nil)[:12])
}

// Suffix is the part of a case id that names its tasks, calls and approvals:
// req-8472 gives 8472.
func Suffix(caseID string) string { return strings.TrimPrefix(caseID, "req-") }

// Desk stands for the customer and the channel of a case that the desk opened
// itself, for people. Nobody outside may use it as an id.
const Desk = "_desk"

// Finding names a disagreement between records of money: a function of what
// disagrees and of nothing else, so that whoever finds it again names it alike.
func Finding(tenant, code, order string, records ...string) string {
	h := sha256.New()
	for _, p := range append([]string{tenant, code, order}, records...) {
		_, _ = fmt.Fprintf(h, "%d:%s", len(p), p) // a hash never fails to write
	}
	return "find-" + hex.EncodeToString(h.Sum(nil)[:12])
}

// FindingCase names the case people get a finding as when it is about no other.
func FindingCase(findingID string) string {
	return findingCase + strings.TrimPrefix(findingID, "find-")
}

// IsFindingCase reports whether an id is of a case that findings open; nobody
// outside may choose one.
func IsFindingCase(id string) bool { return strings.HasPrefix(id, findingCase) }

const findingCase = "fnd-"
