package tools_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/amends-dev/amends/internal/envelope"
	"github.com/amends-dev/amends/internal/roles"
	"github.com/amends-dev/amends/internal/tools"
	amendsv1 "github.com/amends-dev/amends/proto/amends/v1"
)

var at = time.Date(2026, 3, 12, 10, 14, 0, 0, time.UTC)

// clock is a local clock, days away from the broker's, that tests move.
type clock struct {
	mu  sync.Mutex
	now time.Time
}

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) add(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

func contract() *amendsv1.TaskContract {
	return &amendsv1.TaskContract{
		Target: string(roles.PaymentInvestigator), Slice: amendsv1.Slice_SLICE_PAYMENT,
		PermittedTools: []string{roles.ToolListCaptures, roles.ToolListRefunds},
		Scope:          &amendsv1.Scope{Tenant: "acme-in", CustomerId: "cust_5519", OrderId: "8472"},
		Expires:        timestamppb.New(at.Add(30 * time.Second)), LeaseUntil: timestamppb.New(at.Add(15 * time.Second)),
		Budget: &amendsv1.Budget{Actions: 2},
	}
}

func registry(t *testing.T, s roles.Service, c *clock) *tools.Registry {
	t.Helper()
	if c == nil {
		c = &clock{now: at.Add(72 * time.Hour)}
	}
	r, err := tools.New(roles.Desk(), s, c.Now)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func ok(_ context.Context, sc *amendsv1.Scope) (tools.Answer[string], error) {
	return tools.Answer[string]{Value: sc.GetTenant() + "/" + sc.GetOrderId(), Raw: []byte("raw"), SourceVersion: "v7"}, nil
}

func TestCallIsRecorded(t *testing.T) {
	t.Parallel()
	c := &clock{now: at.Add(-time.Hour)}
	s := registry(t, roles.PaymentInvestigator, c).Open(contract(), "8472", 1, at)
	c.add(2 * time.Second)
	got, err := tools.Call(t.Context(), s, tools.Request{Number: 2, Tool: roles.ToolListRefunds}, ok)
	if err != nil || got != "acme-in/8472" {
		t.Fatalf("got %q, %v", got, err)
	}
	calls := s.Calls()
	if len(calls) != 1 || envelope.Validate(calls[0]) != nil {
		t.Fatalf("calls %v", calls)
	}
	sum := sha256.Sum256([]byte("raw"))
	r := calls[0]
	if r.GetCallId() != "call-8472-p2" || r.GetSource() != "payments" || r.GetSourceVersion() != "v7" || r.GetResultSha256() != hex.EncodeToString(sum[:]) ||
		r.GetOutcome() != amendsv1.LookupOutcome_LOOKUP_OUTCOME_SUPPORTED || !r.GetObservedAt().AsTime().Equal(at.Add(2*time.Second)) ||
		strings.Join(r.GetArguments(), " ") != "order=8472" {
		t.Errorf("record %v", r)
	}
	if s.Usage().GetActions() != 1 {
		t.Errorf("usage %v", s.Usage())
	}
}

func TestRefusals(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		service roles.Service
		tool    string
		args    []tools.Arg
		change  func(*amendsv1.TaskContract)
		wait    time.Duration
		reason  string
	}{
		"tool of another service":      {tool: roles.ToolCreateRefund, reason: tools.ReasonNotGranted},
		"service without tools":        {service: roles.Composer, tool: roles.ToolListCaptures, reason: tools.ReasonNotGranted},
		"unknown tool":                 {tool: "shell.run", reason: tools.ReasonNotGranted},
		"tool not in the contract":     {tool: roles.ToolGetSettlement, reason: tools.ReasonNotPermitted},
		"contract of somebody else":    {change: func(c *amendsv1.TaskContract) { c.Target = "verifier" }, reason: tools.ReasonWrongTarget},
		"no order in scope":            {change: func(c *amendsv1.TaskContract) { c.Scope.OrderId = "" }, reason: tools.ReasonScopeMissing},
		"no customer in scope":         {change: func(c *amendsv1.TaskContract) { c.Scope.CustomerId = "" }, reason: tools.ReasonScopeMissing},
		"at the end of the lease":      {wait: 15 * time.Second, reason: tools.ReasonExpired},
		"expired":                      {change: func(c *amendsv1.TaskContract) { c.Expires = timestamppb.New(at) }, reason: tools.ReasonExpired},
		"no budget":                    {change: func(c *amendsv1.TaskContract) { c.Budget.Actions = 0 }, reason: tools.ReasonBudget},
		"an order in the arguments":    {args: []tools.Arg{{Name: "order", Value: "7310"}}, reason: tools.ReasonBadArguments},
		"a tenant in the arguments":    {args: []tools.Arg{{Name: "tenant", Value: "other"}}, reason: tools.ReasonBadArguments},
		"a wild card as an identifier": {service: roles.Verifier, tool: roles.ToolGetRefund, args: []tools.Arg{{Name: "refund_id", Value: "rf_.>"}}, reason: tools.ReasonBadArguments},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if c.service == "" {
				c.service = roles.PaymentInvestigator
			}
			if c.tool == "" {
				c.tool = roles.ToolListCaptures
			}
			con := contract()
			con.Target = string(c.service)
			if c.service == roles.Verifier {
				con.PermittedTools = []string{c.tool}
			}
			if c.change != nil {
				c.change(con)
			}
			cl := &clock{now: at.Add(9000 * time.Hour)}
			s := registry(t, c.service, cl).Open(con, "8472", 1, at)
			cl.add(c.wait)
			_, err := tools.Call(t.Context(), s, tools.Request{Number: 1, Tool: c.tool, Args: c.args}, func(context.Context, *amendsv1.Scope) (tools.Answer[int], error) {
				t.Error("a refused call was made")
				return tools.Answer[int]{}, nil
			})
			refused, isRefused := errors.AsType[*tools.Refused](err)
			if !isRefused || refused.Reason != c.reason {
				t.Fatalf("error %v, want %s", err, c.reason)
			}
			calls := s.Calls()
			if len(calls) != 1 || calls[0].GetReason() != c.reason || calls[0].GetOutcome() != amendsv1.LookupOutcome_LOOKUP_OUTCOME_FAILED || envelope.Validate(calls[0]) != nil {
				t.Errorf("recorded %v", calls)
			}
			if s.Usage().GetActions() != 0 {
				t.Error("a refused call used the budget")
			}
		})
	}
}

func TestBudgetAndAttempts(t *testing.T) {
	t.Parallel()
	s := registry(t, roles.PaymentInvestigator, nil).Open(contract(), "8472", 3, at)
	var wait sync.WaitGroup
	for n := 1; n <= 5; n++ {
		wait.Go(func() {
			_, _ = tools.Call(t.Context(), s, tools.Request{Number: n, Tool: roles.ToolListCaptures}, ok) // counted below
		})
	}
	wait.Wait()
	if got := s.Usage().GetActions(); got != 2 {
		t.Errorf("%d actions, want 2", got)
	}
	calls := s.Calls()
	supported := 0
	for i, c := range calls {
		if want := "call-8472-p" + strconv.Itoa(i+1) + "-3"; c.GetCallId() != want {
			t.Errorf("call %d is %s, want %s", i, c.GetCallId(), want)
		}
		if c.GetOutcome() == amendsv1.LookupOutcome_LOOKUP_OUTCOME_SUPPORTED {
			supported++
		}
	}
	if len(calls) != 5 || supported != 2 {
		t.Errorf("%d calls, %d supported", len(calls), supported)
	}
}

func TestMissIsNeverAnEmptySuccess(t *testing.T) {
	t.Parallel()
	cause := errors.New("no such order")
	s := registry(t, roles.PaymentInvestigator, nil).Open(contract(), "8472", 1, at)
	_, err := tools.Call(t.Context(), s, tools.Request{Number: 1, Tool: roles.ToolListCaptures}, func(context.Context, *amendsv1.Scope) (tools.Answer[int], error) {
		return tools.Answer[int]{}, &tools.Miss{Outcome: amendsv1.LookupOutcome_LOOKUP_OUTCOME_INCOMPLETE, Reason: "not_found", Err: cause}
	})
	if !errors.Is(err, cause) {
		t.Errorf("error %v", err)
	}
	_, _ = tools.Call(t.Context(), s, tools.Request{Number: 2, Tool: roles.ToolListRefunds}, func(context.Context, *amendsv1.Scope) (tools.Answer[int], error) {
		return tools.Answer[int]{}, cause
	})
	calls := s.Calls()
	if calls[0].GetOutcome() != amendsv1.LookupOutcome_LOOKUP_OUTCOME_INCOMPLETE || calls[0].GetReason() != "not_found" ||
		calls[1].GetOutcome() != amendsv1.LookupOutcome_LOOKUP_OUTCOME_FAILED || calls[1].GetReason() != "failed" || calls[0].GetResultSha256() != "" {
		t.Errorf("recorded %v", calls)
	}
	if _, err := tools.Call(t.Context(), s, tools.Request{Number: 2, Tool: roles.ToolListRefunds}, ok); err == nil || len(s.Calls()) != 2 {
		t.Error("a call number was used twice")
	}
}

func TestEveryGrantHasASchema(t *testing.T) {
	t.Parallel()
	for _, role := range roles.Desk().Roles {
		if _, err := tools.New(roles.Desk(), role.Service, time.Now); err != nil {
			t.Error(err)
		}
	}
	if _, err := tools.New(roles.Desk(), "nobody", time.Now); err == nil {
		t.Error("a registry for a service that does not exist")
	}
}
