package casestore_test

import (
	"errors"
	"testing"

	"github.com/amends-dev/amends/internal/bus"
	"github.com/amends-dev/amends/internal/bus/bustest"
	"github.com/amends-dev/amends/internal/casestore"
	"github.com/amends-dev/amends/internal/casestore/casestoretest"
	"github.com/amends-dev/amends/internal/roles"
)

// On the orchestrator's own credential, as in the running desk.
func TestJetStream(t *testing.T) {
	t.Parallel()
	casestoretest.Run(t, func(t *testing.T) casestoretest.Store {
		return casestore.NewJetStream(bustest.Desk(t, bustest.Options{}).Connect(roles.Orchestrator))
	})
}

// Nobody but the orchestrator writes a case, or reads one at the leader.
func TestJetStreamIsTheOrchestratorsAlone(t *testing.T) {
	t.Parallel()
	desk := bustest.Desk(t, bustest.Options{})
	s := casestore.NewJetStream(desk.Connect(roles.Composer))
	_, err := s.Commit(t.Context(), casestoretest.Commit(casestoretest.Tenant, "req-8472", 1, "composer"), 0)
	if !errors.Is(err, bus.ErrDenied) {
		t.Errorf("commit: %v", err)
	}
	if _, err := s.Load(t.Context(), casestoretest.Tenant, "req-8472"); !errors.Is(err, bus.ErrDenied) {
		t.Errorf("load: %v", err)
	}
	if _, err := casestore.NewJetStream(desk.Connect(roles.Orchestrator)).Load(t.Context(), casestoretest.Tenant, "req-8472"); !errors.Is(err, casestore.ErrNotFound) {
		t.Errorf("the composer's commit is stored: %v", err)
	}
}
