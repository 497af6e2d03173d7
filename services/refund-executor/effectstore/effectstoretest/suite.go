package effectstoretest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/amends-dev/amends/internal/money"
	"github.com/amends-dev/amends/internal/subject"
	amendsv1 "github.com/amends-dev/amends/proto/amends/v1"
	"github.com/amends-dev/amends/services/refund-executor/effectstore"
)

// Tenant is whose records the suite keeps.
const Tenant = "acme-in"

// World is a store, and the hand on the stop switches.
type World struct {
	effectstore.Store
	// SetStop puts bytes on the switch of a scope.
	SetStop func(scope string, data []byte)
}

// Run tests a store. open is called once and gives an empty one; each test
// works on orders and tenants of its own.
func Run(t *testing.T, open func(t *testing.T) World) {
	t.Helper()
	w := open(t)
	for _, c := range []struct {
		name string
		test func(t *testing.T, w World)
	}{
		{"nobody ever stopped", neverStopped},
		{"an unknown order has no entry", unknown},
		{"what was written is read", roundTrip},
		{"what was written is dated by the store's clock (MONEY-1)", dated},
		{"only the expected sequence is replaced", expectation},
		{"orders and tenants are apart", apart},
		{"the cap window is no order", capWindow},
		{"what is invalid is not stored", invalid},
		{"nobody changes what is stored", aliasing},
		{"a cancelled write is not half stored", cancelled},
		{"what is too late is not stored (MONEY-2)", tooLate},
		{"50 writers, one winner (MONEY-1)", claim},
		{"a stop binds its tenant or all, and what cannot be read is one", stops},
		{"refusals are recorded", audit},
	} {
		t.Run(c.name, func(t *testing.T) { c.test(t, w) })
	}
}

// Entry is a valid entry of an order with one intent.
func Entry(tenant, order string, revision uint64) *amendsv1.EffectEntry {
	at := timestamppb.New(time.Date(2026, 3, 12, 10, 14, 0, 0, time.UTC))
	return &amendsv1.EffectEntry{Tenant: tenant, OrderId: order, Revision: revision, Intents: []*amendsv1.EffectIntent{{
		IdempotencyKey: "refund:req-" + order + ":pay_1", CaseId: "req-" + order, PaymentId: "pay_1", Amount: money.New(200000, "INR"),
		ActionSha256: strings.Repeat("ab", 32), Body: []byte(`{"amount_minor":200000}`), BegunAt: at, CallBefore: at, Calls: 1,
	}}}
}

func window(tenant string, revision uint64) *amendsv1.CapWindow {
	return &amendsv1.CapWindow{Tenant: tenant, Revision: revision}
}

func bounded(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	t.Cleanup(cancel)
	return ctx
}

func save(t *testing.T, w World, e *amendsv1.EffectEntry, expect uint64) uint64 {
	t.Helper()
	seq, err := w.SaveEntry(bounded(t), e, expect)
	if err != nil || seq == 0 {
		t.Fatalf("save revision %d: %d, %v", e.GetRevision(), seq, err)
	}
	return seq
}

func load(t *testing.T, w World, tenant, order string) (*amendsv1.EffectEntry, uint64) {
	t.Helper()
	e, seq, _, err := w.Entry(bounded(t), tenant, order)
	if err != nil {
		t.Fatalf("read order %s: %v", order, err)
	}
	return e, seq
}

func fails(t *testing.T, what string, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Errorf("%s: got %v, want %v", what, err, want)
	}
}

func unknown(t *testing.T, w World) {
	if e, seq := load(t, w, Tenant, "unknown"); e != nil || seq != 0 {
		t.Errorf("entry %v at %d", e, seq)
	}
	if c, seq, err := w.Caps(bounded(t), "nobody"); c != nil || seq != 0 || err != nil {
		t.Errorf("caps %v at %d, %v", c, seq, err)
	}
	for _, order := range []string{"", "*", ">", "a.b", subject.CapKey} {
		_, _, _, err := w.Entry(bounded(t), Tenant, order)
		fails(t, "read order "+order, err, effectstore.ErrInvalid)
	}
}

func roundTrip(t *testing.T, w World) {
	want := Entry(Tenant, "round", 1)
	seq := save(t, w, want, 0)
	if got, at := load(t, w, Tenant, "round"); at != seq || !proto.Equal(got, want) {
		t.Errorf("read %v at %d, wrote %v at %d", got, at, want, seq)
	}
}

// dated: an entry is as old as its last write, by the clock that Time gives.
func dated(t *testing.T, w World) {
	clock := func() time.Time {
		t.Helper()
		at, err := w.Time(bounded(t))
		if err != nil {
			t.Fatal(err)
		}
		return at
	}
	if _, _, at, err := w.Entry(bounded(t), Tenant, "undated"); !at.IsZero() || err != nil {
		t.Errorf("no entry, of %s, %v", at, err)
	}
	seq := uint64(0)
	for revision := range uint64(3) {
		before := clock()
		seq = save(t, w, Entry(Tenant, "dated", revision+1), seq)
		after := clock()
		for range 2 {
			_, _, at, err := w.Entry(bounded(t), Tenant, "dated")
			if err != nil || at.Before(before) || at.After(after) {
				t.Errorf("revision %d is of %s, %v, written between %s and %s", revision+1, at, err, before, after)
			}
		}
	}
}

func expectation(t *testing.T, w World) {
	_, err := w.SaveEntry(bounded(t), Entry(Tenant, "expect", 1), 7)
	fails(t, "a revision before there is an entry", err, effectstore.ErrConflict)
	first := save(t, w, Entry(Tenant, "expect", 1), 0)
	_, err = w.SaveEntry(bounded(t), Entry(Tenant, "expect", 9), 0)
	fails(t, "an entry that exists made again", err, effectstore.ErrConflict)
	second := save(t, w, Entry(Tenant, "expect", 2), first)
	for _, wrong := range []uint64{0, first, second + 1, 1 << 62} {
		_, err = w.SaveEntry(bounded(t), Entry(Tenant, "expect", 9), wrong)
		fails(t, fmt.Sprintf("expecting %d at %d", wrong, second), err, effectstore.ErrConflict)
	}
	if got, at := load(t, w, Tenant, "expect"); at != second || got.GetRevision() != 2 {
		t.Errorf("after refused writes: revision %d at %d", got.GetRevision(), at)
	}
}

func apart(t *testing.T, w World) {
	one, two := save(t, w, Entry(Tenant, "one", 1), 0), save(t, w, Entry(Tenant, "two", 1), 0)
	_, err := w.SaveEntry(bounded(t), Entry(Tenant, "one", 2), two)
	fails(t, "expecting another order's sequence", err, effectstore.ErrConflict)
	save(t, w, Entry(Tenant, "one", 2), one)
	if e, _ := load(t, w, "globex", "one"); e != nil {
		t.Errorf("another tenant's entry: %v", e)
	}
	save(t, w, Entry("globex", "one", 7), 0)
	if e, _ := load(t, w, Tenant, "one"); e.GetRevision() != 2 {
		t.Errorf("revision %d", e.GetRevision())
	}
}

func capWindow(t *testing.T, w World) {
	seq, err := w.SaveCaps(bounded(t), window("capped", 1), 0)
	if err != nil {
		t.Fatal(err)
	}
	_, err = w.SaveCaps(bounded(t), window("capped", 1), 0)
	fails(t, "a window that exists made again", err, effectstore.ErrConflict)
	if got, at, err := w.Caps(bounded(t), "capped"); err != nil || at != seq || got.GetRevision() != 1 {
		t.Errorf("window %v at %d, %v", got, at, err)
	}
	_, err = w.SaveEntry(bounded(t), Entry("capped", subject.CapKey, 1), seq)
	fails(t, "an entry in its place", err, effectstore.ErrInvalid)
}

func invalid(t *testing.T, w World) {
	for what, change := range map[string]func(e *amendsv1.EffectEntry){
		"no tenant":         func(e *amendsv1.EffectEntry) { e.Tenant = "" },
		"a wild order":      func(e *amendsv1.EffectEntry) { e.OrderId = ">" },
		"an intent unbegun": func(e *amendsv1.EffectEntry) { e.Intents[0].BegunAt = nil },
		"no body":           func(e *amendsv1.EffectEntry) { e.Intents[0].Body = nil },
		"a negative amount": func(e *amendsv1.EffectEntry) { e.Intents[0].Amount.Minor = -1 },
		"an unknown outcome": func(e *amendsv1.EffectEntry) {
			e.Intents[0].Outcome = &amendsv1.EffectOutcome{Class: 99, At: e.Intents[0].BegunAt}
		},
	} {
		e := Entry(Tenant, "invalid", 1)
		change(e)
		_, err := w.SaveEntry(bounded(t), e, 0)
		fails(t, what, err, effectstore.ErrInvalid)
	}
	if e, _ := load(t, w, Tenant, "invalid"); e != nil {
		t.Errorf("stored %v", e)
	}
}

func aliasing(t *testing.T, w World) {
	e := Entry(Tenant, "alias", 1)
	save(t, w, e, 0)
	e.Intents[0].PaymentId = "changed after the write"
	got, _ := load(t, w, Tenant, "alias")
	got.Intents[0].PaymentId = "changed after the read"
	if again, _ := load(t, w, Tenant, "alias"); again.Intents[0].GetPaymentId() != "pay_1" {
		t.Errorf("stored %v", again)
	}
}

func cancelled(t *testing.T, w World) {
	first := save(t, w, Entry(Tenant, "cancelled", 1), 0)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := w.SaveEntry(ctx, Entry(Tenant, "cancelled", 2), first); err == nil {
		t.Error("a cancelled write was acknowledged")
	}
	if got, at := load(t, w, Tenant, "cancelled"); (at == first) != (got.GetRevision() == 1) {
		t.Errorf("revision %d at %d", got.GetRevision(), at)
	}
}

func tooLate(t *testing.T, w World) {
	noon := time.Date(2026, 3, 12, 12, 0, 0, 0, time.UTC)
	first := save(t, w, Entry(Tenant, "late", 1), 0)
	for name, c := range map[string]struct {
		now  time.Time
		want error
	}{
		"in time": {noon.Add(-time.Nanosecond), nil}, "at the moment": {noon, effectstore.ErrTooLate}, "later": {noon.Add(time.Hour), effectstore.ErrTooLate},
	} {
		ctx := effectstore.NotAfter(bounded(t), func() time.Time { return c.now }, noon)
		if _, err := w.SaveEntry(ctx, Entry(Tenant, "late-"+strings.ReplaceAll(name, " ", "-"), 1), 0); !errors.Is(err, c.want) {
			t.Errorf("%s: %v", name, err)
		}
		if e, _ := load(t, w, Tenant, "late-"+strings.ReplaceAll(name, " ", "-")); (e != nil) != (c.want == nil) {
			t.Errorf("%s: stored %v", name, e)
		}
	}
	_, err := w.SaveEntry(effectstore.NotAfter(bounded(t), func() time.Time { return noon }, noon), Entry(Tenant, "late", 2), first)
	fails(t, "a second revision", err, effectstore.ErrTooLate)
}

func claim(t *testing.T, w World) {
	const writers = 50
	for _, begin := range []uint64{0, save(t, w, Entry(Tenant, "claim-1", 1), 0)} {
		order := fmt.Sprintf("claim-%d", min(begin, 1))
		start := make(chan struct{})
		var wg sync.WaitGroup
		var won, conflicts atomic.Int32
		ctx := bounded(t)
		for i := range writers {
			wg.Go(func() {
				<-start
				switch _, err := w.SaveEntry(ctx, Entry(Tenant, order, uint64(100+i)), begin); {
				case err == nil:
					won.Add(1)
				case errors.Is(err, effectstore.ErrConflict):
					conflicts.Add(1)
				default:
					t.Errorf("writer %d: %v", i, err)
				}
			})
		}
		close(start)
		wg.Wait()
		if won.Load() != 1 || conflicts.Load() != writers-1 {
			t.Errorf("%s: %d won and %d lost of %d", order, won.Load(), conflicts.Load(), writers)
		}
	}
}

func neverStopped(t *testing.T, w World) { stopped(t, w, Tenant, false) }

func stopped(t *testing.T, w World, tenant string, want bool) {
	t.Helper()
	if got, err := w.Stopped(bounded(t), tenant); err != nil || got != want {
		t.Errorf("%s: stopped %t, %v, want %t", tenant, got, err, want)
	}
}

func stops(t *testing.T, w World) {
	set := func(scope string, on bool) {
		data, err := proto.Marshal(&amendsv1.StopSwitch{Stopped: on, Scope: scope, By: "ops", Reason: "test", At: timestamppb.Now()})
		if err != nil {
			t.Fatal(err)
		}
		w.SetStop(scope, data)
	}
	set("other", true)
	stopped(t, w, Tenant, false)
	set(Tenant, true)
	stopped(t, w, Tenant, true)
	stopped(t, w, "globex", false)
	set(Tenant, false)
	stopped(t, w, Tenant, false)
	set(subject.StopAll, true)
	stopped(t, w, Tenant, true)
	stopped(t, w, "globex", true)
	set(subject.StopAll, false)
	stopped(t, w, Tenant, false)
	for _, garbage := range [][]byte{[]byte("not a switch"), nil} { // an empty message names no scope
		w.SetStop(Tenant, garbage)
		stopped(t, w, Tenant, true)
	}
	set(Tenant, false)
}

func audit(t *testing.T, w World) {
	e := &amendsv1.AuditEvent{Service: "refund-executor", Actor: "refund-executor", Action: "refund.refused", Subject: "req-1", Outcome: "disputed", At: timestamppb.Now()}
	if err := w.Audit(bounded(t), Tenant, e); err != nil {
		t.Error(err)
	}
	e.Outcome = ""
	fails(t, "without an outcome", w.Audit(bounded(t), Tenant, e), effectstore.ErrInvalid)
}
