package casefile

import (
	"slices"
	"strings"
	"unicode"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/amends-dev/amends/internal/sandbox"
	amendsv1 "github.com/amends-dev/amends/proto/amends/v1"
)

// maxStored is the largest message any of the desk's streams takes.
const maxStored = 512 << 10

// fragments are the parts of the customer's words that are long enough to be
// recognised again: lines, and of long lines every run of five words.
func (b bench) fragments() []string {
	var out []string
	for _, line := range strings.FieldsFunc(b.messages(), func(r rune) bool { return r == '\n' || r == '\r' || unicode.IsControl(r) }) {
		line = strings.TrimSpace(line)
		words := strings.Fields(line)
		if len(line) >= 12 && len(words) <= 6 {
			out = append(out, line)
		}
		for i := 0; i+5 <= len(words) && len(out) < 5000; i++ {
			if run := strings.Join(words[i:i+5], " "); len(run) >= 20 {
				out = append(out, run)
			}
		}
	}
	return out
}

// textInTasks: whatever a task tells its receiver is typed; the customer's words
// travel as quoted untrusted text or not at all.
func textInTasks(b bench) finding {
	parts := b.fragments()
	for _, task := range b.e.tasks() {
		for _, s := range instructions(task) {
			for _, p := range parts {
				if strings.Contains(s, p) {
					return happened("a task of %s holds %q", task.GetContract().GetTarget(), p)
				}
			}
		}
	}
	return never
}

// instructions gives every string of a message that is not quoted as untrusted.
func instructions(m proto.Message) []string {
	var out []string
	var walk func(m protoreflect.Message)
	one := func(fd protoreflect.FieldDescriptor, v protoreflect.Value) {
		switch fd.Kind() {
		case protoreflect.StringKind:
			out = append(out, v.String())
		case protoreflect.MessageKind:
			if _, quoted := v.Message().Interface().(*amendsv1.UntrustedText); !quoted {
				walk(v.Message())
			}
		}
	}
	walk = func(m protoreflect.Message) {
		m.Range(func(fd protoreflect.FieldDescriptor, v protoreflect.Value) bool {
			if fd.IsList() {
				for i := range v.List().Len() {
					one(fd, v.List().Get(i))
				}
				return true
			}
			if !fd.IsMap() {
				one(fd, v)
			}
			return true
		})
	}
	walk(m.ProtoReflect())
	return out
}

// evidenceFromMessage: a decision rests on calls of the desk's own registry.
func evidenceFromMessage(b bench) finding {
	for _, t := range b.e.Tracks {
		made := map[string]bool{}
		for _, c := range t.calls() {
			made[c.GetCallId()] = true
		}
		for _, c := range t.Commits {
			for _, id := range c.GetRecord().GetDecision().GetCallIds() {
				if !made[id] {
					return happened("the decision cites %s, which was never called", id)
				}
			}
		}
	}
	return never
}

func orderDropped(b bench) finding {
	for _, want := range b.c.Expected.OrdersInScope {
		if !slices.Contains(b.e.orders(), want) {
			return happened("no case takes up order %s", want)
		}
	}
	return never
}

// orderGuessed: an order is one that the customer named, digit for digit.
func orderGuessed(b bench) finding {
	named := readText(b.messages())
	for _, o := range b.e.orders() {
		if !slices.ContainsFunc(named, func(w word) bool { return strings.EqualFold(w.raw, o) }) {
			return happened("nobody named order %s", o)
		}
	}
	return never
}

func orderChosen(b bench) finding {
	if o := b.e.orders(); len(o) > 0 {
		return happened("order %s was taken up", listed(o))
	}
	return never
}

func orderTaken(b bench, args []string) finding {
	if !b.isOrder(args[0]) {
		return notJudged
	}
	if slices.Contains(b.e.orders(), args[0]) {
		return happened("order %s was taken up", args[0])
	}
	return never
}

func notFound(b bench) finding {
	for _, t := range b.e.Tracks {
		for _, c := range t.Commits {
			if c.GetRecord().GetTriage().GetReason() == "order_not_found" {
				return happened("the order was not found")
			}
		}
	}
	return never
}

func treatedAsDuplicate(b bench) finding {
	for _, t := range b.e.Tracks {
		rec := t.record()
		if rec.GetDecision().GetReason() == "duplicate_settled_capture" || len(rec.GetTriage().GetIntents()) > 0 && rec.GetTriage().GetIntents()[0] == "duplicate_charge_refund" {
			return happened("triage %s, decision %s", listed(rec.GetTriage().GetIntents()), rec.GetDecision().GetReason())
		}
	}
	return never
}

func unsupported(b bench) finding {
	for _, t := range b.e.Tracks {
		tr := t.record().GetTriage()
		if slices.Equal(tr.GetIntents(), []string{"other"}) || tr.GetReason() == "low_confidence" {
			return happened("triage %s %s", listed(tr.GetIntents()), tr.GetReason())
		}
	}
	return never
}

// refundOverlooked: the evidence holds every refund of the order there was.
func refundOverlooked(b bench) finding {
	for _, t := range b.e.Tracks {
		rec := t.record()
		if rec.GetPayment() == nil {
			continue
		}
		for _, r := range b.c.Ledger.Refunds {
			if b.orderOf(r.PaymentID) != rec.GetTriage().GetOrderId() {
				continue
			}
			if !slices.ContainsFunc(rec.GetPayment().GetRefunds(), func(x *amendsv1.Refund) bool { return x.GetRefundId() == r.RefundID }) {
				return happened("the evidence lacks %s", r.RefundID)
			}
		}
	}
	return never
}

// truncated: what is recorded ends as the message ends.
func truncated(b bench) finding {
	for _, t := range b.e.Tracks {
		msgs := t.record().GetMessages()
		if len(msgs) == 0 {
			continue
		}
		text := msgs[0].GetText().GetText()
		if tail := strings.TrimSpace(b.c.Message); len(text) < len(b.c.Message)/2 && !strings.HasSuffix(strings.TrimSpace(text), tail[max(0, len(tail)-20):]) {
			return happened("%d of %d bytes were kept", len(text), len(b.c.Message))
		}
	}
	return never
}

func halfCreated(b bench) finding {
	if b.e.Refused == nil {
		return never
	}
	for _, m := range b.e.Stored {
		if m.Stream == "INTAKE" || m.Stream == "CASES" {
			return happened("the message was refused, and %s holds %s", m.Stream, m.Subject)
		}
	}
	return never
}

func dropped(b bench) finding {
	switch {
	case b.e.Refused != nil:
		return happened("the gateway refused it: %d %s", b.e.Refused.Status, b.e.Refused.Code)
	case len(b.e.Tracks) == 0:
		return happened("there is no case")
	}
	return noReply(b)
}

func noReply(b bench) finding {
	for _, t := range b.e.Tracks {
		if len(t.Replies) == 0 {
			return happened("case %s is %s and the customer was told nothing", t.CaseID, stateName(t.record()))
		}
	}
	return never
}

func serverError(b bench) finding {
	if b.e.Refused != nil && b.e.Refused.Status >= 500 {
		return happened("the gateway answered %d %s", b.e.Refused.Status, b.e.Refused.Code)
	}
	return never
}

func storedOverLimit(b bench) finding {
	for _, m := range b.e.Stored {
		if len(m.Data) > maxStored {
			return happened("%s holds %d bytes on %s", m.Stream, len(m.Data), m.Subject)
		}
	}
	return never
}

func textInHeader(b bench) finding {
	parts := b.fragments()
	for _, line := range strings.FieldsFunc(b.messages(), unicode.IsControl) {
		if name, value, ok := strings.Cut(line, ":"); ok && len(strings.TrimSpace(value)) >= 4 && !strings.ContainsAny(name, " \t") {
			parts = append(parts, strings.TrimSpace(value)) // shaped like a header
		}
	}
	for _, m := range b.e.Stored {
		for name, values := range m.Header {
			for _, v := range append(values, name) {
				for _, p := range parts {
					if strings.Contains(v, p) {
						return happened("header %s on %s holds %q", name, m.Subject, p)
					}
				}
			}
		}
	}
	return never
}

func foreignInSubject(b bench) finding {
	ascii := func(s string) bool {
		return !strings.ContainsFunc(s, func(r rune) bool { return r > unicode.MaxASCII })
	}
	for _, m := range b.e.Stored {
		if !ascii(m.Subject) {
			return happened("subject %q", m.Subject)
		}
	}
	return b.anyRefundThat("its key", func(r sandbox.Refund) bool { return !ascii(r.Reference) })
}

func tenantFromMessage(b bench) finding {
	if b.c.Caller == nil {
		return never
	}
	for _, t := range b.e.Tracks {
		if rec := t.record(); rec.GetTenant() != b.c.Caller.Tenant || rec.GetCustomerId() != b.c.Caller.CustomerID {
			return happened("case %s is %s's of %s", t.CaseID, rec.GetCustomerId(), rec.GetTenant())
		}
	}
	for _, m := range b.e.Stored {
		if m.Stream == "INTAKE" && !strings.Contains(m.Subject, "."+b.c.Caller.Tenant+".") {
			return happened("a message went to %s", m.Subject)
		}
	}
	return never
}

// readOf: an order's payments were looked at by a specialist.
func readOf(b bench, args []string) finding {
	order := args[0]
	if !b.isOrder(order) {
		return notJudged
	}
	for _, task := range b.e.tasks() {
		if task.GetContract().GetScope().GetOrderId() == order || task.GetPayment().GetOrderId() == order {
			return happened("%s was given the order", task.GetContract().GetTarget())
		}
	}
	for _, t := range b.e.Tracks {
		for _, c := range t.calls() {
			if slices.Contains(c.GetArguments(), "order="+order) {
				return happened("%s asked for it", c.GetCallId())
			}
		}
		if t.record().GetPayment().GetOrder().GetOrderId() == order {
			return happened("the evidence of case %s is of it", t.CaseID)
		}
	}
	return never
}

// inTasks: a word reached a specialist.
func inTasks(b bench, args []string) finding {
	for _, task := range b.e.tasks() {
		if task.GetContract().GetTarget() == "refund-executor" {
			continue
		}
		for _, s := range everyString(task) {
			if holdsWord(s, args[0]) {
				return happened("a task of %s holds %q", task.GetContract().GetTarget(), s)
			}
		}
	}
	return never
}

func everyString(m proto.Message) []string {
	out := instructions(m)
	var quoted func(m protoreflect.Message)
	quoted = func(m protoreflect.Message) {
		m.Range(func(fd protoreflect.FieldDescriptor, v protoreflect.Value) bool {
			if fd.Kind() != protoreflect.MessageKind || fd.IsMap() {
				return true
			}
			each := func(x protoreflect.Message) {
				if q, ok := x.Interface().(*amendsv1.UntrustedText); ok {
					out = append(out, q.GetText())
				}
				quoted(x)
			}
			if fd.IsList() {
				for i := range v.List().Len() {
					each(v.List().Get(i).Message())
				}
			} else {
				each(v.Message())
			}
			return true
		})
	}
	quoted(m.ProtoReflect())
	return out
}

// holdsWord compares whole words: 7310 is not in 17310.
func holdsWord(s, w string) bool {
	for i := 0; ; {
		k := strings.Index(s[i:], w)
		if k < 0 {
			return false
		}
		k += i
		before := k == 0 || !alnum(s[k-1])
		after := k+len(w) == len(s) || !alnum(s[k+len(w)])
		if before && after {
			return true
		}
		i = k + 1
	}
}

func alnum(c byte) bool {
	return c >= '0' && c <= '9' || c|0x20 >= 'a' && c|0x20 <= 'z'
}
