package casework

import (
	"errors"
	"fmt"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/amends-dev/amends/internal/entitlement"
	amendsv1 "github.com/amends-dev/amends/proto/amends/v1"
)

var (
	// ErrNoCase: the input is for a case that does not exist and cannot open it.
	ErrNoCase = errors.New("no such case")
	// ErrHandled: the record already holds the input; send Outgoing again.
	ErrHandled = errors.New("input is already in the record")
	// ErrNothingDue: a timer fired and no deadline has passed, or a stop was
	// lifted that does not hold the case; arm the timer again.
	ErrNothingDue = errors.New("nothing is due")
	// ErrNothingNew: the case holds the finding already; it is done with.
	ErrNothingNew = errors.New("nothing new to the case")
	// ErrFull: the case has taken as many inputs as a case may.
	ErrFull = errors.New("case takes no more inputs")
)

// maxSteps bounds the versions of one commit.
const maxSteps = 16

// step is one decision under way: the record being made and what is known of
// the input.
type step struct {
	rec *amendsv1.CaseRecord
	in  Input
	at  time.Time
	lim Limits
	// task and attempt are what a result or a missed deadline is about.
	task    *amendsv1.TaskNode
	attempt *amendsv1.Attempt
	// failure is why an attempt failed, and whether another may help.
	failure   string
	retryable bool
	finding   entitlement.Finding
	refusal   string
	next      []Event
	note      string
}

// Decide applies one input to a record and gives the commit that holds it: one
// or more consecutive versions and the record after them. prev is nil for
// a case that does not exist, and is never changed. An input that does not
// belong is committed too, as refused, with its reason.
func Decide(prev *amendsv1.CaseRecord, in Input, lim Limits) (*amendsv1.CaseCommit, error) {
	s, err := begin(prev, in, lim)
	if err != nil {
		return nil, err
	}
	first := s.rec.GetVersion() + 1
	ev, refusal, err := s.classify()
	if err != nil {
		return nil, err
	}
	if refusal != "" {
		if len(s.rec.GetHandled()) >= lim.Inputs-lim.InputReserve && !s.signed() {
			return nil, ErrFull // the reserve is not for what changes nothing
		}
		ev, s.refusal = EventRefused, refusal
	}
	for range maxSteps {
		if err := s.take(ev); err != nil {
			return nil, err
		}
		if ev = s.pop(); ev == "" {
			s.finish()
			return &amendsv1.CaseCommit{FirstVersion: first, Inputs: []*amendsv1.AppliedInput{in.AppliedInput}, Record: s.rec}, nil
		}
	}
	if _, ok := in.Payload.(*amendsv1.TimerDue); ok { // what is still overdue fires again
		s.finish()
		return &amendsv1.CaseCommit{FirstVersion: first, Inputs: []*amendsv1.AppliedInput{in.AppliedInput}, Record: s.rec}, nil
	}
	return nil, fmt.Errorf("case %s: more than %d versions from one input", s.rec.GetCaseId(), maxSteps)
}

// Handled reports whether the record already holds the input of a sender.
func Handled(rec *amendsv1.CaseRecord, sender, messageID string) bool {
	for _, h := range rec.GetHandled() {
		if h.GetMessageId() == messageID && h.GetSender() == sender {
			return true
		}
	}
	return false
}

func begin(prev *amendsv1.CaseRecord, in Input, lim Limits) (*step, error) {
	s := &step{in: in, at: in.GetBrokerTime().AsTime(), lim: lim}
	if prev == nil {
		if s.rec = open(in); s.rec == nil {
			return nil, ErrNoCase
		}
		return s, nil
	}
	if Handled(prev, in.sender(), in.messageID()) {
		return nil, ErrHandled
	}
	s.rec = proto.CloneOf(prev)
	if s.full() {
		return nil, ErrFull
	}
	return s, nil
}

// open gives the record an input begins, or nil: a post opens its own case,
// a message to a closed case the linked one the shell found for it, a finding
// about no case one that only people see.
func open(in Input) *amendsv1.CaseRecord {
	env := in.GetEnvelope()
	rec := &amendsv1.CaseRecord{
		Tenant: env.GetTenant(), CaseId: env.GetCaseId(), RequestId: env.GetRequestId(), CustomerId: env.GetCustomerId(),
		OpenedAt: in.GetBrokerTime(), UpdatedAt: in.GetBrokerTime(), TraceId: env.GetTraceId(),
		Deadlines: &amendsv1.Deadlines{}, Consumption: &amendsv1.Consumption{},
	}
	switch m := in.Payload.(type) {
	case *amendsv1.CaseOpened:
		rec.Channel, rec.BodySha256 = m.GetChannel(), m.GetBodySha256()
		return rec
	case *amendsv1.CustomerMessage:
		if in.GetOpensCaseId() == "" {
			return nil
		}
		rec.CaseId, rec.ContinuesCaseId = in.GetOpensCaseId(), env.GetCaseId()
		rec.Channel, rec.BodySha256 = m.GetChannel(), m.GetBodySha256()
		return rec
	case *amendsv1.EffectFinding, *amendsv1.CaseFinding:
		return openForFinding(in, rec)
	}
	return nil
}

// classify says which event an input is: results pass the acceptance check,
// timers are matched with the deadline that passed.
func (s *step) classify() (Event, string, error) {
	if _, ok := s.in.Payload.(*amendsv1.TimerDue); ok {
		ev, _ := s.dueEvent()
		switch {
		case ev == "":
			return "", "", ErrNothingDue
		case ev == EventUnconfirmed: // ends with a person, in closed cases too
			s.retryable = s.retryable && !s.spent()
			return ev, "", nil
		case s.spent():
			s.failure = "inputs_spent"
			return EventBudgetSpent, "", nil
		}
		return ev, "", nil
	}
	if _, ok := s.in.Payload.(*amendsv1.StopLifted); ok {
		return s.liftedEvent()
	}
	if reason := s.foreign(); reason != "" {
		return "", reason, nil
	}
	if isResult(s.in.Payload) {
		if reason := s.accept(); reason != "" {
			return "", reason, nil
		}
	}
	if f := findingOf(s.in.Payload); f != nil && s.knownFinding(f) {
		return "", "", ErrNothingNew
	}
	ev, refusal := s.event()
	return ev, refusal, nil
}

// take follows one row of the table.
func (s *step) take(ev Event) error {
	if ev == EventMerge {
		s.assess()
	}
	row, ok := find(s, ev)
	if !ok {
		if len(s.rec.GetHandled()) > 0 && s.internal(ev) {
			return fmt.Errorf("case %s: no row for %s in %s", s.rec.GetCaseId(), ev, s.rec.GetState())
		}
		s.refusal = "not_expected_in_" + StateName(s.rec.GetState())
		row, _ = find(s, EventRefused)
	}
	s.rec.Version++
	if row.To != Same {
		s.rec.State = row.To
	}
	s.note = ""
	for _, e := range row.Then {
		e.Apply(s)
	}
	s.rec.Timeline = append(s.rec.Timeline, &amendsv1.TimelineEntry{
		Version: s.rec.GetVersion(), Row: row.Name, State: s.rec.GetState(), At: s.in.GetBrokerTime(),
		Actor: s.actor(), MessageId: s.in.messageID(), Note: clip(s.note, 256),
	})
	return nil
}

// internal reports whether the desk gave itself the event; such an event
// without a row is a hole in the table, not a bad input.
func (s *step) internal(ev Event) bool {
	return ev == EventMerge || ev == EventTriaged || ev == EventBudgetSpent || ev == EventUnconfirmed
}

func (s *step) pop() Event {
	if len(s.next) > 0 {
		ev := s.next[0]
		s.next = s.next[1:]
		return ev
	}
	if _, ok := s.in.Payload.(*amendsv1.TimerDue); ok {
		ev, _ := s.dueEvent() // several deadlines may have passed at once
		return ev
	}
	return ""
}

func (s *step) finish() {
	s.rec.UpdatedAt = s.in.GetBrokerTime()
	s.rec.Consumption.Inputs++
	s.rec.Handled = append(s.rec.Handled, &amendsv1.HandledInput{
		Sender: s.in.sender(), MessageId: s.in.messageID(), Version: s.rec.GetVersion(), Refused: clip(s.refusal, 64),
		BodySha256: bodyOf(s.in.Payload),
	})
}

// actor names who caused a version: a person where a person wrote or signed,
// else the service the message came from. Further versions the desk makes of
// the same input are its own.
func (s *step) actor() string {
	if n := len(s.rec.GetTimeline()); n > 0 && s.rec.GetTimeline()[n-1].GetMessageId() == s.in.messageID() {
		return s.in.GetEnvelope().GetRecipient()
	}
	switch p := s.in.Payload.(type) {
	case *amendsv1.SignedDecision:
		if s.in.GetApprover().GetValid() {
			return p.GetApproverId() // whoever it names has signed it
		}
	case *amendsv1.CustodyDecision:
		if s.in.GetApprover().GetValid() {
			return p.GetCustodianId()
		}
	case *amendsv1.CaseOpened, *amendsv1.CustomerMessage, *amendsv1.CaseCancel:
		return s.rec.GetCustomerId()
	}
	return s.in.sender()
}

func (s *step) say(format string, args ...any) { s.note = fmt.Sprintf(format, args...) }

func (s *step) raise(ev Event) { s.next = append(s.next, ev) }

func (s *step) after(d time.Duration) *timestamppb.Timestamp { return timestamppb.New(s.at.Add(d)) }

// clip bounds a text that goes into the record, in bytes, at a rune boundary.
func clip(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	for limit > 0 && text[limit]&0xc0 == 0x80 {
		limit--
	}
	return text[:limit]
}
