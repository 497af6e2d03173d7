package identity

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/go-jose/go-jose/v4"
)

const (
	// fetchTimeout bounds one question to the issuer, discovery included.
	fetchTimeout = 5 * time.Second
	// waitTimeout bounds how long a token waits for the answer, and maxWaiting
	// how many may.
	waitTimeout = 3 * time.Second
	maxWaiting  = 256
	// warmWait is how long is waited after the first failure at the start; it
	// doubles up to Keys.Refresh.
	warmWait = time.Second
)

// keySet keeps the keys an issuer publishes.
type keySet struct {
	ask    func(ctx context.Context) ([]jose.JSONWebKey, error)
	now    func() time.Time
	told   func(ctx context.Context, err error)
	limits Keys
	log    *slog.Logger
	room   chan struct{}

	mu   sync.Mutex
	held published
	// tried is when the issuer was asked last, and failed how that ended.
	tried  time.Time
	failed bool
	// asking is closed when the running question is answered.
	asking chan struct{}
}

// published are the keys an issuer had at one moment.
type published struct {
	keys []jose.JSONWebKey
	at   time.Time
}

// verify gives the payload of a token that one of the issuer's keys signed.
func (s *keySet) verify(ctx context.Context, jws *jose.JSONWebSignature) ([]byte, error) {
	have := s.look()
	if s.older(have, s.limits.MaxAge) {
		s.refresh(ctx)
		have = s.look()
	}
	if s.older(have, s.limits.MaxStale) {
		return nil, ErrUnavailable
	}
	payload, known := have.verify(jws)
	switch {
	case payload != nil:
		return payload, nil
	case known:
		return nil, refuse(Signature)
	}
	if !s.refresh(ctx) {
		return nil, ErrUnavailable // it may have published the key meanwhile
	}
	if payload, known = s.look().verify(jws); payload != nil {
		return payload, nil
	}
	if known {
		return nil, refuse(Signature)
	}
	return nil, refuse(KeyUnknown)
}

// verify tries the keys a token names. known says that there was one. A token
// that names none may be signed by any of them.
func (p published) verify(jws *jose.JSONWebSignature) (payload []byte, known bool) {
	kid := jws.Signatures[0].Header.KeyID
	for i := range p.keys {
		k := &p.keys[i]
		if kid != "" && k.KeyID != kid || k.Algorithm != "" && k.Algorithm != jws.Signatures[0].Header.Algorithm {
			continue
		}
		if data, err := jws.Verify(k); err == nil {
			return data, true
		}
		known = kid != ""
	}
	return nil, known
}

func (s *keySet) look() published {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.held
}

func (s *keySet) older(p published, than time.Duration) bool {
	return p.at.IsZero() || s.now().Sub(p.at) >= than
}

// refresh asks the issuer, unless that was done less than Refresh ago, and waits
// for the answer. It reports whether the keys held are those of the last
// question.
func (s *keySet) refresh(ctx context.Context) bool {
	select {
	case s.room <- struct{}{}:
		defer func() { <-s.room }()
	default:
		return false
	}
	asking := s.begin(ctx, s.limits.Refresh)
	if asking != nil {
		ctx, cancel := context.WithTimeout(ctx, waitTimeout)
		defer cancel()
		select {
		case <-asking:
		case <-ctx.Done():
			return false
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return !s.failed && !s.held.at.IsZero()
}

// begin starts a question, or joins the running one; nil when the last one is
// not older than pause.
func (s *keySet) begin(ctx context.Context, pause time.Duration) <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.asking != nil {
		return s.asking
	}
	now := s.now()
	// A clock that was set back must not stop the questions.
	if since := now.Sub(s.tried); since >= 0 && since < pause {
		return nil
	}
	s.tried, s.asking = now, make(chan struct{})
	// The answer is for everybody: it outlives the request that asked.
	go s.fetch(context.WithoutCancel(ctx), now)
	return s.asking
}

func (s *keySet) fetch(ctx context.Context, at time.Time) {
	ctx, cancel := context.WithTimeout(ctx, fetchTimeout)
	defer cancel()
	keys, err := s.ask(ctx)
	s.told(ctx, err)
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case err != nil && !s.failed:
		s.log.LogAttrs(ctx, slog.LevelWarn, "keys of the issuer not read", slog.Any("error", err))
	case err == nil && (s.failed || s.held.at.IsZero()):
		s.log.LogAttrs(ctx, slog.LevelInfo, "keys of the issuer read", slog.Int("keys", len(keys)))
	}
	if s.failed = err != nil; !s.failed {
		s.held = published{keys: keys, at: at}
	}
	close(s.asking)
	s.asking = nil
}

// warm asks until the issuer answered once.
func (s *keySet) warm(ctx context.Context) {
	for wait := min(warmWait, s.limits.Refresh); ; wait = min(2*wait, s.limits.Refresh) {
		if asking := s.begin(ctx, 0); asking != nil {
			select {
			case <-asking:
			case <-ctx.Done():
				return
			}
		}
		if !s.look().at.IsZero() {
			return
		}
		timer := time.NewTimer(wait)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return
		}
	}
}
