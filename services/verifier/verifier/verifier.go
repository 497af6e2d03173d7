package verifier

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/amends-dev/amends/internal/bus"
	"github.com/amends-dev/amends/internal/evidence"
	"github.com/amends-dev/amends/internal/ident"
	"github.com/amends-dev/amends/internal/payments"
	"github.com/amends-dev/amends/internal/paymenttools"
	"github.com/amends-dev/amends/internal/roles"
	"github.com/amends-dev/amends/internal/taskwork"
	"github.com/amends-dev/amends/internal/tools"
	amendsv1 "github.com/amends-dev/amends/proto/amends/v1"
)

// Deps are what the verifier works with.
type Deps struct {
	Bus *bus.Conn
	Log *slog.Logger
	Now func() time.Time
}

// Numbers of the calls of a task; the refunds follow, one call each.
const (
	callState = iota + 1
	callCaptures
	callRefunds
)

// maxRefunds is how many refunds one reply can name.
const maxRefunds = 12

const reasonLookupFailed = "lookup_failed"

// Run works on verify tasks until ctx ends.
func Run(ctx context.Context, cfg Config, deps Deps) error {
	if deps.Now == nil {
		deps.Now = time.Now
	}
	client, err := cfg.Payments.Open(deps.Log)
	if err != nil {
		return err
	}
	defer client.Close()
	registry, err := tools.New(roles.Desk(), roles.Verifier, deps.Now)
	if err != nil {
		return err
	}
	work := func(ctx context.Context, t taskwork.Task) (proto.Message, error) {
		return verify(ctx, registry.Open(t.Contract, t.Suffix, t.Envelope.GetAttempt(), t.Received), client, t.Assign.GetVerify())
	}
	return taskwork.Run(ctx, deps.Bus, taskwork.Options{
		Workers: cfg.Workers, Slices: []amendsv1.Slice{amendsv1.Slice_SLICE_VERIFY}, Now: deps.Now,
	}, work)
}

// own is what the verifier read for itself. A refund or an order that the
// provider does not know is missing here; one that could not be read is an
// error and never gets this far.
type own struct {
	captures *payments.Captures
	refunds  map[string]*amendsv1.Refund
	// calls name the look-up of each refund, and of the captures.
	refundCalls  map[string]string
	capturesCall string
	stateCall    string
}

// verify is the deterministic engine: read the text, look up what it rests on,
// check claim by claim.
func verify(ctx context.Context, s *tools.Session, client *payments.Client, v *amendsv1.VerifySlice) (proto.Message, error) {
	text := read(v.GetDraft().GetText(), knownRefunds(v.GetRecords()))
	seen, err := lookUp(ctx, s, client, v.GetRecords(), text)
	if err != nil {
		retry := !errors.Is(err, payments.ErrUnauthorized) && !errors.Is(err, payments.ErrRejected)
		return nil, &taskwork.Failure{Reason: reasonLookupFailed, Retryable: retry, Err: err, Session: s}
	}
	checks, verified := check(v, text, seen)
	verdict := amendsv1.VerificationVerdict_VERIFICATION_VERDICT_REJECTED
	if verified {
		verdict = amendsv1.VerificationVerdict_VERIFICATION_VERDICT_VERIFIED
	}
	return &amendsv1.Verification{
		Verdict: verdict, DraftSha256: evidence.TextSHA256(v.GetDraft().GetText()), Checks: checks, Calls: s.Calls(), Usage: s.Usage(),
	}, nil
}

// lookUp reads what the claims of a text rest on, with the verifier's own key.
func lookUp(ctx context.Context, s *tools.Session, client *payments.Client, records *amendsv1.CaseFacts, text reading) (own, error) {
	seen := own{refunds: map[string]*amendsv1.Refund{}, refundCalls: map[string]string{}}
	wire := proto.MarshalOptions{Deterministic: true}
	if _, err := tools.Call(ctx, s, tools.Request{Number: callState, Tool: roles.ToolReadState}, func(context.Context, *amendsv1.Scope) (tools.Answer[bool], error) {
		raw, err := wire.Marshal(records)
		return tools.Answer[bool]{Raw: raw}, err
	}); err != nil {
		return seen, err
	}
	refunds, money := text.named()
	var mu sync.Mutex
	var failures []error
	note := func(err error, keep func()) {
		mu.Lock()
		defer mu.Unlock()
		switch {
		case err == nil:
			keep()
		case !errors.Is(err, payments.ErrNotFound):
			failures = append(failures, err)
		}
	}
	var wait sync.WaitGroup
	if (money || len(refunds) > 0) && records.GetOrderId() != "" {
		wait.Go(func() {
			c, err := paymenttools.Captures(ctx, s, callCaptures, client)
			note(err, func() { seen.captures = c })
		})
	}
	for i, id := range refunds {
		wait.Go(func() {
			r, err := paymenttools.Refund(ctx, s, callRefunds+i, client, id)
			note(err, func() { seen.refunds[id] = r })
		})
	}
	wait.Wait()
	for _, c := range s.Calls() {
		switch c.GetTool() {
		case roles.ToolReadState:
			seen.stateCall = c.GetCallId()
		case roles.ToolListCaptures:
			seen.capturesCall = c.GetCallId()
		case roles.ToolGetRefund:
			if i := slices.IndexFunc(refunds, func(id string) bool { return c.GetArguments()[0] == "refund_id="+id }); i >= 0 {
				seen.refundCalls[refunds[i]] = c.GetCallId()
			}
		}
	}
	return seen, errors.Join(failures...)
}

// named gives the refunds a text names, each once and at most maxRefunds, and
// whether it names an amount.
func (r reading) named() (refunds []string, money bool) {
	for _, s := range r.sentences {
		money = money || len(s.amounts) > 0
		for _, id := range s.refunds {
			if !slices.Contains(refunds, id) && len(refunds) < maxRefunds && ident.Token(id) == nil {
				refunds = append(refunds, id)
			}
		}
	}
	return refunds, money
}

// knownRefunds gives every refund reference the record holds.
func knownRefunds(records *amendsv1.CaseFacts) []string {
	var out []string
	for _, c := range records.GetFacts() {
		if c.GetRefundId() != "" {
			out = append(out, c.GetRefundId())
		}
	}
	for _, r := range records.GetPayment().GetRefunds() {
		out = append(out, r.GetRefundId())
	}
	for _, r := range records.GetEffect().GetRefunds() {
		if id := r.GetOutcome().GetRefundId(); id != "" {
			out = append(out, id)
		}
	}
	return out
}
