package webhook

import (
	"errors"
	"net/http"
	"strconv"
	"time"
)

// Tolerance is how far a webhook's timestamp may be from now, either way.
const Tolerance = 5 * time.Minute

// maxSignatures bounds the bytes of a signature header.
const maxSignatures = 1024

// What a webhook is refused for.
var (
	ErrHeaders   = errors.New("a webhook header is missing, given twice or malformed")
	ErrSignature = errors.New("no signature of the webhook is right")
	ErrTimestamp = errors.New("the webhook's timestamp is too far from now")
)

// Verify checks a webhook and gives its id. The signature comes first: what
// nobody signed is refused as that, whatever its timestamp says.
func (s Secrets) Verify(header http.Header, body []byte, now time.Time) (id string, err error) {
	id, ok1 := only(header, HeaderID)
	stamp, ok2 := only(header, HeaderTimestamp)
	signature, ok3 := only(header, HeaderSignature)
	if !ok1 || !ok2 || !ok3 || !validID(id) || len(signature) > maxSignatures {
		return "", ErrHeaders
	}
	seconds, err := strconv.ParseInt(stamp, 10, 64)
	if err != nil || strconv.FormatInt(seconds, 10) != stamp {
		return "", ErrHeaders // another way to write it would be signed as this one
	}
	right := false
	for _, key := range s.keys {
		// The library's own check of the timestamp reads the clock itself.
		right = key.VerifyIgnoringTimestamp(body, header) == nil || right
	}
	if !right {
		return "", ErrSignature
	}
	if off := now.Sub(time.Unix(seconds, 0)); off > Tolerance || off < -Tolerance {
		return "", ErrTimestamp
	}
	return id, nil
}

func only(h http.Header, name string) (string, bool) {
	values := h[name]
	if len(values) != 1 {
		return "", false
	}
	return values[0], true
}
