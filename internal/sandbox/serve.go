package sandbox

import (
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"mime"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/amends-dev/amends/internal/ident"
)

// call is one authorised request.
type call struct {
	key  string // the API key's name
	body []byte
	*http.Request

	// route is its name, about what it asks for: what faults go by.
	route  string
	about  subject
	faults *faults
	// held: a fault made it wait, perhaps longer than an answer may take.
	held bool
}

// answer is what a handler gives: encoded only after it is durable.
type answer struct {
	status int
	// contentType is JSON when empty.
	contentType string
	body        []byte
	// seq is the newest journal entry the answer rests on.
	seq uint64
	// changed marks an answer to a change of state made by this request.
	changed  bool
	replayed bool
	// made is the refund this request created.
	made *Refund
}

func (s *Server) serve(rt route, w http.ResponseWriter, r *http.Request) {
	a, err := s.answer(rt, w, r)
	if errors.Is(err, errAborted) {
		panic(http.ErrAbortHandler) // closes the connection
	}
	if err != nil {
		p := problemOf(err)
		if p.status >= http.StatusInternalServerError && !p.fault {
			s.log.Error("request not served",
				slog.String("method", rt.method), slog.String("path", rt.path), slog.String("code", p.code), slog.Any("error", err))
		}
		p.write(w)
		return
	}
	if a.replayed {
		w.Header().Set("Idempotent-Replayed", "true")
	}
	if a.contentType == "" {
		a.contentType = "application/json"
	}
	send(w, a.status, a.contentType, a.body)
}

// answer does what is asked for, and whatever goes wrong with it by a fault.
func (s *Server) answer(rt route, w http.ResponseWriter, r *http.Request) (answer, error) {
	c, err := s.admit(rt, w, r)
	if err != nil {
		return answer{}, err
	}
	defer func() {
		if c.held { // the answer is late, not lost
			_ = http.NewResponseController(w).SetWriteDeadline(time.Time{})
		}
	}()
	faulty := s.faults.some.Load() > 0
	if faulty {
		c.about = s.book.find(c)
	}
	if faulty = faulty && rt.name != ""; faulty {
		if err := s.faults.before(c); err != nil {
			return answer{}, err
		}
	}
	a, err := rt.handle(s, c)
	if err != nil {
		return answer{}, err
	}
	if err := s.book.journal.wait(a.seq); err != nil {
		return answer{}, err
	}
	if a.changed {
		s.notifier.await(r.Context(), a.seq)
	}
	if faulty {
		err = s.faults.after(c, &a, s.turn)
	}
	return a, err
}

// admit checks who asks, and reads the body.
func (s *Server) admit(rt route, w http.ResponseWriter, r *http.Request) (*call, error) {
	c := &call{Request: r, route: rt.name, faults: s.faults}
	if len(rt.scopes) > 0 {
		key, ok := s.authenticate(r.Header)
		if !ok {
			return nil, &problem{status: http.StatusUnauthorized, code: codeUnauthorized}
		}
		if !slices.Contains(rt.scopes, key.scope) {
			return nil, &problem{status: http.StatusForbidden, code: codeWrongScope}
		}
		c.key = key.name
	}
	if rt.limit > 0 {
		if media, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || media != "application/json" {
			return nil, &problem{status: http.StatusUnsupportedMediaType, code: codeMediaType}
		}
		body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, rt.limit))
		if err != nil {
			if tooLarge := new(http.MaxBytesError); errors.As(err, &tooLarge) {
				return nil, err
			}
			return nil, invalid(fmt.Errorf("read body: %w", err))
		}
		c.body = body
	}
	return c, nil
}

// authenticate compares the token's hash with every key in constant time.
func (s *Server) authenticate(h http.Header) (found apiKey, ok bool) {
	values := h["Authorization"]
	if len(values) != 1 {
		return apiKey{}, false
	}
	scheme, token, _ := strings.Cut(values[0], " ")
	if !strings.EqualFold(scheme, "Bearer") || token == "" {
		return apiKey{}, false
	}
	sum := sha256.Sum256([]byte(token))
	for _, k := range s.keys {
		if subtle.ConstantTimeCompare(k.sum[:], sum[:]) == 1 {
			found, ok = k, true
		}
	}
	return found, ok
}

// tenant reads the one query parameter there is.
func (c *call) tenant() (string, error) {
	q := c.URL.Query()
	if values := q["tenant"]; len(q) == 1 && len(values) == 1 && ident.Token(values[0]) == nil {
		return values[0], nil
	}
	return "", invalid(errors.New("the query must be exactly one valid tenant"))
}
