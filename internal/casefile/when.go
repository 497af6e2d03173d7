package casefile

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Event is something a moment can wait for besides a state.
type Event string

// The events.
const (
	EventExpiry  Event = "approval expired"
	EventRecheck Event = "recheck"
	EventReply   Event = "reply sent"
)

// When is the moment of a followup, read from plain words. A zero one is at
// once.
type When struct {
	// Text is what was written.
	Text string
	// States are those one of which must be reached; Nth says for which time,
	// 0 for any. After says that it may lie behind.
	States []string
	Nth    int
	After  bool
	Event  Event
	// At is an absolute time, Delay one after whatever else is named; else
	// after the followup before, or the receipt.
	At     time.Time
	Delay  time.Duration
	Before bool
	// Clock is a time of day; nil is none.
	Clock *Clock
	// FromReceipt counts the delay from the first message.
	FromReceipt bool
}

// The states, as contracts and case files write them.
const (
	Received         = "RECEIVED"
	Investigating    = "INVESTIGATING"
	AwaitingCustomer = "AWAITING_CUSTOMER"
	HoldForEvidence  = "HOLD_FOR_EVIDENCE"
	AwaitingApproval = "AWAITING_APPROVAL"
	RefundRequested  = "REFUND_REQUESTED"
	Reconciling      = "RECONCILING"
	Refunded         = "REFUNDED"
	Declined         = "DECLINED"
	Cancelled        = "CANCELLED"
	HumanHandoff     = "HUMAN_HANDOFF"
	VerifiedClosed   = "VERIFIED_CLOSED"
	// Rejected is no state of a case: the gateway refused the message.
	Rejected = "REJECTED"
)

// Passing reports that a state is left by the desk's own work: its moment may
// be over before anybody acts on it.
func Passing(state string) bool {
	switch state {
	case Received, Investigating, RefundRequested, Refunded, Declined:
		return true
	}
	return false
}

var (
	stampRE = regexp.MustCompile(`\d{4}-\d{2}-\d{2}[Tt ]\d{2}:\d{2}(:\d{2}(\.\d+)?)?\s*([Zz]|[+-]\d{2}:?\d{2})?`)
	isoRE   = regexp.MustCompile(`(?i)\bp(?:(\d+)w)?(?:(\d+)d)?(?:t(?:(\d+)h)?(?:(\d+)m)?(?:(\d+)s)?)?\b`)
	wordRE  = regexp.MustCompile(`[a-z]+|==|!=|\d+\w*`)
)

// maxDelay bounds how far a case reaches.
const maxDelay = 2 * 365 * 24 * time.Hour

// ParseWhen reads a moment. received is the case's own.
func ParseWhen(text string, received time.Time) (When, error) {
	w := When{Text: text}
	rest, err := w.takeTimes(text, received)
	if err != nil {
		return When{}, err
	}
	p := phrases{words: compact(wordRE.FindAllString(strings.ToLower(strings.ReplaceAll(rest, "_", " ")), -1))}
	p.read()
	switch {
	case len(p.negated) > 0:
		return When{}, fmt.Errorf("when: %q is not understood: %q has no meaning here", text, p.negated[0])
	case len(p.states) == 0 && p.event == "" && w.At.IsZero() && w.Delay == 0 && w.Clock == nil && !p.atOnce && strings.TrimSpace(text) != "":
		return When{}, fmt.Errorf("when: %q is not understood: it names no state, no time and no event", text)
	case len(p.unknown) > 0:
		return When{}, fmt.Errorf("when: %q is not understood: %q", text, strings.Join(p.unknown, " "))
	case p.before && p.event == "" && !p.earlier():
		return When{}, fmt.Errorf("when: %q is not understood: nothing is known to come before it", text)
	}
	w.States, w.Nth, w.Event, w.After, w.Before, w.FromReceipt = p.states, p.nth, p.event, p.after, p.before, p.receipt
	if w.Event != "" {
		w.States = nil
	}
	return w, nil
}

// takeTimes reads times and durations and gives the text without them.
func (w *When) takeTimes(text string, received time.Time) (string, error) {
	rest := text
	if found := stampRE.FindString(rest); found != "" {
		at, err := parseStamp(found)
		switch {
		case err != nil:
			return "", fmt.Errorf("when: %q is no time", found)
		case at.Before(received):
			return "", fmt.Errorf("when: %s is before the case's now, %s", found, received.Format(time.RFC3339))
		case at.Sub(received) > maxDelay:
			return "", fmt.Errorf("when: %s is more than two years after the case's now", found)
		}
		w.At, rest = at, strings.Replace(rest, found, " ", 1)
	}
	for _, m := range isoRE.FindAllStringSubmatch(rest, -1) {
		var d time.Duration
		for i, unit := range []time.Duration{7 * 24 * time.Hour, 24 * time.Hour, time.Hour, time.Minute, time.Second} {
			if n, err := strconv.Atoi(m[i+1]); err == nil && n < 10_000 {
				d += time.Duration(n) * unit
			}
		}
		if d > maxDelay-w.Delay {
			return "", fmt.Errorf("when: %q is more than two years", m[0])
		}
		if d > 0 {
			w.Delay += d
			rest = strings.Replace(rest, m[0], " ", 1)
		}
	}
	rest, err := w.takeSpans(w.takeClock(rest, received))
	if err != nil {
		return "", err
	}
	return rest, nil
}

func parseStamp(s string) (time.Time, error) {
	s = strings.ToUpper(strings.Join(strings.Fields(s), "T"))
	s = strings.TrimSuffix(strings.Replace(s, "TZ", "Z", 1), "T")
	var err error
	for _, layout := range []string{time.RFC3339Nano, "2006-01-02T15:04Z07:00", "2006-01-02T15:04:05Z0700", "2006-01-02T15:04:05", "2006-01-02T15:04"} {
		var t time.Time
		if t, err = time.Parse(layout, s); err == nil {
			return t.UTC(), nil
		}
	}
	return time.Time{}, err
}

// phrases reads the words of a moment.
type phrases struct {
	words []string

	states                         []string
	nth                            int
	event                          Event
	after, before, atOnce, receipt bool
	// approval: the word alone, which means something else before than after.
	approval bool
	// participle is the state of one that stands alone.
	participle       string
	unknown, negated []string
}

// names are the words a state goes by; the longest that fits is taken. The small
// words in them do not count.
var names = compactKeys(map[string]string{
	"received": Received, "investigating": Investigating, "investigation": Investigating, "investigated": Investigating,
	"awaiting customer": AwaitingCustomer, "waiting for the customer": AwaitingCustomer, "waiting for customer": AwaitingCustomer,
	"asked to clarify": AwaitingCustomer, "clarification": AwaitingCustomer, "clarifying question": AwaitingCustomer, "clarify": AwaitingCustomer, "question": AwaitingCustomer,
	"hold for evidence": HoldForEvidence, "held": HoldForEvidence, "hold": HoldForEvidence, "holding": HoldForEvidence,
	"awaiting approval": AwaitingApproval, "waiting for approval": AwaitingApproval, "waiting for the approval": AwaitingApproval, "waits for approval": AwaitingApproval,
	"approval is waiting": AwaitingApproval, "approval waits": AwaitingApproval, "approval waiting": AwaitingApproval, "approval is pending": AwaitingApproval, "approval pending": AwaitingApproval,
	"pending approval": AwaitingApproval, "approval requested": AwaitingApproval, "approval is requested": AwaitingApproval, "approval is asked": AwaitingApproval, "approval was asked": AwaitingApproval,
	"asked for approval": AwaitingApproval, "proposal": AwaitingApproval, "proposed": AwaitingApproval, "action record": AwaitingApproval,
	"refund requested": RefundRequested, "approved": RefundRequested, "executing": RefundRequested, "execution": RefundRequested, "executed": Refunded,
	"reconciling": Reconciling, "refunded": Refunded, "refund": Refunded, "declined": Declined, "denied": Declined, "denial": Declined,
	"cancelled": Cancelled, "canceled": Cancelled, "withdrawn": Cancelled, "cancellation": Cancelled, "withdrawal": Cancelled,
	"human handoff": HumanHandoff, "handoff": HumanHandoff, "hand off": HumanHandoff, "handed off": HumanHandoff, "handed over": HumanHandoff, "handed to a person": HumanHandoff,
	"verified closed": VerifiedClosed, "closed": VerifiedClosed, "closing": VerifiedClosed, "close": VerifiedClosed, "ended": VerifiedClosed,

	"customer asked": AwaitingCustomer, "customer is asked to": AwaitingCustomer, "question asked": AwaitingCustomer, "questioned": AwaitingCustomer, "asked back": AwaitingCustomer,
	"hold explained": HoldForEvidence, "put on hold": HoldForEvidence,
	"approval needed": AwaitingApproval, "approval required": AwaitingApproval, "approval sought": AwaitingApproval, "approval proposed": AwaitingApproval, "approval shown": AwaitingApproval,
	"approver asked": AwaitingApproval, "approvers asked": AwaitingApproval, "approver shown": AwaitingApproval, "approvers shown": AwaitingApproval, "action shown": AwaitingApproval,
	"action proposed": AwaitingApproval, "action requested": AwaitingApproval, "refund proposed": AwaitingApproval, "refund shown": AwaitingApproval, "shown to the approver": AwaitingApproval, "shown to the approvers": AwaitingApproval,
	"approval given": RefundRequested, "approval granted": RefundRequested, "approval signed": RefundRequested, "signed": RefundRequested, "refund approved": RefundRequested, "refund ordered": RefundRequested, "granted": RefundRequested,
	"refund made": Refunded, "refund issued": Refunded, "refund completed": Refunded, "refund executed": Refunded, "refund paid": Refunded, "paid back": Refunded,
	"refused": Declined, "rejected": Declined, "turned down": Declined, "approval refused": Declined, "approval denied": Declined, "approval rejected": Declined, "approval declined": Declined,
	"refund refused": Declined, "refund denied": Declined, "refund declined": Declined, "refund rejected": Declined, "refusal": Declined,
	"refund cancelled": Cancelled, "refund withdrawn": Cancelled, "taken back": Cancelled,
})

// participles stand for a state where nothing else names one.
var participles = map[string]string{"requested": RefundRequested, "shown": AwaitingApproval, "asked": AwaitingCustomer}

var small = fieldSet(`the a an is are was were be been being has have had it its`)

func compact(words []string) []string {
	return slices.DeleteFunc(words, func(w string) bool { return small[w] })
}

func compactKeys[V any](m map[string]V) map[string]V {
	out := make(map[string]V, len(m))
	for k, v := range m {
		out[strings.Join(compact(strings.Fields(k)), " ")] = v
	}
	return out
}

var events = map[string]Event{
	"expires": EventExpiry, "expired": EventExpiry, "expire": EventExpiry, "expiry": EventExpiry, "expiration": EventExpiry, "lapses": EventExpiry, "lapsed": EventExpiry,
	"times out": EventExpiry, "timed out": EventExpiry, "runs out": EventExpiry, "ran out": EventExpiry,
	"recheck": EventRecheck, "rechecked": EventRecheck, "rechecks": EventRecheck, "looks again": EventRecheck, "looked again": EventRecheck, "look again": EventRecheck,
	"customer told": EventReply, "customer informed": EventReply, "customer notified": EventReply,
	"reply": EventReply, "replied": EventReply, "replies": EventReply, "answered": EventReply, "answer": EventReply, "response": EventReply,
}

var nths = map[string]int{"first": 1, "1st": 1, "second": 2, "2nd": 2, "again": 2, "third": 3, "3rd": 3}

var fillers = fieldSet(`this that then when whenever as soon on in at while during with
	state status == case request desk customer approver person and or from now since moment time of to for by until
	reaches reached reach enters entered entering becomes became gets got comes came goes sent made seen next just still already only there shortly exactly later
	message messages action record approvals who approval second seconds waiting waits pending due explained recorded`)

// read takes the words in, the longest phrase first.
func (p *phrases) read() {
	for i := 0; i < len(p.words); {
		i += p.take(i)
	}
	if !p.approval && len(p.states) == 0 && p.event == "" && p.participle != "" {
		p.states = []string{p.participle}
	}
	if p.approval && len(p.states) == 0 && p.event == "" {
		state := AwaitingApproval
		if p.after {
			state = RefundRequested
		}
		p.states = []string{state}
	}
}

// take reads the phrase at word i and gives its length.
func (p *phrases) take(i int) int {
	for n := min(4, len(p.words)-i); n > 0; n-- {
		text := strings.Join(p.words[i:i+n], " ")
		if state, ok := names[text]; ok {
			if !slices.Contains(p.states, state) {
				p.states = append(p.states, state)
			}
			return n
		}
		if event, ok := events[text]; ok {
			p.event = event
			return n
		}
	}
	word := p.words[i]
	switch {
	case nths[word] > 0:
		p.nth = nths[word]
	case word == "after" || word == "once" || word == "following" || word == "past" || word == "later":
		p.after = true
	case word == "before":
		p.before = true
	case word == "immediately" || word == "once" || word == "directly" || word == "straight" || word == "away" || word == "right":
		p.atOnce = true
	case word == "receipt" || word == "post" || word == "posted" || word == "opened" || word == "opening":
		p.receipt = true
	case word == "not" || word == "!=" || word == "unless" || word == "except" || word == "never" || word == "without" || word == "no":
		p.negated = append(p.negated, word)
	case participles[word] != "":
		p.participle = participles[word]
	case word == "approval":
		p.approval = true
	case !fillers[word]:
		p.unknown = append(p.unknown, word)
	}
	return 1
}

// earlier turns "before" a state into the state that comes before it.
func (p *phrases) earlier() bool {
	if p.approval && len(p.states) == 1 && p.states[0] == AwaitingApproval {
		return true // before the approval: while it is waited for
	}
	if len(p.states) != 1 {
		return false
	}
	switch p.states[0] {
	case AwaitingApproval:
		p.states[0] = Investigating
	case RefundRequested, Refunded:
		p.states[0] = AwaitingApproval
	default:
		return false
	}
	return true
}

func fieldSet(words string) map[string]bool {
	out := map[string]bool{}
	for _, w := range strings.Fields(words) {
		out[w] = true
	}
	return out
}
