package e2e_test

import (
	"bytes"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/amends-dev/amends/internal/allinone"
	"github.com/amends-dev/amends/internal/bus"
	"github.com/amends-dev/amends/internal/roles"
	"github.com/amends-dev/amends/internal/subject"
	amendsv1 "github.com/amends-dev/amends/proto/amends/v1"
)

func msg(subj string, data []byte) *nats.Msg { return &nats.Msg{Subject: subj, Data: data} }

// on publishes as a service and gives what the broker said of it.
func on(service roles.Service, m func(*siege) *nats.Msg) func(*siege) string {
	return func(s *siege) string { return s.steal(service).try(m(s)) }
}

func plainly(service roles.Service, subj string, m proto.Message) func(*siege) string {
	return on(service, func(*siege) *nats.Msg { return msg(subj, must(m)) })
}

// brokerAttempts: what nobody but its owner may write, and what the broker
// would write for somebody.
func brokerAttempts() []attempt {
	var out []attempt
	tenant := allinone.Tenant
	released := &amendsv1.StopSwitch{Scope: subject.StopAll, By: "eve", Reason: "x", At: timestamppb.Now()}
	said := &amendsv1.EffectResult{Class: amendsv1.EffectClass_EFFECT_CLASS_ACKNOWLEDGED}
	for _, target := range []struct {
		attack, subj string
		m            proto.Message
		but          []roles.Service
	}{
		{"writes the effect ledger", subject.Effect(tenant, "8472"), &amendsv1.EffectEntry{Tenant: tenant, OrderId: "8472"}, nil},
		{"empties the cap window", subject.EffectCap(tenant), &amendsv1.CapWindow{Tenant: tenant}, nil},
		{"answers in the executor's name", subject.Result(string(roles.RefundExecutor), tenant, "req-x"), said, nil},
		{"releases the stop", subject.Control(subject.StopAll), released, []roles.Service{roles.Console}},
		{"commands the executor", subject.Task(string(roles.RefundExecutor), tenant, "req-x"), executing(nil), []roles.Service{roles.Orchestrator}},
		{"relays an approval", subject.Intake(asConsole, tenant, "req-x"), &amendsv1.SignedDecision{}, []roles.Service{roles.Console}},
		{"writes a case", subject.Case(tenant, "req-x"), &amendsv1.CaseCommit{}, []roles.Service{roles.Orchestrator}},
		{"posts as a customer", subject.Intake(string(roles.Gateway), tenant, "req-x"), &amendsv1.CaseOpened{}, []roles.Service{roles.Gateway}},
		{"wakes a case", subject.Due(tenant, "req-x"), &amendsv1.TimerDue{}, nil},
	} {
		for _, r := range roles.Desk().Roles {
			if may := contains(target.but, r.Service); !may && r.Service != roles.RefundExecutor {
				out = append(out, attempt{string(r.Service), target.attack, plainly(r.Service, target.subj, target.m), denied})
			}
		}
	}
	api := bus.DefaultAPIPrefix
	for _, call := range []string{
		"STREAM.PURGE.EFFECTS", "STREAM.PURGE.CONTROL", "STREAM.MSG.DELETE.EFFECTS", "STREAM.DELETE.CONTROL", "STREAM.UPDATE.EFFECTS",
		"CONSUMER.MSG.NEXT.TASKS.refund-executor-tasks", "CONSUMER.PAUSE.TASKS.refund-executor-tasks", "CONSUMER.CREATE.TASKS",
	} {
		for _, service := range []roles.Service{roles.Orchestrator, roles.Console} {
			out = append(out, attempt{string(service), call, plainly(service, api+"."+call, released), denied})
		}
	}
	return append(out,
		attempt{asOrchestrator, "acknowledges the executor's tasks", plainly(roles.Orchestrator, "$JS.ACK.TASKS.refund-executor-tasks.1.1.1.1.0", released), denied},
		attempt{asOrchestrator, "has an answer stored as the cap window", func(s *siege) string {
			return s.unmoved(roles.StreamEffects, func() string {
				m := msg(subject.Task(string(roles.Composer), tenant, "req-x"), nil)
				m.Reply = subject.EffectCap(tenant)
				return s.steal(roles.Orchestrator).try(m)
			})
		}, "sent, nothing stored"},
		attempt{asOrchestrator, "has a read stored as the stop switch", func(s *siege) string {
			return s.unmoved(roles.StreamControl, func() string {
				m := msg(api+".STREAM.MSG.GET.CASES", []byte(`{"seq":1}`))
				m.Reply = subject.Control(subject.StopAll)
				return s.steal(roles.Orchestrator).try(m)
			})
		}, "sent, nothing stored"},
		attempt{asOrchestrator, "schedules a cap window", scheduled(subject.EffectCap(tenant), roles.StreamEffects), "refused, nothing stored"},
		attempt{asOrchestrator, "schedules a stop switch", scheduled(subject.Control(subject.StopAll), roles.StreamControl), "refused, nothing stored"},
		attempt{asOrchestrator, "schedules an answer of the executor", scheduled(subject.Result(string(roles.RefundExecutor), tenant, "req-x"), roles.StreamResults), "refused, nothing stored"},
		attempt{asOrchestrator, "purges the ledger as if a schedule of it had fired", func(s *siege) string {
			a := s.twice(60000)
			if got := s.order(a); got != "acknowledged" {
				return got
			}
			return s.unmoved(roles.StreamEffects, func() string {
				m := msg(subject.Timer(tenant, "x"), nil)
				m.Header = nats.Header{"Nats-Scheduler": {subject.Effect(tenant, a.GetOrderId())}, "Nats-Schedule-Next": {"purge"}}
				return s.steal(roles.Orchestrator).try(m)
			})
		}, "sent, nothing stored"},
		attempt{asConsole, "rolls the stop switches up", func(s *siege) string {
			m := msg(subject.Control("nobody"), must(released))
			m.Header = nats.Header{"Nats-Rollup": {"all"}}
			return s.unmoved(roles.StreamControl, func() string { return s.steal(roles.Console).request(m) })
		}, "refused, nothing stored"},
		attempt{asConsole, "gives the stop switch a time to live", func(s *siege) string {
			m := msg(subject.Control("nobody"), must(released))
			m.Header = nats.Header{"Nats-TTL": {"1s"}}
			return s.unmoved(roles.StreamControl, func() string { return s.steal(roles.Console).request(m) })
		}, "refused, nothing stored"},
	)
}

func contains(all []roles.Service, s roles.Service) bool {
	for _, x := range all {
		if x == s {
			return true
		}
	}
	return false
}

// scheduled has the broker asked to publish elsewhere at once.
func scheduled(target, stream string) func(*siege) string {
	return func(s *siege) string {
		m := msg(subject.Timer(allinone.Tenant, "x"), []byte("x"))
		m.Header = nats.Header{"Nats-Schedule": {"@at " + time.Now().Add(-time.Second).UTC().Format(time.RFC3339Nano)}, "Nats-Schedule-Target": {target}}
		return s.unmoved(stream, func() string { return s.steal(roles.Orchestrator).request(m) })
	}
}

// request is a publish whose answer is read.
func (h *thief) request(m *nats.Msg) string {
	h.s.t.Helper()
	answer, err := h.nc.RequestMsgWithContext(h.s.ctx, m)
	switch {
	case err != nil:
		return err.Error()
	case bytes.Contains(answer.Data, []byte(`"error"`)):
		return "refused"
	}
	return "stored"
}

// unmoved does something and says whether a stream is as before.
func (s *siege) unmoved(stream string, f func() string) string {
	s.t.Helper()
	before := s.state(stream)
	got := f()
	if after := s.state(stream); after != before {
		return fmt.Sprintf("%s, %s went from %s to %s", got, stream, before, after)
	}
	return got + ", nothing stored"
}

func (s *siege) state(stream string) string {
	s.t.Helper()
	js, done, err := s.Inspect()
	if err != nil {
		s.t.Fatal(err)
	}
	defer done()
	info, err := js.Stream(s.ctx, stream)
	if err != nil {
		s.t.Fatal(err)
	}
	st := info.CachedInfo().State
	return fmt.Sprintf("%d..%d (%d)", st.FirstSeq, st.LastSeq, st.Msgs)
}
