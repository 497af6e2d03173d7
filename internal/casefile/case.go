package casefile

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/amends-dev/amends/internal/sandbox"
)

// Case is one message case.
type Case struct {
	// Line is where it stands in its file.
	Line  int
	ID    string
	Title string
	// Channel is where the message came in, at Now.
	Channel string
	Now     time.Time
	// Caller is who the gateway says it is; nil posts without a credential.
	Caller    *Caller
	Message   string
	Followups []Followup
	// Ledger is what the payments provider knows.
	Ledger    sandbox.Ledger
	Expected  Expected
	Forbidden []string
	// Notes are oddities that change nothing, e.g. fields nobody knows.
	Notes []string
}

// Caller is an authenticated customer of a tenant.
type Caller struct {
	Tenant     string `json:"tenant"`
	CustomerID string `json:"customer_id"`
}

// Followup is what happens later: any of a message, an approver's action and a
// change of the ledger, in this order reversed: the ledger first.
type Followup struct {
	When    When
	Message string
	// Caller is who writes the message; nil is the case's.
	Caller *Caller
	// Withdraw calls the gateway's cancel.
	Withdraw bool
	Approver *ApproverAction
	// Ledger is merged into the provider's.
	Ledger *sandbox.Ledger
}

// Expected is what must have come of a case. A nil slice says nothing.
type Expected struct {
	Intents        []string
	OrdersInScope  []string
	Outcome        string
	FinalState     string
	Refunds        []Refund
	ReplyMustSay   []string
	ReplyMustNot   []string
	checksRefunds  bool
	checksOrders   bool
	unknownMembers []string
}

// Refund is a refund that must exist at the end.
type Refund struct {
	PaymentID   string `json:"payment_id"`
	AmountMinor int64  `json:"amount_minor"`
	Currency    string `json:"currency"`
	// NeedsApproval, if given, says whether a person must have approved it.
	NeedsApproval *bool `json:"needs_approval"`
}

const (
	// maxMessage bounds a generated text.
	maxMessage = 8 << 20
	// maxFollowups bounds a case.
	maxFollowups = 64
)

// wire is a case as it is written.
type wire struct {
	ID         string            `json:"id"`
	Title      string            `json:"title"`
	Channel    string            `json:"channel"`
	Now        string            `json:"now"`
	Caller     json.RawMessage   `json:"caller"`
	Message    *string           `json:"message"`
	MessageGen *generated        `json:"message_gen"`
	Followups  []json.RawMessage `json:"followups"`
	Ledger     json.RawMessage   `json:"ledger"`
	Expected   json.RawMessage   `json:"expected"`
	Forbidden  []string          `json:"forbidden"`
}

// described are the members of a case that say something about it and ask for
// nothing.
var described = []string{"heldout", "tags", "policy_question", "notes", "comment", "source"}

// generated is a text too long to store.
type generated struct {
	Repeat string `json:"repeat"`
	Times  int    `json:"times"`
	Then   string `json:"then"`
}

func (g generated) text() (string, error) {
	if g.Times < 0 || len(g.Repeat)*max(g.Times, 1)+len(g.Then) > maxMessage {
		return "", fmt.Errorf("message_gen: %d times %d bytes is out of range", g.Times, len(g.Repeat))
	}
	return strings.Repeat(g.Repeat, g.Times) + g.Then, nil
}

// decodeCase reads one line. The id is given also with an error, where it could
// be read.
func decodeCase(line []byte) (c *Case, id string, err error) {
	var w wire
	unknown, err := decode(line, &w)
	if err != nil {
		var head struct {
			ID string `json:"id"`
		}
		_ = json.Unmarshal(line, &head) // the first error is the one to tell
		return nil, head.ID, err
	}
	c = &Case{ID: w.ID, Title: w.Title, Channel: w.Channel, Forbidden: w.Forbidden}
	for _, name := range unknown {
		if !slices.Contains(described, name) {
			c.Notes = append(c.Notes, fmt.Sprintf("member %q is not known and not used", name))
		}
	}
	if c.ID == "" {
		return nil, "", errors.New("id: missing")
	}
	if c.Channel == "" {
		c.Channel = "web"
	}
	if c.Now, err = parseNow(w.Now); err != nil {
		return nil, c.ID, err
	}
	if c.Caller, err = decodeCaller(w.Caller); err != nil {
		return nil, c.ID, err
	}
	if c.Message, err = messageOf(w.Message, w.MessageGen); err != nil {
		return nil, c.ID, err
	}
	if ledger, err := decodeLedger(w.Ledger); err != nil {
		return nil, c.ID, err
	} else if ledger != nil {
		c.Ledger = *ledger
	}
	if c.Expected, err = decodeExpected(w.Expected); err != nil {
		return nil, c.ID, err
	}
	if len(w.Followups) > maxFollowups {
		return nil, c.ID, fmt.Errorf("followups: %d, at most %d", len(w.Followups), maxFollowups)
	}
	for i, raw := range w.Followups {
		f, err := decodeFollowup(raw, c.Now)
		if err != nil {
			return nil, c.ID, fmt.Errorf("followup %d: %w", i+1, err)
		}
		c.Followups = append(c.Followups, f)
	}
	return c, c.ID, nil
}

func parseNow(s string) (time.Time, error) {
	if s == "" {
		return time.Time{}, errors.New("now: missing; it says when the message was received, e.g. 2026-03-12T10:14:00Z")
	}
	t, err := time.Parse(time.RFC3339, s)
	if err != nil {
		return time.Time{}, fmt.Errorf("now: %q is no time in RFC 3339, e.g. 2026-03-12T10:14:00Z", s)
	}
	return t.UTC(), nil
}

func messageOf(text *string, gen *generated) (string, error) {
	switch {
	case text != nil && gen != nil:
		return "", errors.New("message and message_gen are both given")
	case gen != nil:
		return gen.text()
	case text != nil:
		return *text, nil
	}
	return "", errors.New("message: missing")
}

func decodeCaller(raw json.RawMessage) (*Caller, error) {
	if absent(raw) {
		return nil, nil //nolint:nilnil // no caller is a caller without a credential
	}
	var c Caller
	unknown, err := decode(raw, &c)
	switch {
	case err != nil:
		return nil, fmt.Errorf("caller: %w", err)
	case len(unknown) > 0:
		return nil, fmt.Errorf("caller: member %q is not known", unknown[0])
	}
	return &c, nil
}

func decodeLedger(raw json.RawMessage) (*sandbox.Ledger, error) {
	if absent(raw) {
		return nil, nil //nolint:nilnil // a case may be about nothing the provider knows
	}
	var l sandbox.Ledger
	unknown, err := decode(raw, &l)
	switch {
	case err != nil:
		return nil, fmt.Errorf("ledger: %w", err)
	case len(unknown) > 0:
		return nil, fmt.Errorf("ledger: member %q is not known", unknown[0])
	}
	return &l, nil
}

func decodeExpected(raw json.RawMessage) (Expected, error) {
	var w struct {
		Intents       []string `json:"intents"`
		OrdersInScope []string `json:"orders_in_scope"`
		Outcome       string   `json:"outcome"`
		FinalState    string   `json:"final_state"`
		Refunds       []Refund `json:"refunds"`
		MustSay       []string `json:"reply_must_say"`
		MustNotSay    []string `json:"reply_must_not_say"`
		Reason        string   `json:"reason"`
	}
	if absent(raw) {
		return Expected{}, errors.New("expected: missing")
	}
	unknown, err := decode(raw, &w)
	if err != nil {
		return Expected{}, fmt.Errorf("expected: %w", err)
	}
	return Expected{
		Intents: w.Intents, OrdersInScope: w.OrdersInScope, Outcome: w.Outcome, FinalState: w.FinalState, Refunds: w.Refunds,
		ReplyMustSay: w.MustSay, ReplyMustNot: w.MustNotSay,
		checksRefunds: w.Refunds != nil, checksOrders: w.OrdersInScope != nil, unknownMembers: unknown,
	}, nil
}

func decodeFollowup(raw json.RawMessage, received time.Time) (Followup, error) {
	var w struct {
		When       string          `json:"when"`
		Message    *string         `json:"message"`
		MessageGen *generated      `json:"message_gen"`
		Caller     json.RawMessage `json:"caller"`
		Approver   *string         `json:"approver_action"`
		Customer   *string         `json:"customer_action"`
		Ledger     json.RawMessage `json:"ledger"`
		Provider   json.RawMessage `json:"provider"`
	}
	unknown, err := decode(raw, &w)
	switch {
	case err != nil:
		return Followup{}, err
	case len(unknown) > 0:
		return Followup{}, fmt.Errorf("member %q is not known; a followup has when, message, message_gen, caller, approver_action, customer_action, ledger, provider", unknown[0])
	}
	var f Followup
	if f.When, err = ParseWhen(w.When, received); err != nil {
		return Followup{}, err
	}
	if w.Message != nil || w.MessageGen != nil {
		if f.Message, err = messageOf(w.Message, w.MessageGen); err != nil {
			return Followup{}, err
		}
		if f.Message == "" {
			return Followup{}, errors.New("message: empty")
		}
	}
	if f.Caller, err = decodeCaller(w.Caller); err != nil {
		return Followup{}, err
	}
	if w.Customer != nil {
		if f.Withdraw = withdraws(*w.Customer); !f.Withdraw {
			return Followup{}, fmt.Errorf("customer_action: %q is not understood; it may withdraw or cancel", *w.Customer)
		}
	}
	if w.Approver != nil {
		a, err := ParseApproverAction(*w.Approver)
		if err != nil {
			return Followup{}, err
		}
		f.Approver = &a
	}
	f.Ledger, err = changeOf(w.Ledger, w.Provider)
	return f, err
}

// changeOf gives the change of the ledger, under either of its two names.
func changeOf(ledger, provider json.RawMessage) (*sandbox.Ledger, error) {
	if !absent(ledger) && !absent(provider) {
		return nil, errors.New("ledger and provider are both given")
	}
	if absent(ledger) {
		ledger = provider
	}
	return decodeLedger(ledger)
}

func withdraws(action string) bool {
	a := strings.ToLower(action)
	return strings.Contains(a, "withdraw") || strings.Contains(a, "cancel")
}

func absent(raw json.RawMessage) bool {
	return len(raw) == 0 || bytes.Equal(bytes.TrimSpace(raw), []byte("null"))
}
