package casework

import (
	"fmt"

	"google.golang.org/protobuf/proto"

	amendsv1 "github.com/amends-dev/amends/proto/amends/v1"
)

// Replay applies the inputs of a case's log, in order, from nothing, and checks
// that every commit holds the record they give (STATE-1). decode gives an
// envelope's payload. It returns the newest record.
func Replay(log []*amendsv1.CaseCommit, lim Limits, decode func(*amendsv1.Envelope) (proto.Message, error)) (*amendsv1.CaseRecord, error) {
	var rec *amendsv1.CaseRecord
	for i, c := range log {
		if c.GetFirstVersion() != rec.GetVersion()+1 {
			return nil, fmt.Errorf("commit %d starts at version %d after version %d", i, c.GetFirstVersion(), rec.GetVersion())
		}
		for _, in := range c.GetInputs() {
			payload, err := decode(in.GetEnvelope())
			if err != nil {
				return nil, fmt.Errorf("commit %d: %w", i, err)
			}
			again, err := Decide(rec, Input{AppliedInput: in, Payload: payload}, lim)
			if err != nil {
				return nil, fmt.Errorf("commit %d: input %s: %w", i, in.GetEnvelope().GetMessageId(), err)
			}
			rec = again.GetRecord()
		}
		if !proto.Equal(rec, c.GetRecord()) {
			return nil, fmt.Errorf("commit %d: replaying gives another record at version %d", i, rec.GetVersion())
		}
		if err := CheckTimeline(rec); err != nil {
			return nil, fmt.Errorf("commit %d: %w", i, err)
		}
	}
	return rec, nil
}

// CheckTimeline checks that a record's versions are consecutive and that each
// followed from the one before by a row of the table.
func CheckTimeline(rec *amendsv1.CaseRecord) error {
	state := none
	for i, t := range rec.GetTimeline() {
		if t.GetVersion() != uint64(i)+1 {
			return fmt.Errorf("version %d stands at place %d", t.GetVersion(), i+1)
		}
		if !allowed(t.GetRow(), state, t.GetState()) {
			return fmt.Errorf("version %d: row %q does not lead from %s to %s", t.GetVersion(), t.GetRow(), StateName(state), StateName(t.GetState()))
		}
		state = t.GetState()
	}
	if rec.GetState() != state || rec.GetVersion() != uint64(len(rec.GetTimeline())) {
		return fmt.Errorf("record is %s at version %d, its timeline ends %s at %d", StateName(rec.GetState()), rec.GetVersion(), StateName(state), len(rec.GetTimeline()))
	}
	return nil
}

func allowed(name string, from, to amendsv1.CaseState) bool {
	for _, r := range Table {
		if r.Name != name {
			continue
		}
		dest := r.To
		if dest == Same {
			dest = from
		}
		for _, f := range r.From {
			if f == from && dest == to {
				return true
			}
		}
	}
	return false
}
