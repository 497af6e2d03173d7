package gateway

import (
	"context"

	"github.com/amends-dev/amends/internal/bus"
	amendsv1 "github.com/amends-dev/amends/proto/amends/v1"
)

// Point is a place between a request and its answer. Wherever the process dies,
// the same request with the same key, sent again, is the same post, message or
// cancel (LOSS-1).
type Point string

// The points, in the order in which a request passes them.
const (
	// RequestChecked: the request may be stored and is not.
	RequestChecked Point = "request_checked"
	// RequestSent: the broker has it, whose answer is not looked at.
	RequestSent Point = "request_sent"
	// RequestStored: it is stored and the caller has no answer.
	RequestStored Point = "request_stored"
)

// reached tells a test that a request is at a point.
func (g *gateway) reached(ctx context.Context, p Point, env *amendsv1.Envelope) {
	if g.tell != nil {
		g.tell(ctx, p, env)
	}
}

// watched has RequestSent told.
func (g *gateway) watched(ctx context.Context, env *amendsv1.Envelope) context.Context {
	if g.tell == nil {
		return ctx
	}
	return bus.WithSent(ctx, func(string) { g.tell(ctx, RequestSent, env) })
}
