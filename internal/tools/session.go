package tools

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	amendsv1 "github.com/amends-dev/amends/proto/amends/v1"
)

// Reasons of a refused call.
const (
	ReasonNotGranted   = "tool_not_granted"
	ReasonNotPermitted = "tool_not_permitted"
	ReasonWrongTarget  = "wrong_target"
	ReasonScopeMissing = "scope_missing"
	ReasonBadArguments = "arguments_invalid"
	ReasonExpired      = "lease_expired"
	ReasonBudget       = "action_budget_spent"
	ReasonCallRepeated = "call_number_repeated"
)

// maxCalls is how many calls a result can carry.
const maxCalls = 32

// Refused is the error of a call that was not made.
type Refused struct {
	Reason string
	Err    error
}

func (r *Refused) Error() string {
	if r.Err == nil {
		return r.Reason
	}
	return r.Reason + ": " + r.Err.Error()
}

func (r *Refused) Unwrap() error { return r.Err }

// Miss says how a look-up ended that gave no usable answer.
type Miss struct {
	// Outcome is INCOMPLETE (asked and answered, but not with what was asked
	// for) or FAILED (no answer).
	Outcome amendsv1.LookupOutcome
	Reason  string
	Err     error
}

func (m *Miss) Error() string { return m.Reason + ": " + m.Err.Error() }

func (m *Miss) Unwrap() error { return m.Err }

// Session is the calls of one attempt of a task. It is safe for concurrent
// use.
type Session struct {
	registry *Registry
	contract *amendsv1.TaskContract
	suffix   string
	attempt  uint32
	at       time.Time
	opened   time.Time

	mu      sync.Mutex
	calls   []call
	actions uint32
}

type call struct {
	number int
	record *amendsv1.ToolCall
}

// Request is one call. Number tells the task's calls apart: it is part of the
// call id, so that calls made at once have the same ids in every run.
type Request struct {
	Number int
	Tool   string
	Args   []Arg
}

// Answer is what a tool gave.
type Answer[T any] struct {
	Value T
	// Raw is hashed into the record.
	Raw           []byte
	SourceVersion string
}

// Call makes one call within a session and records it. fn gets the scope to
// ask about; its error may be a *Miss.
func Call[T any](ctx context.Context, s *Session, q Request, fn func(context.Context, *amendsv1.Scope) (Answer[T], error)) (T, error) {
	var none T
	record, err := s.begin(q)
	if err != nil {
		return none, fmt.Errorf("call %s: %w", q.Tool, err)
	}
	answer, err := fn(ctx, s.contract.GetScope())
	s.end(record, answer.Raw, answer.SourceVersion, err)
	if err != nil {
		return none, fmt.Errorf("call %s: %w", q.Tool, err)
	}
	return answer.Value, nil
}

// Now is the broker's time of the task plus what has passed since it was
// opened here.
func (s *Session) Now() time.Time { return s.at.Add(s.registry.now().Sub(s.opened)) }

// begin admits a call, or records and returns its refusal.
func (s *Session) begin(q Request) (*amendsv1.ToolCall, error) {
	tool, granted := s.registry.grants[q.Tool]
	now := s.Now()
	record := &amendsv1.ToolCall{
		CallId: s.id(q.Number), Tool: q.Tool, Source: tool.source, ObservedAt: timestamppb.New(now),
		Outcome: amendsv1.LookupOutcome_LOOKUP_OUTCOME_FAILED,
	}
	if tool.order {
		record.Arguments = append(record.Arguments, "order="+s.contract.GetScope().GetOrderId())
	}
	for _, a := range q.Args {
		record.Arguments = append(record.Arguments, clip(a.Name+"="+a.Value, 256))
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	refused := s.refusal(q, tool, granted, now)
	if refused != nil {
		record.Reason = refused.Reason
		if record.GetSource() == "" {
			record.Source = "none"
		}
		if len(s.calls) < maxCalls && !s.used(q.Number) { // a call id is unique
			s.calls = append(s.calls, call{q.Number, record})
		}
		return nil, refused
	}
	s.actions++
	s.calls = append(s.calls, call{q.Number, record})
	return record, nil
}

func (s *Session) refusal(q Request, tool spec, granted bool, now time.Time) *Refused {
	c := s.contract
	switch {
	case !granted:
		return &Refused{Reason: ReasonNotGranted}
	case c.GetTarget() != string(s.registry.service):
		return &Refused{Reason: ReasonWrongTarget}
	case !slices.Contains(c.GetPermittedTools(), q.Tool):
		return &Refused{Reason: ReasonNotPermitted}
	case c.GetScope().GetTenant() == "" || c.GetScope().GetCustomerId() == "" || tool.order && c.GetScope().GetOrderId() == "":
		return &Refused{Reason: ReasonScopeMissing}
	case !now.Before(c.GetLeaseUntil().AsTime()) || !now.Before(c.GetExpires().AsTime()):
		return &Refused{Reason: ReasonExpired}
	case s.actions >= c.GetBudget().GetActions() || len(s.calls) >= maxCalls:
		return &Refused{Reason: ReasonBudget}
	case s.used(q.Number):
		return &Refused{Reason: ReasonCallRepeated}
	}
	if err := tool.check(q.Args); err != nil {
		return &Refused{Reason: ReasonBadArguments, Err: err}
	}
	return nil
}

func (s *Session) used(number int) bool {
	return slices.ContainsFunc(s.calls, func(made call) bool { return made.number == number })
}

// end completes the record of a call that was made.
func (s *Session) end(record *amendsv1.ToolCall, raw []byte, version string, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	record.ObservedAt = timestamppb.New(s.Now())
	if err == nil {
		sum := sha256.Sum256(raw)
		record.Outcome = amendsv1.LookupOutcome_LOOKUP_OUTCOME_SUPPORTED
		record.ResultSha256, record.SourceVersion = hex.EncodeToString(sum[:]), clip(version, 64)
		return
	}
	record.Reason = "failed"
	if m, ok := errors.AsType[*Miss](err); ok {
		record.Outcome, record.Reason = m.Outcome, clip(m.Reason, 64)
	}
}

func (s *Session) id(number int) string {
	id := "call-" + s.suffix + "-" + s.registry.prefix + strconv.Itoa(number)
	if s.attempt > 1 {
		id += "-" + strconv.FormatUint(uint64(s.attempt), 10)
	}
	return id
}

// Calls gives the record of every call and refusal, by number.
func (s *Session) Calls() []*amendsv1.ToolCall {
	s.mu.Lock()
	defer s.mu.Unlock()
	sorted := slices.Clone(s.calls)
	slices.SortStableFunc(sorted, func(a, b call) int { return a.number - b.number })
	out := make([]*amendsv1.ToolCall, len(sorted))
	for i, c := range sorted {
		out[i] = c.record
	}
	return out
}

// Usage says what the session consumed.
func (s *Session) Usage() *amendsv1.Usage {
	s.mu.Lock()
	defer s.mu.Unlock()
	return &amendsv1.Usage{Actions: s.actions}
}

func clip(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && s[n]&0xc0 == 0x80 { // not inside a rune
		n--
	}
	return s[:n]
}
