package casestore_test

import (
	"errors"
	"testing"

	"github.com/amends-dev/amends/internal/casestore"
	"github.com/amends-dev/amends/internal/casestore/casestoretest"
)

func TestMemory(t *testing.T) {
	t.Parallel()
	casestoretest.Run(t, func(*testing.T) casestoretest.Store { return casestore.NewMemory() })
}

func TestMemoryFaults(t *testing.T) {
	t.Parallel()
	struck, broken := "", errors.New("broken")
	m := casestore.NewMemory(casestore.WithFault(func(op string) error {
		if op == struck {
			return broken
		}
		return nil
	}))
	const id = "req-8472"
	create := func() error {
		_, err := m.Commit(t.Context(), casestoretest.Commit(casestoretest.Tenant, id, 1, "a"), 0)
		return err
	}
	struck = casestore.OpCommit
	if err := create(); !errors.Is(err, broken) || errors.Is(err, casestore.ErrUncertain) {
		t.Errorf("before the commit: %v", err)
	}
	struck = ""
	if _, err := m.Load(t.Context(), casestoretest.Tenant, id); !errors.Is(err, casestore.ErrNotFound) {
		t.Errorf("a commit that was struck down is stored: %v", err)
	}
	struck = casestore.OpAck
	if err := create(); !errors.Is(err, casestore.ErrUncertain) || !errors.Is(err, broken) {
		t.Errorf("lost acknowledgement: %v", err)
	}
	struck = ""
	if err := create(); !errors.Is(err, casestore.ErrConflict) {
		t.Errorf("after a lost acknowledgement: %v", err)
	}
	for _, struck = range []string{casestore.OpLoad, casestore.OpLog} {
		_, loadErr := m.Load(t.Context(), casestoretest.Tenant, id)
		_, logErr := m.Log(t.Context(), casestoretest.Tenant, id)
		if (loadErr != nil) != (struck == casestore.OpLoad) || (logErr != nil) != (struck == casestore.OpLog) {
			t.Errorf("%s: load %v, log %v", struck, loadErr, logErr)
		}
	}
}
