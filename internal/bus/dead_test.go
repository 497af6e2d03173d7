package bus_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"go.opentelemetry.io/otel/trace"

	"github.com/amends-dev/amends/internal/bus"
	"github.com/amends-dev/amends/internal/bus/bustest"
	"github.com/amends-dev/amends/internal/envelope"
	"github.com/amends-dev/amends/internal/roles"
	"github.com/amends-dev/amends/internal/subject"
)

// B35, B59: what cannot be opened is dead-lettered at once, with its own
// reason, and does not slow the others.
func TestRejectedMessagesBecomeDeadLettersB35B59(t *testing.T) {
	t.Parallel()
	b := bustest.Desk(t, bustest.Options{Manifest: quick()})
	gateway, orchestrator := b.Connect(roles.Gateway), b.Connect(roles.Orchestrator)
	ctx := t.Context()
	put := func(caseID string, data []byte) {
		t.Helper()
		if _, err := gateway.Publish(ctx, subject.Intake("gateway", tenant, caseID), data); err != nil {
			t.Fatal(err)
		}
	}
	put("undecodable", []byte("\xff\xffnot protobuf"))
	put("too_large", make([]byte, envelope.MaxSize+1))
	put("subject_mismatch", sealed(t, "another"))
	forged := sealed(t, "sender_forged")
	forged = bytes.Replace(forged, []byte("gateway"), []byte("console"), 1)
	put("sender_forged", forged)
	put("type_unknown", bytes.Replace(sealed(t, "type_unknown"), []byte("case.cancel"), []byte("case.absurd"), 1))
	// Tokens that no builder makes, within what the gateway may publish.
	if _, err := gateway.Publish(ctx, "intake.gateway.a$b.c", []byte("x")); err != nil {
		t.Fatal(err)
	}
	const others = 50
	for i := range others {
		post(t, gateway, fmt.Sprint("req-", i))
	}

	var handled atomic.Int64
	var mu sync.Mutex
	told := make(map[string]string)
	consume(t, orchestrator, func(context.Context, *bus.Message) error {
		handled.Add(1)
		return nil
	}, bus.ConsumeOptions{OnReject: func(_ context.Context, m *bus.Message, rej *envelope.Rejection) {
		mu.Lock()
		defer mu.Unlock()
		told[m.Subject] = rej.Reason
	}})
	letters := awaitDead(t, b, 6)
	bustest.Await(t, "the other cases", func() bool { return handled.Load() == others && settled(t, b) })
	mu.Lock()
	defer mu.Unlock()
	for _, dl := range letters {
		want := dl.GetCaseId()
		if dl.GetOriginal().GetSubject() == "intake.gateway.a$b.c" {
			want = "subject_mismatch"
			if dl.GetCaseId() != "" || dl.GetTenant() != "" {
				t.Errorf("tenant %q and case %q from a subject that is not ours", dl.GetTenant(), dl.GetCaseId())
			}
		}
		if dl.GetReason() != want || dl.GetDeliveries() != 1 || dl.GetService() != "orchestrator" {
			t.Errorf("dead letter of %s: reason %s after %d deliveries by %s", want, dl.GetReason(), dl.GetDeliveries(), dl.GetService())
		}
		if told[dl.GetOriginal().GetSubject()] != dl.GetReason() {
			t.Errorf("%s: OnReject was told %q", want, told[dl.GetOriginal().GetSubject()])
		}
	}
}

// B35: a message that looks like a word of the broker is a message, and ends.
func TestMessageThatLooksLikeAStatusB35(t *testing.T) {
	t.Parallel()
	b := bustest.Desk(t, bustest.Options{Manifest: quick()})
	raw := b.Raw(roles.Gateway)
	for i, status := range []string{"100", "404", "408", "409", "503"} {
		m := &nats.Msg{Subject: subject.Intake("gateway", tenant, fmt.Sprint("req-", i)), Header: nats.Header{"Status": {status}, "Nats-Pending-Messages": {"1"}}}
		if _, err := raw.RequestMsg(m, 2*time.Second); err != nil {
			t.Fatal(err)
		}
	}
	consume(t, b.Connect(roles.Orchestrator), func(context.Context, *bus.Message) error { return nil }, bus.ConsumeOptions{})
	for _, dl := range awaitDead(t, b, 5) {
		if dl.GetReason() != envelope.ReasonSubjectMismatch {
			t.Errorf("dead letter with reason %s", dl.GetReason())
		}
	}
	bustest.Await(t, "the consumer to be settled", func() bool { return settled(t, b) })
}

// B58, B60: the dead letter has the original whole, and what it quotes outside
// of it is masked.
func TestDeadLetterKeepsTheOriginalB58B60(t *testing.T) {
	t.Parallel()
	var logs lockedBuffer
	b := bustest.Desk(t, bustest.Options{Manifest: quick(), Log: slog.New(slog.NewJSONHandler(&logs, nil))})
	gateway, orchestrator := b.Connect(roles.Gateway), b.Connect(roles.Orchestrator)
	sc := trace.NewSpanContext(trace.SpanContextConfig{TraceID: trace.TraceID{9}, SpanID: trace.SpanID{8}})
	env, payload := withdrawal("req-1")
	env.TaskId, env.Attempt, env.TraceId = "task-1-pay", 2, sc.TraceID().String()
	data, err := envelope.Seal(env, payload)
	if err != nil {
		t.Fatal(err)
	}
	subj := subject.Intake("gateway", tenant, "req-1")
	seq, err := gateway.Publish(trace.ContextWithRemoteSpanContext(t.Context(), sc), subj, data)
	if err != nil {
		t.Fatal(err)
	}
	consume(t, orchestrator, func(context.Context, *bus.Message) error {
		return bus.Reject("bad_card", errors.New("card 4111 1111-1111 1111 of order 8472, phone +919876543210"))
	}, bus.ConsumeOptions{})
	dl := awaitDead(t, b, 1)[0]
	source := stored(t, b, roles.StreamIntake)[0]
	o := dl.GetOriginal()
	if o.GetSubject() != subj || !bytes.Equal(o.GetData(), data) || o.GetStream() != roles.StreamIntake || o.GetSequence() != seq || !o.GetStoredAt().AsTime().Equal(source.Time) {
		t.Errorf("original is %s %s %d at %s", o.GetSubject(), o.GetStream(), o.GetSequence(), o.GetStoredAt().AsTime())
	}
	if len(o.GetSha256()) != 64 {
		t.Errorf("sha256 %q", o.GetSha256())
	}
	if len(o.GetHeaders()) != len(source.Header) || len(o.GetHeaders()) == 0 {
		t.Errorf("headers %v, stored were %v", o.GetHeaders(), source.Header)
	}
	for _, h := range o.GetHeaders() {
		if strings.Join(h.GetValues(), ",") != strings.Join(source.Header[h.GetName()], ",") {
			t.Errorf("header %s is %v, stored was %v", h.GetName(), h.GetValues(), source.Header[h.GetName()])
		}
	}
	if dl.GetTaskId() != "task-1-pay" || dl.GetAttempt() != 2 || dl.GetTraceId() != sc.TraceID().String() || dl.GetTenant() != tenant || dl.GetCaseId() != "req-1" {
		t.Errorf("dead letter names task %s attempt %d trace %s tenant %s case %s", dl.GetTaskId(), dl.GetAttempt(), dl.GetTraceId(), dl.GetTenant(), dl.GetCaseId())
	}
	if want := "card [masked] of order 8472, phone +[masked]"; dl.GetError() != want {
		t.Errorf("error text %q, want %q", dl.GetError(), want)
	}
	bustest.Await(t, "the log line", func() bool { return strings.Contains(logs.String(), "bad_card") })
	if s := logs.String(); strings.Contains(s, "4111") || strings.Contains(s, "9876543210") {
		t.Errorf("the log quotes the message: %s", s)
	}
	if h := stored(t, b, roles.StreamDeadLetters)[0].Header["traceparent"]; len(h) != 1 || !strings.Contains(h[0], sc.TraceID().String()) {
		t.Errorf("the dead letter's trace is %v", h)
	}
}

// LOSS-2: as long as no dead letter can be stored, the message stays.
func TestNoDeadLetterNoEndLOSS2(t *testing.T) {
	t.Parallel()
	b := bustest.Desk(t, bustest.Options{Manifest: quick(), RequestTimeout: 300 * time.Millisecond})
	gateway, orchestrator := b.Connect(roles.Gateway), b.Connect(roles.Orchestrator)
	if err := b.Admin().DeleteStream(t.Context(), roles.StreamDeadLetters); err != nil {
		t.Fatal(err)
	}
	var seen counter
	consume(t, orchestrator, func(_ context.Context, m *bus.Message) error {
		seen.add(m.Parts.CaseID)
		return bus.Reject("never", nil)
	}, bus.ConsumeOptions{})
	post(t, gateway, "req-1")
	bustest.Await(t, "a second delivery", func() bool { return seen.get("req-1") >= 2 })
	b.ProvisionNew()
	if dl := awaitDead(t, b, 1)[0]; dl.GetCaseId() != "req-1" {
		t.Errorf("dead letter of %s", dl.GetCaseId())
	}
	bustest.Await(t, "the consumer to be settled", func() bool { return settled(t, b) })
}

// lockedBuffer takes log lines from several goroutines.
type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}
