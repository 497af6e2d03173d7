package effectstore_test

import (
	"errors"
	"testing"

	"github.com/amends-dev/amends/internal/bus"
	"github.com/amends-dev/amends/internal/bus/bustest"
	"github.com/amends-dev/amends/internal/roles"
	"github.com/amends-dev/amends/internal/subject"
	"github.com/amends-dev/amends/services/refund-executor/effectstore"
	"github.com/amends-dev/amends/services/refund-executor/effectstore/effectstoretest"
)

func TestMemory(t *testing.T) {
	t.Parallel()
	effectstoretest.Run(t, func(*testing.T) effectstoretest.World {
		m := effectstore.NewMemory()
		return effectstoretest.World{Store: m, SetStop: m.SetStop}
	})
}

// On the executor's own credential, as in the running desk; the switches are
// the console's.
func TestJetStream(t *testing.T) {
	t.Parallel()
	effectstoretest.Run(t, func(t *testing.T) effectstoretest.World {
		desk := bustest.Desk(t, bustest.Options{})
		console := desk.Connect(roles.Console)
		return effectstoretest.World{Store: effectstore.NewJetStream(desk.Connect(roles.RefundExecutor)), SetStop: func(scope string, data []byte) {
			if _, err := console.Publish(t.Context(), subject.Control(scope), data); err != nil {
				t.Error(err)
			}
		}}
	})
}

// Nobody but the executor writes an effect entry or reads one at the leader
// (AUTH-1, AUTH-2).
func TestTheEffectLedgerIsTheExecutorsAlone(t *testing.T) {
	t.Parallel()
	desk := bustest.Desk(t, bustest.Options{})
	mine := effectstore.NewJetStream(desk.Connect(roles.RefundExecutor))
	for _, s := range []roles.Service{roles.Console, roles.Composer, roles.Orchestrator} {
		theirs := effectstore.NewJetStream(desk.Connect(s))
		if _, err := theirs.SaveEntry(t.Context(), effectstoretest.Entry(effectstoretest.Tenant, "8472", 1), 0); !errors.Is(err, bus.ErrDenied) {
			t.Errorf("%s: write: %v", s, err)
		}
	}
	if e, _, _, err := mine.Entry(t.Context(), effectstoretest.Tenant, "8472"); e != nil || err != nil {
		t.Errorf("entry %v, %v", e, err)
	}
}

func TestMemoryFaults(t *testing.T) {
	t.Parallel()
	struck, broken := effectstore.Op(""), errors.New("broken")
	m := effectstore.NewMemory(effectstore.WithFault(func(op effectstore.Op, _ string) error {
		if op == struck {
			return broken
		}
		return nil
	}))
	write := func() error {
		_, err := m.SaveEntry(t.Context(), effectstoretest.Entry(effectstoretest.Tenant, "8472", 1), 0)
		return err
	}
	stored := func() bool {
		e, _, _, err := m.Entry(t.Context(), effectstoretest.Tenant, "8472")
		if err != nil {
			t.Fatal(err)
		}
		return e != nil
	}
	struck = effectstore.OpWrite
	if err := write(); !errors.Is(err, broken) || errors.Is(err, effectstore.ErrUncertain) {
		t.Errorf("before the write: %v", err)
	}
	if struck = ""; stored() {
		t.Error("a write that was struck down is stored")
	}
	struck = effectstore.OpAck
	if err := write(); !errors.Is(err, effectstore.ErrUncertain) || !errors.Is(err, broken) {
		t.Errorf("lost acknowledgement: %v", err)
	}
	if struck = ""; !stored() {
		t.Error("a write whose acknowledgement was lost is not stored")
	}
	struck = effectstore.OpRead
	if _, _, _, err := m.Entry(t.Context(), effectstoretest.Tenant, "8472"); !errors.Is(err, broken) {
		t.Errorf("read: %v", err)
	}
	if _, err := m.Time(t.Context()); !errors.Is(err, broken) {
		t.Errorf("clock: %v", err)
	}
	struck = effectstore.OpStop
	if _, err := m.Stopped(t.Context(), effectstoretest.Tenant); !errors.Is(err, broken) {
		t.Errorf("stop: %v", err)
	}
	if h, err := m.History(effectstoretest.Tenant, "8472"); err != nil || len(h) != 1 {
		t.Errorf("history %v, %v", h, err)
	}
}
