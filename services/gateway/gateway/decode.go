package gateway

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"unicode/utf8"

	"github.com/amends-dev/amends/internal/deskapi"
	"github.com/amends-dev/amends/internal/ident"
	"github.com/amends-dev/amends/internal/masking"
	amendsv1 "github.com/amends-dev/amends/proto/amends/v1"
)

const (
	// maxMessage bounds the customer's text, in bytes of UTF-8.
	maxMessage = 16 << 10
	// maxBody leaves room for a text of that size written in \u escapes.
	maxBody = 6*maxMessage + 1024
	// maxKey bounds an Idempotency-Key.
	maxKey = 128
)

// post is the decoded body of a new case or of a message.
type post struct {
	// message is masked: card numbers, codes and accounts go no further than
	// here. flags say what was found.
	message string
	flags   []amendsv1.TextFlag
	// caseID is set when the caller named the case.
	caseID string
	// sha256 is what another request is told by: requestHash of the rest.
	sha256 string
}

// requestHash is a function of what is stored and of nothing that was masked:
// the hash is kept beside the text, and a hash of the body would give away a
// code or a card's digits to whoever tries them all. So bodies that differ
// in what is masked, or in how their JSON is written, are the same request.
func requestHash(text, caseID string) string {
	h := sha256.New()
	for _, part := range []string{text, caseID} {
		_, _ = fmt.Fprintf(h, "%d:%s", len(part), part) // a hash never fails to write
	}
	return hex.EncodeToString(h.Sum(nil))
}

var tooLarge = deskapi.NewProblem(http.StatusRequestEntityTooLarge, deskapi.CodeBodyTooLarge, "a message may have 16384 bytes")

func invalid(detail string) *deskapi.Problem {
	return deskapi.NewProblem(http.StatusBadRequest, deskapi.CodeBodyInvalid, detail)
}

// keyedBody gives the key and the body of a request that may be repeated.
func keyedBody(w http.ResponseWriter, r *http.Request) (key string, body []byte, problem *deskapi.Problem) {
	if key, problem = idempotencyKey(r); problem != nil {
		return "", nil, problem
	}
	body, problem = readBody(w, r)
	return key, body, problem
}

// readBody reads a body up to its limit.
func readBody(w http.ResponseWriter, r *http.Request) ([]byte, *deskapi.Problem) {
	if r.ContentLength > maxBody {
		return nil, tooLarge
	}
	var buf bytes.Buffer
	if r.ContentLength > 0 {
		buf.Grow(int(r.ContentLength) + bytes.MinRead)
	}
	_, err := buf.ReadFrom(http.MaxBytesReader(w, r.Body, maxBody))
	if _, over := errors.AsType[*http.MaxBytesError](err); over {
		return nil, tooLarge
	}
	if err != nil {
		return nil, invalid("the body ended early")
	}
	return buf.Bytes(), nil
}

// decodePost reads the body of a new case.
func decodePost(body []byte) (post, *deskapi.Problem) {
	var message, caseID *string
	if problem := decodeObject(body, map[string]**string{"message": &message, "case_id": &caseID}); problem != nil {
		return post{}, problem
	}
	p, problem := checkMessage(message)
	switch {
	case problem != nil:
		return post{}, problem
	case caseID == nil:
		return p, nil
	case ident.Token(*caseID) != nil, ident.IsFindingCase(*caseID):
		return post{}, invalid("case_id is not a valid identifier")
	}
	p.caseID = *caseID
	p.sha256 = requestHash(p.message, p.caseID)
	return p, nil
}

// decodeMessage reads the body of a message on a case.
func decodeMessage(body []byte) (post, *deskapi.Problem) {
	var message *string
	if problem := decodeObject(body, map[string]**string{"message": &message}); problem != nil {
		return post{}, problem
	}
	return checkMessage(message)
}

// decodeCancel reads the body of a withdrawal, which says nothing: no bytes, or
// an object without members.
func decodeCancel(body []byte) *deskapi.Problem {
	if len(body) == 0 {
		return nil
	}
	return decodeObject(body, nil)
}

func checkMessage(message *string) (post, *deskapi.Problem) {
	switch {
	case message == nil || strings.TrimSpace(*message) == "":
		return post{}, invalid("message is missing")
	case len(*message) > maxMessage:
		return post{}, tooLarge
	}
	text, flags := masking.Text(*message)
	switch {
	case strings.TrimSpace(text) == "":
		return post{}, invalid("message is missing")
	case len(text) > maxMessage:
		return post{}, tooLarge
	}
	return post{message: text, flags: flags, sha256: requestHash(text, "")}, nil
}

// decodeObject reads a body strictly: one JSON object in valid UTF-8 whose
// members are known strings, each at most once, and nothing after it.
func decodeObject(body []byte, members map[string]**string) *deskapi.Problem {
	if !utf8.Valid(body) {
		return invalid("the body is not UTF-8")
	}
	dec := json.NewDecoder(bytes.NewReader(body))
	if t, err := dec.Token(); err != nil || t != json.Delim('{') {
		return invalid("the body is not a JSON object")
	}
	for dec.More() {
		name, err := dec.Token()
		if err != nil {
			return invalid("the body is not valid JSON")
		}
		text, ok := name.(string)
		member := members[text]
		if !ok || member == nil {
			return invalid("a member is not known")
		}
		value, err := dec.Token()
		if err != nil {
			return invalid("the body is not valid JSON")
		}
		text, ok = value.(string)
		switch {
		case !ok:
			return invalid("a member is not a string")
		case *member != nil:
			return invalid("a member is given twice")
		}
		*member = &text
	}
	if _, err := dec.Token(); err != nil { // the closing brace
		return invalid("the body is not valid JSON")
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return invalid("something follows the JSON object")
	}
	return nil
}

// idempotencyKey gives the key of a request: 1 to 128 visible ASCII characters.
func idempotencyKey(r *http.Request) (string, *deskapi.Problem) {
	values := r.Header.Values(deskapi.HeaderIdempotencyKey)
	switch {
	case len(values) == 0 || values[0] == "":
		return "", deskapi.NewProblem(http.StatusBadRequest, deskapi.CodeKeyMissing, "send an Idempotency-Key; a retry of the same request repeats it")
	case len(values) > 1 || len(values[0]) > maxKey || strings.ContainsFunc(values[0], func(c rune) bool { return c < '!' || c > '~' }):
		return "", deskapi.NewProblem(http.StatusBadRequest, deskapi.CodeKeyInvalid, "an Idempotency-Key has 1 to 128 visible ASCII characters")
	}
	return values[0], nil
}
