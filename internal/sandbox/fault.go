package sandbox

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/amends-dev/amends/internal/ident"
)

// FaultKind names what goes wrong.
type FaultKind string

// The kinds of fault; FaultKinds says what each does.
const (
	AnswerLost          FaultKind = "answer_lost"
	Delay               FaultKind = "delay"
	ErrorBefore         FaultKind = "error_before"
	ErrorAfter          FaultKind = "error_after"
	Outage              FaultKind = "outage"
	KeysForgotten       FaultKind = "keys_forgotten"
	NoIdempotency       FaultKind = "no_idempotency"
	FailsLater          FaultKind = "fails_later"
	Contradictory       FaultKind = "contradictory"
	UnknownEnum         FaultKind = "unknown_enum"
	ClockSkew           FaultKind = "clock_skew"
	WebhookCopies       FaultKind = "webhook_copies"
	WebhookDelay        FaultKind = "webhook_delay"
	WebhookBeforeAnswer FaultKind = "webhook_before_answer"
	WebhookLost         FaultKind = "webhook_lost"
)

// Faults are what goes wrong, in the order in which it is tried.
type Faults []Fault

// Fault is one rule: what goes wrong, where, with what, and how often.
type Fault struct {
	Kind FaultKind `json:"kind"`
	// On are routes or groups of them; empty takes the kind's own.
	On []string `json:"on,omitempty"`
	// What it is about; an empty one takes all. In a read of an order, Payment
	// and Reference match the orders that have such a payment or refund.
	Tenant    string `json:"tenant,omitempty"`
	Order     string `json:"order,omitempty"`
	Payment   string `json:"payment,omitempty"`
	Reference string `json:"reference,omitempty"`
	// Times is how often it strikes; 0 until it is removed.
	Times int `json:"times,omitempty"`

	// For is a duration, e.g. of a delay. In JSON it is a text like "1m30s".
	For time.Duration `json:"-"`
	// When a delay comes: before (the default) or after what is asked for is done.
	When string `json:"when,omitempty"`
	// Status of records, e.g. failed.
	Status string `json:"status,omitempty"`
	// Record narrows UnknownEnum to one kind of record.
	Record string `json:"record,omitempty"`
	// Code is the HTTP status of an error; 500 by default.
	Code int `json:"code,omitempty"`
	// Copies of each webhook that are sent at once.
	Copies int `json:"copies,omitempty"`

	// Struck is how often it struck. It is the sandbox's to say: what is
	// handed in does not count.
	Struck int `json:"struck,omitempty"`
}

// FaultKindInfo says what a kind of fault does and takes.
type FaultKindInfo struct {
	Kind FaultKind
	Does string
	// On is where it strikes unless told otherwise, May where it can.
	On, May []string
	// Needs and Takes are its own settings, besides on, the filters and times.
	Needs, Takes []string
	Example      string
}

// Where a fault can strike besides the routes.
const (
	onAll      = "all"
	onReads    = "reads"
	onWrites   = "writes"
	onRecords  = "records"
	onWebhooks = "webhooks"
)

// FaultKinds lists every kind.
func FaultKinds() []FaultKindInfo {
	routes := routeNames()
	write, all, reads := []string{routeCreate}, []string{onAll}, []string{onReads}
	webhooks := []string{onWebhooks}
	shown := slices.DeleteFunc(slices.Clone(routes), func(name string) bool { return name == routeOwner || name == onWrites })
	captures := []string{onAll, onReads, routeOrder, routeCaptures, routeSettlement}
	return []FaultKindInfo{
		{AnswerLost, "What is asked for is done, and the connection is closed without an answer.", write, routes, nil, nil, "answer_lost,times=1,payment=pay_8472_b"},
		{Delay, "The request waits before it is done, or with when=after its answer does. A client that has gone stops neither.", write, routes, []string{"for"}, []string{"when"}, "delay,for=3s,when=after,times=1"},
		{ErrorBefore, "An error, and nothing is done.", write, routes, nil, []string{"code"}, "error_before,code=500,times=2"},
		{ErrorAfter, "What is asked for is done, and an error is answered.", write, routes, nil, []string{"code"}, "error_after,code=502,reference=refund:req-8472:pay_8472_b"},
		{Outage, "503, and nothing is done.", all, routes, nil, nil, "outage,on=reads"},
		{KeysForgotten, "Keys older than the duration are forgotten, whatever their window; without one, every key is.", write, write, nil, []string{"for"}, "keys_forgotten,for=1h"},
		{NoIdempotency, "Keys are taken and not kept: every request is a new one.", write, write, nil, nil, "no_idempotency,tenant=acme-in"},
		{FailsLater, "A refund that is made turns failed, or what status says, after the duration.", write, write, nil, []string{"for", "status"}, "fails_later,for=2s,payment=pay_8472_b"},
		{Contradictory, "A payment is shown as captured when it is not and the other way round, a settlement likewise; what stands beside it stays.", reads, captures, nil, nil, "contradictory,order=8472"},
		{UnknownEnum, "Records are shown with a status that nobody knows, " + oddStatus + " or what status says.", reads, shown, nil, []string{"status", "record"}, "unknown_enum,record=refund,payment=pay_8472_b"},
		{ClockSkew, "The provider's clock is off by the duration: created_at and settled_at of what it records, timestamps of webhooks and of their signatures.", []string{onRecords, onWebhooks}, []string{onRecords, onWebhooks}, []string{"for"}, nil, "clock_skew,for=-90s,on=records"},
		{WebhookCopies, "Each webhook is sent so many times at once, under one id.", webhooks, webhooks, []string{"copies"}, nil, "webhook_copies,copies=3"},
		{WebhookDelay, "Webhooks are first sent the duration after the change.", webhooks, webhooks, []string{"for"}, nil, "webhook_delay,for=10s"},
		{WebhookBeforeAnswer, "The answer to what changed something waits until its webhooks were sent once, at most ten seconds.", webhooks, webhooks, nil, nil, "webhook_before_answer,times=1"},
		{WebhookLost, "Webhooks are not sent.", webhooks, webhooks, nil, nil, "webhook_lost,order=8472"},
	}
}

const (
	// oddStatus is no status of any version.
	oddStatus = "under_observation"

	maxFaults = 64
	maxTimes  = 1_000_000
	// maxHold bounds how long a request is held, maxFor everything else.
	maxHold   = 10 * time.Minute
	maxFor    = 30 * 24 * time.Hour
	maxCopies = 100

	whenBefore = "before"
	whenAfter  = "after"

	recordCapture = "capture"
	recordRefund  = "refund"
	recordDispute = "dispute"
)

func infoOf(kind FaultKind) (FaultKindInfo, error) {
	all := FaultKinds()
	if i := slices.IndexFunc(all, func(k FaultKindInfo) bool { return k.Kind == kind }); i >= 0 {
		return all[i], nil
	}
	names := make([]string, len(all))
	for i, k := range all {
		names[i] = string(k.Kind)
	}
	return FaultKindInfo{}, fmt.Errorf("unknown fault %q, want one of %s", kind, strings.Join(names, ", "))
}

// Validate checks all rules.
func (f Faults) Validate() error {
	if len(f) > maxFaults {
		return fmt.Errorf("%d faults, at most %d", len(f), maxFaults)
	}
	for i, x := range f {
		if err := x.Validate(); err != nil {
			return fmt.Errorf("faults[%d]: %w", i, err)
		}
	}
	return nil
}

// Validate checks that the kind is known, has what it needs, and nothing that
// would mean nothing.
func (x Fault) Validate() error {
	info, err := infoOf(x.Kind)
	if err != nil {
		return err
	}
	for _, s := range faultSettings {
		given := s.get(x) != ""
		own := slices.Contains(info.Needs, s.name) || slices.Contains(info.Takes, s.name)
		switch {
		case given && !s.common && !own:
			return fmt.Errorf("%s has no %s", x.Kind, s.name)
		case !given && slices.Contains(info.Needs, s.name):
			return fmt.Errorf("%s needs %s, e.g. %s", x.Kind, s.name, info.Example)
		}
	}
	for _, on := range x.On {
		if !slices.Contains(info.May, on) {
			return fmt.Errorf("%s strikes on %s, not on %q", x.Kind, strings.Join(info.May, ", "), on)
		}
	}
	if err := x.checkFilters(info); err != nil {
		return fmt.Errorf("%s: %w", x.Kind, err)
	}
	if err := x.checkSettings(); err != nil {
		return fmt.Errorf("%s: %w", x.Kind, err)
	}
	return nil
}

func (x Fault) checkFilters(info FaultKindInfo) error {
	for _, f := range []struct{ name, value string }{{"tenant", x.Tenant}, {"order", x.Order}, {"payment", x.Payment}} {
		if f.value == "" {
			continue
		}
		if err := ident.Tokens(f.name, f.value); err != nil {
			return err
		}
	}
	switch {
	case !utf8.ValidString(x.Reference) || strings.Contains(x.Reference, ","):
		return errors.New("reference: holds a comma, or is not UTF-8")
	case x.Reference != "" && info.Kind == Contradictory:
		return errors.New("a payment has no reference; name it by payment")
	}
	return texts(text{"reference", x.Reference, 0, 160})
}

func (x Fault) checkSettings() error {
	longest := maxFor
	if x.Kind == Delay {
		longest = maxHold
	}
	switch {
	case len(x.On) > len(routeNames()):
		return fmt.Errorf("on: %d places", len(x.On))
	case x.Times < 0 || x.Times > maxTimes:
		return fmt.Errorf("times: want 0 to %d", maxTimes)
	case x.For < 0 && x.Kind != ClockSkew, x.For > longest, x.For < -longest:
		return fmt.Errorf("for: %s is out of range, at most %s", x.For, longest)
	case x.When != "" && x.When != whenBefore && x.When != whenAfter:
		return fmt.Errorf("when: want %s or %s", whenBefore, whenAfter)
	case x.Code != 0 && (x.Code < 500 || x.Code > 599):
		return errors.New("code: want 500 to 599")
	case x.Copies < 0 || x.Copies > maxCopies:
		return fmt.Errorf("copies: want 1 to %d", maxCopies)
	case x.Record != "" && x.Record != recordCapture && x.Record != recordRefund && x.Record != recordDispute:
		return fmt.Errorf("record: want %s, %s or %s", recordCapture, recordRefund, recordDispute)
	case !utf8.ValidString(x.Status) || strings.Contains(x.Status, ","):
		return errors.New("status: holds a comma, or is not UTF-8")
	}
	return texts(text{"status", x.Status, 0, 64})
}

// routeNames are the places a fault can strike a request at: the groups and
// the routes.
func routeNames() []string {
	return []string{
		onAll, onReads, onWrites, routeOwner, routeOrder, routeCaptures, routeOrderRefunds, routeSettlement,
		routeList, routeRefund, routeCreate,
	}
}
