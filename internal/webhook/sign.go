package webhook

import (
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
)

// The headers of a webhook.
const (
	HeaderID        = "Webhook-Id"
	HeaderTimestamp = "Webhook-Timestamp"
	HeaderSignature = "Webhook-Signature"
)

const (
	secretPrefix = "whsec_"
	// The length of a secret in bytes, as the standard has it.
	minSecret, maxSecret = 24, 64
	// maxSecrets bounds a rotation.
	maxSecrets = 4
	maxID      = 128
)

// Secrets are what one party signs with, the newest first. More than one is
// a rotation that is under way.
type Secrets struct{ keys []*standardwebhooks.Webhook }

// ParseSecrets reads secrets of the form whsec_<base64 of 24 to 64 bytes>. The
// error never quotes one.
func ParseSecrets(texts ...string) (Secrets, error) {
	if len(texts) == 0 || len(texts) > maxSecrets {
		return Secrets{}, fmt.Errorf("%d webhook secrets, want 1 to %d", len(texts), maxSecrets)
	}
	var s Secrets
	for i, text := range texts {
		encoded, ok := strings.CutPrefix(text, secretPrefix)
		raw, err := base64.StdEncoding.Strict().DecodeString(encoded)
		if !ok || err != nil || strings.ContainsAny(encoded, "\r\n") || len(raw) < minSecret || len(raw) > maxSecret {
			return Secrets{}, fmt.Errorf("webhook secret %d: want %s and the base64 of %d to %d bytes", i+1, secretPrefix, minSecret, maxSecret)
		}
		key, err := standardwebhooks.NewWebhookRaw(raw)
		if err != nil {
			return Secrets{}, fmt.Errorf("webhook secret %d: not usable", i+1)
		}
		s.keys = append(s.keys, key)
	}
	return s, nil
}

// FormatSecret gives the text form of a secret of random bytes.
func FormatSecret(raw []byte) string { return secretPrefix + base64.StdEncoding.EncodeToString(raw) }

// Sign gives the headers of a webhook that is sent at a time.
func (s Secrets) Sign(id string, at time.Time, body []byte) (http.Header, error) {
	if !validID(id) {
		return nil, errors.New("sign a webhook: its id is not 1 to 128 visible ASCII characters without a dot")
	}
	if len(s.keys) == 0 {
		return nil, errors.New("sign a webhook: no secret")
	}
	signatures := make([]string, len(s.keys))
	for i, key := range s.keys {
		var err error
		if signatures[i], err = key.Sign(id, at, body); err != nil {
			return nil, fmt.Errorf("sign a webhook: %w", err)
		}
	}
	return http.Header{
		HeaderID: {id}, HeaderTimestamp: {strconv.FormatInt(at.Unix(), 10)}, HeaderSignature: {strings.Join(signatures, " ")},
	}, nil
}

// validID: with a dot in it, id and timestamp could not be told apart in what
// is signed.
func validID(id string) bool {
	return id != "" && len(id) <= maxID && !strings.ContainsFunc(id, func(c rune) bool { return c <= ' ' || c > '~' || c == '.' })
}
