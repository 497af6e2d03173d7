package edge

import (
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"strings"
)

// maxToken bounds what is hashed for a credential.
const maxToken = 512

// Tokens finds the holder of a secret token. Only SHA-256 hashes are kept, so
// tokens must be random, not words.
type Tokens[T any] struct{ entries []tokenEntry[T] }

type tokenEntry[T any] struct {
	sum    [sha256.Size]byte
	holder T
}

// Add registers a holder under the lower-case hex SHA-256 of its token.
func (t *Tokens[T]) Add(sha256Hex string, holder T) error {
	raw, err := hex.DecodeString(sha256Hex)
	if err != nil || len(raw) != sha256.Size || strings.ToLower(sha256Hex) != sha256Hex {
		return errors.New("not a SHA-256 in lower-case hex")
	}
	e := tokenEntry[T]{sum: [sha256.Size]byte(raw), holder: holder}
	for _, other := range t.entries {
		if other.sum == e.sum {
			return fmt.Errorf("the same token is listed twice")
		}
	}
	t.entries = append(t.entries, e)
	return nil
}

// Find gives the holder of a token. It looks at every entry, whichever matches,
// so its time says nothing about the hashes.
func (t *Tokens[T]) Find(token string) (T, bool) {
	var holder T
	if token == "" || len(token) > maxToken {
		return holder, false
	}
	sum := sha256.Sum256([]byte(token))
	found := false
	for i := range t.entries {
		if subtle.ConstantTimeCompare(sum[:], t.entries[i].sum[:]) == 1 {
			holder, found = t.entries[i].holder, true
		}
	}
	return holder, found
}

// Bearer gives the bearer token of a request, or nothing. Of several credentials
// none counts: somebody on the way may have read another one.
func Bearer(r *http.Request) string {
	values := r.Header.Values("Authorization")
	if len(values) != 1 {
		return ""
	}
	scheme, token, ok := strings.Cut(values[0], " ")
	if !ok || !strings.EqualFold(scheme, "Bearer") {
		return ""
	}
	return token
}
