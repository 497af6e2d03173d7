package casework

import (
	"slices"

	amendsv1 "github.com/amends-dev/amends/proto/amends/v1"
)

// What an executor says of a refund counts however late it comes: also when
// people have decided the case otherwise since, or another action has the place
// of the one it is about.

// reasonAfterAll is why people have a case whose refund nobody counted on.
const reasonAfterAll = "refund_after_all"

// rowAfterAllNoted is the row of such a refund while people have the case, or the
// executor is about to say what became of another one.
const rowAfterAllNoted = "effect.after_all.noted"

// lateNews reports whether an answer, from whichever attempt it comes, has
// a refund or a doubt that the record says nothing of, of an action that was the
// case's.
func (s *step) lateNews() bool {
	e, ok := s.in.Payload.(*amendsv1.EffectResult)
	sha := e.GetActionSha256()
	return ok && (sha == s.rec.GetActionSha256() || effectOf(s.rec, sha) != nil) && beganUnnoticed(s)
}

// afterAll reports whether no row of what is under way takes an answer that has
// such news.
func (s *step) afterAll(e *amendsv1.EffectResult) bool {
	return beganUnnoticed(s) && (e.GetActionSha256() != s.rec.GetActionSha256() || slices.Contains(unattended, s.rec.GetState()))
}

var recordAfterAll = Effect{"record the effect", func(s *step) {
	e, _ := s.in.Payload.(*amendsv1.EffectResult) // the event is raised for no other payload
	s.setEffect(e)
	if e.GetActionSha256() == s.rec.GetActionSha256() {
		s.rec.OutcomeUnknown = slices.ContainsFunc(s.rec.GetEffect().GetRefunds(), unknownYet)
	}
	s.failure = reasonAfterAll
	s.say("executor: %s after all%s", effectWord(e.GetClass()), refundNames(e))
}}
