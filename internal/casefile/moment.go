package casefile

import (
	"slices"
	"strings"
	"time"
)

// Situation is what has happened to a request so far, as its moments see it.
type Situation struct {
	Received time.Time
	Now      time.Time
	// States are the states of now, one for each case of the request.
	States []string
	// Entered lists every entry into a state, in order.
	Entered []Entered
	// Replies are when texts were sent to the customer.
	Replies []time.Time
	// Expired and Rechecked are when the desk acted on an approval's expiry or
	// looked again.
	Expired, Rechecked []time.Time
	// Expiry and Recheck are the deadlines that are open; zero is none.
	Expiry, Recheck time.Time
	// Before is when the followup before took place, BeforeDone that all of
	// them did.
	Before     time.Time
	BeforeDone bool
	// ByApprover: the moment is an approver's.
	ByApprover bool
}

// Entered is one entry into a state.
type Entered struct {
	State string
	At    time.Time
}

// Verdict says where a moment lies.
type Verdict struct {
	// Due: it has come.
	Due bool
	// At is when it will come; zero when that depends on what happens.
	At time.Time
}

func due(at, now time.Time) Verdict {
	if at.After(now) {
		return Verdict{At: at}
	}
	return Verdict{Due: true, At: at}
}

// Of says where a moment lies in a situation.
func (w When) Of(s Situation) Verdict {
	switch {
	case w.Event != "":
		return w.ofEvent(s)
	case len(w.States) > 0:
		entered, ok := w.entered(s)
		if !ok {
			return Verdict{}
		}
		return due(latest(w.from(entered), w.At), s.Now)
	case !s.BeforeDone: // what names nothing but time comes in the file's order
		return Verdict{}
	case !w.At.IsZero():
		return due(w.from(w.At), s.Now)
	}
	from := s.Received
	switch shown := s.first(AwaitingApproval); {
	case w.FromReceipt:
	case !s.Before.IsZero():
		from = s.Before
	case s.ByApprover && (w.Delay > 0 || w.Clock != nil):
		// An approver's delay counts from what the approver was shown.
		if shown.IsZero() {
			return Verdict{}
		}
		from = shown
	}
	return due(w.from(from), s.Now)
}

// entered gives when the wanted state was reached; unless the moment lies after
// it, the request must still be there, or have passed through.
func (w When) entered(s Situation) (time.Time, bool) {
	n := 0
	var last time.Time
	for _, e := range s.Entered {
		if !slices.Contains(w.States, e.State) {
			continue
		}
		n++
		last = e.At
		if w.Nth == n || w.Nth == 0 && (w.After || Passing(e.State)) {
			return e.At, true
		}
	}
	if w.Nth > 0 || n == 0 {
		return time.Time{}, false
	}
	here := slices.ContainsFunc(s.States, func(st string) bool { return slices.Contains(w.States, st) })
	return last, here || w.Delay > 0 || w.Clock != nil
}

func (w When) ofEvent(s Situation) Verdict {
	var happened []time.Time
	var ahead time.Time
	switch w.Event {
	case EventExpiry:
		happened, ahead = s.Expired, s.Expiry
	case EventRecheck:
		happened, ahead = s.Rechecked, s.Recheck
	case EventReply:
		happened = s.Replies
	}
	nth := max(w.Nth, 1)
	if w.Before {
		if len(happened) != nth-1 || ahead.IsZero() {
			return Verdict{}
		}
		early := w.Delay
		if early == 0 {
			early = time.Second
		}
		return due(ahead.Add(-early), s.Now)
	}
	if len(happened) < nth {
		// It is the desk's to act on the deadline; that is when it happens.
		return Verdict{}
	}
	return due(latest(w.from(happened[nth-1]), w.At), s.Now)
}

func (s Situation) first(state string) time.Time {
	for _, e := range s.Entered {
		if e.State == state {
			return e.At
		}
	}
	return time.Time{}
}

// Approval reports that a moment may be one at which an approval is waited for:
// nobody may approve before it.
func (w When) Approval(byApprover bool) bool {
	switch {
	case w.Event == EventExpiry, slices.Contains(w.States, AwaitingApproval):
		return true
	case len(w.States) > 0 || w.Event != "":
		return false
	}
	return byApprover
}

// Passes gives the passing state the moment must be caught in, if it is one
// before anything of the request can be decided.
func (w When) Passes() (state string, nth int, ok bool) {
	if w.After || w.Delay > 0 || w.Clock != nil || w.Event != "" {
		return "", 0, false
	}
	for _, st := range w.States {
		if st == Received || st == Investigating {
			return Investigating, max(w.Nth, 1), true
		}
	}
	return "", 0, false
}

// String gives what was written.
func (w When) String() string {
	if strings.TrimSpace(w.Text) == "" {
		return "at once"
	}
	return w.Text
}

func latest(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}
