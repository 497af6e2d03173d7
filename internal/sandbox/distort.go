package sandbox

import (
	"bytes"
	"encoding/json"
	"log/slog"
)

// record is a capture, refund, dispute or settlement within an answer.
type record struct {
	kind   string
	fields map[string]any
}

const recordSettlement = "settlement"

// distort shows an answer's records other than they are. The book is untouched.
func (f *faults) distort(c *call, body []byte) []byte {
	if f.some.Load() == 0 || c.route == routeOwner {
		return body
	}
	d := json.NewDecoder(bytes.NewReader(body))
	d.UseNumber() // amounts stay as they are
	var all any
	if err := d.Decode(&all); err != nil {
		return body // not JSON
	}
	records := recordsIn(all, nil)
	struck := f.claim(maxFaults, func(x Fault) bool {
		changed := false
		if x.Kind != UnknownEnum && x.Kind != Contradictory || !x.strikes(c.route) {
			return false
		}
		for _, r := range records {
			changed = x.matches(r.about(c.about)) && x.distort(r) || changed
		}
		return changed
	})
	if len(struck) == 0 {
		return body
	}
	out, err := json.Marshal(all)
	if err != nil { // it was JSON before
		f.log.Error("answer not distorted", slog.Any("error", err))
		return body
	}
	return out
}

// recordsIn finds the records in a value, by the fields that only they have.
func recordsIn(v any, found []record) []record {
	switch v := v.(type) {
	case []any:
		for _, item := range v {
			found = recordsIn(item, found)
		}
	case map[string]any:
		for _, k := range []struct{ field, kind string }{
			{"refund_id", recordRefund}, {"dispute_id", recordDispute}, {"captured", recordCapture}, {"settled", recordSettlement},
		} {
			if _, ok := v[k.field]; ok {
				return append(found, record{k.kind, v})
			}
		}
		for _, item := range v { // objects within an answer are told apart by their fields, not by their order
			found = recordsIn(item, found)
		}
	}
	return found
}

// about says whose a record is; what it leaves out is the request's.
func (r record) about(asked subject) subject {
	s := subject{tenant: asked.tenant, order: asked.order}
	text := func(name, otherwise string) string {
		if v, ok := r.fields[name].(string); ok {
			return v
		}
		return otherwise
	}
	s.tenant, s.order = text("tenant", s.tenant), text("order_id", s.order)
	s.payments, s.references = []string{text("payment_id", "")}, []string{text("reference", "")}
	return s
}

// distort changes a record; false when the fault is not about its kind.
func (x Fault) distort(r record) bool {
	flag := func(name string) bool {
		was, ok := r.fields[name].(bool)
		if ok {
			r.fields[name] = !was
		}
		return ok
	}
	switch {
	case x.Kind == Contradictory && r.kind == recordCapture:
		return flag("captured")
	case x.Kind == Contradictory && r.kind == recordSettlement:
		return flag("settled")
	case x.Kind == UnknownEnum && r.kind != recordSettlement && (x.Record == "" || x.Record == r.kind):
		r.fields["status"] = oddStatus
		if x.Status != "" {
			r.fields["status"] = x.Status
		}
		return true
	}
	return false
}
