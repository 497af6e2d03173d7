package casestore

import (
	"context"
	"errors"
	"fmt"

	"github.com/amends-dev/amends/internal/bus"
	"github.com/amends-dev/amends/internal/roles"
	amendsv1 "github.com/amends-dev/amends/proto/amends/v1"
)

// JetStream keeps one message a commit on case.{tenant}.{case}.
type JetStream struct{ conn *bus.Conn }

// NewJetStream stores through the orchestrator's connection.
func NewJetStream(conn *bus.Conn) *JetStream { return &JetStream{conn: conn} }

// Load gives the newest record of a case.
func (s *JetStream) Load(ctx context.Context, tenant, caseID string) (Snapshot, error) {
	subj, err := where(tenant, caseID)
	if err != nil {
		return Snapshot{}, fmt.Errorf("load the case: %w", err)
	}
	m, err := s.conn.Last(ctx, roles.StreamCases, subj)
	if err != nil {
		return Snapshot{}, fmt.Errorf("load the case: %w", translate(err))
	}
	c, err := decode(m.Data, m.Seq)
	if err != nil {
		return Snapshot{}, fmt.Errorf("load the case: %w", err)
	}
	return Snapshot{Record: c.GetRecord(), Seq: m.Seq}, nil
}

// Commit stores c if expect is still the case's last sequence, and gives the
// new one.
func (s *JetStream) Commit(ctx context.Context, c *amendsv1.CaseCommit, expect uint64) (uint64, error) {
	subj, data, err := encode(c)
	if err != nil {
		return 0, fmt.Errorf("commit the case: %w", err)
	}
	seq, err := s.conn.Publish(ctx, subj, data, bus.ExpectLast(expect))
	if err != nil {
		return 0, fmt.Errorf("commit the case: %w", translate(err))
	}
	return seq, nil
}

// Log gives every commit of a case, oldest first.
func (s *JetStream) Log(ctx context.Context, tenant, caseID string) ([]*amendsv1.CaseCommit, error) {
	subj, err := where(tenant, caseID)
	if err != nil {
		return nil, fmt.Errorf("read the case's log: %w", err)
	}
	var out []*amendsv1.CaseCommit
	for seq := uint64(0); len(out) < maxLog; {
		m, err := s.conn.NextAfter(ctx, roles.StreamCases, subj, seq)
		if errors.Is(err, bus.ErrNotFound) && len(out) > 0 {
			return out, nil
		}
		if err != nil {
			return nil, fmt.Errorf("read the case's log: %w", translate(err))
		}
		c, err := decode(m.Data, m.Seq)
		if err != nil {
			return nil, fmt.Errorf("read the case's log: %w", err)
		}
		out, seq = append(out, c), m.Seq
	}
	return nil, fmt.Errorf("read the case's log: more than %d commits", maxLog)
}

// translate puts the bus's answers into the store's words.
func translate(err error) error {
	for from, to := range map[error]error{
		bus.ErrNotFound: ErrNotFound, bus.ErrConflict: ErrConflict, bus.ErrUncertain: ErrUncertain,
	} {
		if errors.Is(err, from) {
			return fmt.Errorf("%w: %w", to, err)
		}
	}
	return err
}
