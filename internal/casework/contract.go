package casework

import (
	"fmt"
	"slices"
	"time"

	"github.com/amends-dev/amends/internal/roles"
	amendsv1 "github.com/amends-dev/amends/proto/amends/v1"
)

// sliceTerms are the fixed terms of a contract, per slice.
type sliceTerms struct {
	tools      []string
	purpose    string
	capability string
	completion string
	onTimeout  string
	discloses  []string
}

var terms = map[amendsv1.Slice]sliceTerms{
	amendsv1.Slice_SLICE_PAYMENT: {
		tools:   []string{roles.ToolListCaptures, roles.ToolListRefunds, roles.ToolGetSettlement},
		purpose: "find out what happened to the money of one order", capability: "payments.read",
		completion: "captures, refunds and settlement of the order, or an explicit incomplete", onTimeout: "new attempt, then a person",
		discloses: []string{"order_id"},
	},
	amendsv1.Slice_SLICE_POLICY: {
		tools:   []string{roles.ToolPolicySearch},
		purpose: "find the rule that applies", capability: "policy.search",
		completion: "one current passage with citation, or explicit no-evidence", onTimeout: "new attempt, then a person",
		discloses: []string{"topic", "received_at"},
	},
	amendsv1.Slice_SLICE_COMPOSE: {
		purpose: "write the customer's reply", capability: "draft.write",
		completion: "a text and the claims it makes", onTimeout: "new attempt, then a person writes",
		discloses: []string{"customer_facing_facts"},
	},
	amendsv1.Slice_SLICE_VERIFY: {
		tools:   []string{roles.ToolReadState, roles.ToolGetRefund, roles.ToolListCaptures},
		purpose: "check every claim of a draft against records", capability: "verification.write",
		completion: "a verdict with a check for each claim", onTimeout: "new attempt, then a person writes",
		discloses: []string{"draft", "case_facts"},
	},
	amendsv1.Slice_SLICE_EXECUTE: {
		tools:   []string{roles.ToolReadOrder, roles.ToolCreateRefund, roles.ToolGetRefund},
		purpose: "make exactly the refunds of one action", capability: "refund.execute",
		completion: "an outcome for every refund", onTimeout: "outcome unknown; asked again with the same key",
		discloses: []string{"action", "approvals"},
	},
	amendsv1.Slice_SLICE_CANCEL: {
		tools:   []string{roles.ToolReadOrder, roles.ToolGetRefund},
		purpose: "withdraw an action that has not begun", capability: "refund.cancel",
		completion: "not begun, or what has begun", onTimeout: "asked again",
		discloses: []string{"action"},
	},
	amendsv1.Slice_SLICE_CONFIRM: {
		tools:   []string{roles.ToolReadOrder, roles.ToolGetRefund},
		purpose: "read again what became of refunds that were made", capability: "refund.confirm",
		completion: "every refund as the provider has it now", onTimeout: "asked again, then a person",
		discloses: []string{"action", "provider_events"},
	},
	amendsv1.Slice_SLICE_SETTLE: {
		tools:   []string{roles.ToolReadOrder, roles.ToolGetRefund, roles.ToolListRefunds},
		purpose: "verify what a custodian says became of refunds in doubt", capability: "refund.settle",
		completion: "the outcome of every refund in doubt, or why it stays in doubt", onTimeout: "asked again",
		discloses: []string{"action", "custody_decision"},
	},
}

func permittedTools(slice amendsv1.Slice) []string { return terms[slice].tools }

// mayNotDecide lists what no receiver of a task decides.
var mayNotDecide = []string{"refund", "approval", "case_state", "policy_change"}

// Contract gives the contract of the open attempt of a task, from the record.
// The last owner of a case is always the orchestrator.
func Contract(rec *amendsv1.CaseRecord, n *amendsv1.TaskNode, a *amendsv1.Attempt, lim Limits) *amendsv1.TaskContract {
	t := terms[n.GetSlice()]
	budget := &amendsv1.Budget{Actions: uint32(lim.TaskActions), ModelTokens: uint32(lim.TaskTokens)} //nolint:gosec // small configured bounds
	if n.GetSlice() == amendsv1.Slice_SLICE_EXECUTE {
		budget.Effects = uint32(len(rec.GetAction().GetRefunds())) //nolint:gosec // at most 16
	}
	return &amendsv1.TaskContract{
		Source: string(roles.Orchestrator), Target: n.GetTarget(), Slice: n.GetSlice(), StateVersion: n.GetInputVersion(),
		Owner: n.GetTarget(), FinalOwner: string(roles.Orchestrator), PermittedTools: t.tools,
		Scope:   &amendsv1.Scope{Tenant: rec.GetTenant(), CustomerId: rec.GetCustomerId(), OrderId: orderFor(rec, n.GetSlice())},
		Expires: a.GetDeadline(), LeaseUntil: a.GetDeadline(), Budget: budget,
		ContinuationReserve: &amendsv1.Budget{ModelTokens: uint32(lim.TaskTokens)}, //nolint:gosec // a small configured bound
		DuplicateKey:        n.GetTaskId(), CancelRevision: rec.GetCancelRevision(),
		Completion: t.completion, ReturnTo: string(roles.Orchestrator), OnTimeout: t.onTimeout,
		MayNotDecide: mayNotDecide, HopLimit: 1, Discloses: t.discloses,
	}
}

// orderFor gives the order that a task is about: that of the action it is about,
// also when the customer has named another one since.
func orderFor(rec *amendsv1.CaseRecord, slice amendsv1.Slice) string {
	var a *amendsv1.ActionRecord
	switch {
	case slice == amendsv1.Slice_SLICE_CONFIRM:
		a = doubted(rec).GetAction()
	case effectful(slice):
		a = rec.GetAction()
	}
	return orDefault(a.GetOrderId(), rec.GetTriage().GetOrderId())
}

// Admit checks a contract before its task is sent: a denial names the
// predicate that failed, and nothing repairs a contract silently.
func Admit(rec *amendsv1.CaseRecord, c *amendsv1.TaskContract, now time.Time, lim Limits) error {
	target, known := sliceTarget[c.GetSlice()]
	specialist := target != roles.RefundExecutor
	switch {
	case !known || c.GetSource() != string(roles.Orchestrator) || c.GetTarget() != string(target):
		return fmt.Errorf("party_unknown: %s to %s", c.GetSource(), c.GetTarget())
	case c.GetFinalOwner() != string(roles.Orchestrator):
		return fmt.Errorf("final_owner_missing: %q", c.GetFinalOwner())
	case c.GetOnTimeout() == "" || c.GetCompletion() == "" || c.GetReturnTo() == "":
		return fmt.Errorf("terms_missing")
	case c.GetStateVersion() == 0 || c.GetStateVersion() > rec.GetVersion():
		return fmt.Errorf("version_not_current: %d of %d", c.GetStateVersion(), rec.GetVersion())
	case c.GetScope().GetTenant() != rec.GetTenant() || c.GetScope().GetCustomerId() != rec.GetCustomerId():
		return fmt.Errorf("scope_wider")
	case c.GetScope().GetOrderId() != orderFor(rec, c.GetSlice()):
		return fmt.Errorf("scope_wider: order")
	case specialist && c.GetBudget().GetEffects() != 0:
		return fmt.Errorf("effects_not_zero: %d", c.GetBudget().GetEffects())
	case int(c.GetBudget().GetModelTokens()) > lim.TaskTokens || int(c.GetBudget().GetActions()) > lim.TaskActions:
		return fmt.Errorf("budget_unbounded")
	case c.GetLeaseUntil().AsTime().After(c.GetExpires().AsTime()) || !now.Before(c.GetLeaseUntil().AsTime()):
		return fmt.Errorf("lease_outside_deadline")
	case c.GetCancelRevision() != rec.GetCancelRevision():
		return fmt.Errorf("cancel_reference_missing")
	case c.GetHopLimit() == 0 || c.GetHopLimit() > 3:
		return fmt.Errorf("hop_limit: %d", c.GetHopLimit())
	}
	for _, t := range c.GetPermittedTools() {
		if !slices.Contains(permittedTools(c.GetSlice()), t) {
			return fmt.Errorf("slice_denied: tool %s", t)
		}
	}
	return nil
}

// assignment gives what an open attempt hands over, from the record.
func assignment(rec *amendsv1.CaseRecord, n *amendsv1.TaskNode, a *amendsv1.Attempt, lim Limits) *amendsv1.TaskAssign {
	out := &amendsv1.TaskAssign{Contract: Contract(rec, n, a, lim)}
	r := rec.GetReply()
	switch n.GetSlice() {
	case amendsv1.Slice_SLICE_PAYMENT:
		out.Input = &amendsv1.TaskAssign_Payment{Payment: &amendsv1.PaymentSlice{OrderId: rec.GetTriage().GetOrderId()}}
	case amendsv1.Slice_SLICE_POLICY:
		topic := "other"
		if in := rec.GetTriage().GetIntents(); len(in) > 0 {
			topic = in[0]
		}
		out.Input = &amendsv1.TaskAssign_Policy{Policy: &amendsv1.PolicySlice{Topic: topic, ReceivedAt: rec.GetOpenedAt(), CorpusVersion: rec.GetPins().GetPolicyCorpus()}}
	case amendsv1.Slice_SLICE_COMPOSE:
		out.Input = &amendsv1.TaskAssign_Compose{Compose: &amendsv1.ComposeSlice{
			Kind: r.GetKind(), Facts: r.GetFacts(), FactsSha256: r.GetFactsSha256(), OrderId: rec.GetTriage().GetOrderId(), Rejections: first(r.GetRejections(), 16),
		}}
	case amendsv1.Slice_SLICE_VERIFY:
		out.Contract.EvidenceRefs = rec.GetDecision().GetCallIds()
		out.Input = &amendsv1.TaskAssign_Verify{Verify: &amendsv1.VerifySlice{Draft: rec.GetDraft(), Kind: r.GetKind(), Records: caseFacts(rec)}}
	case amendsv1.Slice_SLICE_EXECUTE:
		out.Input = &amendsv1.TaskAssign_Execute{Execute: &amendsv1.ExecuteOrder{Action: rec.GetAction(), Approvals: approvalsOf(rec), CancelRevision: rec.GetCancelRevision()}}
	case amendsv1.Slice_SLICE_CANCEL:
		out.Input = &amendsv1.TaskAssign_Cancel{Cancel: &amendsv1.CancelOrder{Action: rec.GetAction(), CancelRevision: rec.GetCancelRevision()}}
	case amendsv1.Slice_SLICE_CONFIRM:
		out.Input = &amendsv1.TaskAssign_Confirm{Confirm: &amendsv1.ConfirmOrder{Action: doubted(rec).GetAction(), Events: first(rec.GetUnconfirmed(), int(rec.GetConfirming()))}}
	case amendsv1.Slice_SLICE_SETTLE:
		out.Input = &amendsv1.TaskAssign_Settle{Settle: &amendsv1.SettleOrder{Action: rec.GetAction(), Decision: rec.GetSettlement()}}
	default: // no such slice: the assignment stays without input, and sealing refuses it
	}
	return out
}

func first[T any](list []T, n int) []T { return list[:min(len(list), n)] }

// approvalsOf gives the decisions recorded for the current action.
func approvalsOf(rec *amendsv1.CaseRecord) []*amendsv1.SignedDecision {
	var out []*amendsv1.SignedDecision
	for _, a := range rec.GetApprovals() {
		if a.GetActionSha256() == rec.GetActionSha256() {
			out = append(out, a)
		}
	}
	return out
}

// caseFacts gives the authoritative part of the record a reply can rest on.
func caseFacts(rec *amendsv1.CaseRecord) *amendsv1.CaseFacts {
	f := &amendsv1.CaseFacts{
		State: StateName(rec.GetState()), OrderId: rec.GetTriage().GetOrderId(), Payment: rec.GetPayment(), Effect: rec.GetEffect(),
		Reason: rec.GetDecision().GetReason(), RecheckAt: rec.GetDeadlines().GetRecheck(), ReplyBy: rec.GetDeadlines().GetCustomerReply(),
		ReceivedAt: rec.GetOpenedAt(), WindowHours: rec.GetPolicy().GetRule().GetWindowHours(), Facts: rec.GetReply().GetFacts(),
	}
	for _, r := range rec.GetDecision().GetRefunds() {
		f.ClaimedPayments = append(f.ClaimedPayments, r.GetPaymentId())
	}
	return f
}
