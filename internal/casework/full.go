package casework

import amendsv1 "github.com/amends-dev/amends/proto/amends/v1"

// A record holds so many inputs. What comes from outside stops first; then what
// a specialist says. An effect, a timer and a finding are always taken: they are
// bounded by the dispatches or their number and end with a person. Who then has
// the case can still decide it.

const (
	// custodyReserve is how many inputs beyond the limit are kept for decisions of
	// people and what they set going.
	custodyReserve = 128
	// decisionWork is how many inputs beyond the limit follow from one decision.
	decisionWork = 24
)

// signed reports whether the input is a custodian's decision with a signature
// that was found valid.
func (s *step) signed() bool {
	_, ok := s.in.Payload.(*amendsv1.CustodyDecision)
	return ok && s.in.GetApprover().GetValid()
}

// full reports whether the case takes the input no more.
func (s *step) full() bool {
	n := len(s.rec.GetHandled())
	switch s.in.Payload.(type) {
	case *amendsv1.TimerDue, *amendsv1.EffectResult, *amendsv1.StopLifted, *amendsv1.EffectFinding, *amendsv1.CaseFinding:
		return false
	}
	if s.signed() {
		return n >= s.lim.Inputs+custodyReserve
	}
	return s.spent() || fromOutside(s.in) && n >= s.lim.Inputs-s.lim.InputReserve
}

// spent reports whether the case does no more work by itself: it holds all the
// inputs it may, and those that a person's last decision brings beyond.
func (s *step) spent() bool {
	n := len(s.rec.GetHandled())
	if n < s.lim.Inputs {
		return false
	}
	tl := s.rec.GetTimeline()
	decided := len(tl) - len(sinceDecision(tl))
	if decided == 0 {
		return true
	}
	since := 0
	for _, h := range s.rec.GetHandled() {
		if h.GetVersion() > tl[decided-1].GetVersion() {
			since++
		}
	}
	return since >= decisionWork || n >= s.lim.Inputs+custodyReserve+decisionWork
}
