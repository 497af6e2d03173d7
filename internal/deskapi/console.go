package deskapi

import (
	"encoding/json"
	"strconv"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	amendsv1 "github.com/amends-dev/amends/proto/amends/v1"
)

// RecordPath is where staff read a case. With a version above 0 the answer is
// of that version or a later one.
func RecordPath(tenant, caseID string, minVersion uint64) string {
	return withVersion(CasesPath+"/"+tenant+"/"+caseID, minVersion)
}

// ActionPath is where staff read the action a case proposes.
func ActionPath(tenant, caseID string, minVersion uint64) string {
	return withVersion(CasesPath+"/"+tenant+"/"+caseID+"/action", minVersion)
}

// DecisionsPath is where signed decisions are handed in.
func DecisionsPath(tenant, caseID string) string {
	return CasesPath + "/" + tenant + "/" + caseID + "/decisions"
}

// ParamMinVersion names the query parameter of a wanted version.
const ParamMinVersion = "min_version"

func withVersion(path string, v uint64) string {
	if v == 0 {
		return path
	}
	return path + "?" + ParamMinVersion + "=" + strconv.FormatUint(v, 10)
}

// Record is a case as staff see it.
type Record struct {
	Tenant  string `json:"tenant"`
	CaseID  string `json:"case_id"`
	Version uint64 `json:"version"`
	State   string `json:"state"`
	// Decisions says what became of each signed decision, in the order they
	// were judged.
	Decisions []Judgement `json:"decisions"`
	// Held: the emergency stop holds the refund. Stops are the switches that are
	// set over it now; none is when they were released just before.
	Held  bool   `json:"held,omitempty"`
	Stops []Stop `json:"stops,omitempty"`
	// Record is an amends.v1.CaseRecord in ProtoJSON without the fields that
	// are of no use to people.
	Record json.RawMessage `json:"record"`
}

// Judgement is what became of a signed decision.
type Judgement struct {
	// MessageID is the one the decision was relayed as.
	MessageID string `json:"message_id"`
	// Version is the one the decision led to, and State the case's state then.
	Version uint64 `json:"version"`
	State   string `json:"state"`
	// Refused is a reason code; a decision that counts has none.
	Refused string `json:"refused,omitempty"`
}

// Action is the action a case proposes and what an approver needs beside it.
// Text and hash are there for people to read; whoever signs computes both from
// Action.
type Action struct {
	Tenant  string `json:"tenant"`
	CaseID  string `json:"case_id"`
	Version uint64 `json:"version"`
	State   string `json:"state"`
	// Action is an amends.v1.ActionRecord in ProtoJSON.
	Action          json.RawMessage `json:"action"`
	ActionText      string          `json:"action_text"`
	ActionSHA256    string          `json:"action_sha256"`
	Evidence        Evidence        `json:"evidence"`
	ApproversNeeded uint32          `json:"approvers_needed"`
	// ApprovalsRecorded counts the signed decisions in the record.
	ApprovalsRecorded int `json:"approvals_recorded"`
	// NextApprovalID is apr-8472-1; where two approvers are needed each adds
	// the approver's own id to it.
	NextApprovalID string `json:"next_approval_id"`
}

// Evidence sums up what an action rests on. CallIDs name the look-ups.
type Evidence struct {
	Complete       bool       `json:"complete"`
	Reason         string     `json:"reason"`
	PolicyCitation string     `json:"policy_citation,omitempty"`
	PolicyQuote    string     `json:"policy_quote,omitempty"`
	OrderTotal     *Amount    `json:"order_total,omitempty"`
	Captures       []Capture  `json:"captures"`
	Refunds        []Refund   `json:"refunds"`
	Disputes       []Dispute  `json:"disputes"`
	Conflicts      []Conflict `json:"conflicts"`
	CallIDs        []string   `json:"call_ids"`
}

// Amount is minor units of a currency.
type Amount struct {
	Minor    int64  `json:"minor"`
	Currency string `json:"currency"`
}

// Capture is a payment of the order.
type Capture struct {
	PaymentID string     `json:"payment_id"`
	Amount    Amount     `json:"amount"`
	Status    string     `json:"status"`
	SettledAt *time.Time `json:"settled_at,omitempty"`
}

// Refund is a refund the provider lists.
type Refund struct {
	RefundID  string `json:"refund_id"`
	PaymentID string `json:"payment_id"`
	Amount    Amount `json:"amount"`
	Status    string `json:"status"`
}

// Dispute is a dispute the provider lists.
type Dispute struct {
	DisputeID string `json:"dispute_id"`
	PaymentID string `json:"payment_id"`
	Status    string `json:"status"`
}

// Conflict is a disagreement with both its sides.
type Conflict struct {
	Kind       string `json:"kind"`
	OneSide    string `json:"one_side"`
	OtherSide  string `json:"other_side"`
	ResolvedBy string `json:"resolved_by,omitempty"`
}

// Relayed answers a decision that was handed on.
type Relayed struct {
	ApprovalID string `json:"approval_id,omitempty"`
	MessageID  string `json:"message_id"`
}

// AmountOf gives the wire form of an amount; an absent one is zero.
func AmountOf(m *amendsv1.Money) Amount {
	return Amount{Minor: m.GetMinor(), Currency: m.GetCurrency()}
}

// TimeOf gives the wire form of a time, or nil when it is not set.
func TimeOf(t *timestamppb.Timestamp) *time.Time {
	if t == nil {
		return nil
	}
	at := t.AsTime()
	return &at
}
