package webhook

import (
	"crypto/sha256"
	"encoding/binary"
	"net/http"
	"strconv"
	"time"
)

// delays are how long after each failed attempt the next one follows.
var delays = []time.Duration{
	5 * time.Second, 30 * time.Second, 2 * time.Minute, 10 * time.Minute, time.Hour, 6 * time.Hour, 24 * time.Hour,
}

// Attempts is how often a webhook is tried.
func Attempts() int { return len(delays) + 1 }

// maxRetryAfter bounds what a receiver may ask for.
const maxRetryAfter = 24 * time.Hour

// jitter is the part of a delay by which it may be longer.
const jitter = 5 // a fifth

// Schedule gives the delays without what is added to spread them.
func Schedule() []time.Duration { return append([]time.Duration(nil), delays...) }

// Delay is how long to wait after the failed-th failure in a row of a webhook;
// false when it is given up. Up to a fifth is added, by the hash of id and
// count, so that what failed together is not tried together.
func Delay(id string, failed int) (time.Duration, bool) {
	if failed < 1 || failed > len(delays) {
		return 0, false
	}
	d := delays[failed-1]
	sum := sha256.Sum256([]byte(id + "." + strconv.Itoa(failed)))
	return d + time.Duration(binary.BigEndian.Uint64(sum[:8])%uint64(d/jitter)), true
}

// Later gives the delay that a receiver asked for with Retry-After, where it is
// longer than the one there would be.
func Later(d, asked time.Duration) time.Duration { return max(d, min(asked, maxRetryAfter)) }

// retryAfter reads the header, in seconds or as a date; 0 when it says nothing.
func retryAfter(h http.Header, now time.Time) time.Duration {
	text := h.Get("Retry-After")
	if s, err := strconv.Atoi(text); err == nil {
		return time.Duration(max(0, min(s, int(maxRetryAfter/time.Second)))) * time.Second
	}
	if at, err := http.ParseTime(text); err == nil {
		return max(0, min(at.Sub(now), maxRetryAfter))
	}
	return 0
}
