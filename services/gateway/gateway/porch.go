package gateway

import (
	"errors"
	"io"
	"net/http"
	"time"

	"golang.org/x/time/rate"

	"github.com/amends-dev/amends/internal/deskapi"
)

const (
	// eventsAtOnce bounds the events that are read and verified at once, and
	// eventRead how long a body may take: nobody has said yet who sends it.
	eventsAtOnce = 128
	eventRead    = 3 * time.Second
	// What does not verify: more of it than this, and no event is looked at for
	// a while. It bounds the work strangers can cause; the provider sends again.
	strangersPerSecond = 200
	strangersBurst     = 400
)

// porch is where events wait until it is known who sent them. Strangers fill
// it, and take no place from callers that have shown a credential.
type porch struct {
	room gate
	// strangers is charged with what does not verify.
	strangers *rate.Limiter
}

func newPorch() porch {
	return porch{room: gate{limit: eventsAtOnce}, strangers: rate.NewLimiter(strangersPerSecond, strangersBurst)}
}

var (
	badSignature = deskapi.NewProblem(http.StatusUnauthorized, deskapi.CodeUnauthenticated, "the webhook's signature or timestamp is not valid")
	tooStrange   = deskapi.NewProblem(http.StatusTooManyRequests, deskapi.CodeRateLimited, "too many webhooks that do not verify").After(time.Second)
	eventTooBig  = deskapi.NewProblem(http.StatusRequestEntityTooLarge, deskapi.CodeBodyTooLarge, "an event may have 65536 bytes")
)

// verified reads a webhook and gives its id and body if the provider signed it.
func (g *gateway) verified(w http.ResponseWriter, r *http.Request) (id string, body []byte, problem *deskapi.Problem) {
	if !g.porch.room.enter() {
		return "", nil, overloaded
	}
	defer g.porch.room.leave()
	if g.porch.strangers.TokensAt(g.now()) < 1 {
		return "", nil, tooStrange
	}
	id, body, problem = g.readEvent(w, r)
	if problem != nil {
		g.porch.strangers.AllowN(g.now(), 1)
		g.metrics.event(r.Context(), "", eventRefused)
	}
	return id, body, problem
}

func (g *gateway) readEvent(w http.ResponseWriter, r *http.Request) (id string, body []byte, problem *deskapi.Problem) {
	rc := http.NewResponseController(w)
	// The network keeps the machine's time, whatever the desk's is.
	err := rc.SetReadDeadline(time.Now().Add(eventRead))
	if err == nil {
		body, err = io.ReadAll(http.MaxBytesReader(w, r.Body, maxEvent))
	}
	if err == nil {
		err = rc.SetReadDeadline(time.Time{}) // else it would cut off the answer
	}
	switch _, over := errors.AsType[*http.MaxBytesError](err); {
	case over:
		return "", nil, eventTooBig
	case err != nil:
		return "", nil, invalid("the body ended early, or took too long")
	}
	if id, err = g.provider.secrets.Verify(r.Header, body, g.now()); err != nil {
		return "", nil, badSignature
	}
	return id, body, nil
}
