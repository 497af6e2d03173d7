package subject

import (
	"errors"
	"fmt"
	"strings"

	"github.com/amends-dev/amends/internal/ident"
)

// Kind is the first token of a subject.
type Kind string

// The subject families, one stream each (TIMERS holds Timer and Due,
// DELIVERIES Delivery and Endpoint).
const (
	KindIntake  Kind = "intake"
	KindCase    Kind = "case"
	KindTask    Kind = "task"
	KindResult  Kind = "result"
	KindEffect  Kind = "effect"
	KindControl Kind = "control"
	KindTimer   Kind = "timer"
	KindDue     Kind = "due"
	KindView    Kind = "view"
	KindDead    Kind = "dead"
	KindAudit   Kind = "audit"
	KindReport  Kind = "report"

	KindDelivery Kind = "delivery"
	KindEndpoint Kind = "endpoint"
)

// LivePrefix is put before a view's subject when the broker republishes it.
const LivePrefix = "live."

// CapKey is the reserved key of a tenant's ledger of unapproved refunds.
const CapKey = "cap"

// StopAll is the scope of the emergency stop for every tenant.
const StopAll = "all"

// CheckTenant checks the name of a tenant that a configuration gives as field:
// a token, and not the one that stands for every tenant.
func CheckTenant(field, tenant string) error {
	if tenant == StopAll {
		return fmt.Errorf("%s: %w: %q stands for every tenant", field, ident.ErrToken, tenant)
	}
	return ident.Tokens(field, tenant)
}

// ErrSubject marks a subject this package did not build.
var ErrSubject = errors.New("not a subject of the desk")

// Intake is where the gateway or the console hands in what came from outside.
func Intake(sender, tenant, caseID string) string {
	return join(KindIntake, sender, tenant, caseID)
}

// Case holds the record of one case; written by the orchestrator only.
func Case(tenant, caseID string) string { return join(KindCase, tenant, caseID) }

// Task carries assignments to one recipient.
func Task(recipient, tenant, caseID string) string {
	return join(KindTask, recipient, tenant, caseID)
}

// Result carries what a specialist or the executor answers.
func Result(sender, tenant, caseID string) string {
	return join(KindResult, sender, tenant, caseID)
}

// Effect holds the effect ledger of one order. The order id "cap" is reserved
// (ReservedOrder); callers refuse it before they get here.
func Effect(tenant, orderID string) string { return join(KindEffect, tenant, orderID) }

// ReservedOrder reports whether an order id would collide with EffectCap.
func ReservedOrder(orderID string) bool { return orderID == CapKey }

// EffectCap holds a tenant's ledger of refunds made without an approval.
func EffectCap(tenant string) string { return join(KindEffect, tenant, CapKey) }

// Control holds the emergency stop of a tenant, or of all with StopAll.
func Control(scope string) string { return join(KindControl, "stop", scope) }

// Reconcile holds the last order to reconcile a tenant.
func Reconcile(tenant string) string { return join(KindControl, "reconcile", tenant) }

// Report holds what one service found in one reconciliation.
func Report(service, tenant, run string) string { return join(KindReport, service, tenant, run) }

// Timer holds the one rolling schedule of a case; it fires to Due.
func Timer(tenant, caseID string) string { return join(KindTimer, tenant, caseID) }

// Due is where a fired timer arrives.
func Due(tenant, caseID string) string { return join(KindDue, tenant, caseID) }

// View holds the customer-facing snapshot of a case.
func View(tenant, caseID string) string { return join(KindView, tenant, caseID) }

// LiveView is where the broker republishes a stored view.
func LiveView(tenant, caseID string) string { return LivePrefix + View(tenant, caseID) }

// Delivery holds the log of a case's webhooks.
func Delivery(tenant, caseID string) string { return join(KindDelivery, tenant, caseID) }

// Endpoint holds the state of a channel's webhook.
func Endpoint(tenant, channel string) string { return join(KindEndpoint, tenant, channel) }

// Dead carries a service's dead letters. Tenant and case are "none" when the
// message was too broken to say.
func Dead(service, tenant, caseID string) string {
	return join(KindDead, service, orNone(tenant), orNone(caseID))
}

// Audit carries what the other streams do not record.
func Audit(service, tenant string) string { return join(KindAudit, service, orNone(tenant)) }

// None stands for a tenant or case that is not known.
const None = "none"

func orNone(s string) string {
	if ident.Token(s) != nil {
		return None
	}
	return s
}

func join(k Kind, tokens ...string) string { return string(k) + "." + strings.Join(tokens, ".") }

// Parts is a subject taken apart. Fields a family does not have are empty.
type Parts struct {
	Kind      Kind
	Sender    string
	Recipient string
	Tenant    string
	// CaseID is the case, for effects the order or "cap", for endpoints the
	// channel, for reports the run.
	CaseID string
}

// Parse takes a subject of the desk apart and checks every token.
func Parse(s string) (Parts, error) {
	t := strings.Split(s, ".")
	for _, tok := range t {
		if err := ident.Token(tok); err != nil {
			return Parts{}, fmt.Errorf("%w: %q: %w", ErrSubject, s, err)
		}
	}
	k := Kind(t[0])
	want := 3
	switch k {
	case KindIntake, KindTask, KindResult, KindDead, KindReport:
		want = 4
	case KindCase, KindEffect, KindControl, KindTimer, KindDue, KindView, KindAudit, KindDelivery, KindEndpoint:
	default:
		return Parts{}, fmt.Errorf("%w: %q", ErrSubject, s)
	}
	if len(t) != want {
		return Parts{}, fmt.Errorf("%w: %q has %d tokens, want %d", ErrSubject, s, len(t), want)
	}
	switch k {
	case KindIntake, KindResult, KindDead, KindReport:
		return Parts{Kind: k, Sender: t[1], Tenant: t[2], CaseID: t[3]}, nil
	case KindTask:
		return Parts{Kind: k, Recipient: t[1], Tenant: t[2], CaseID: t[3]}, nil
	case KindAudit:
		return Parts{Kind: k, Sender: t[1], Tenant: t[2]}, nil
	case KindControl:
		return Parts{Kind: k, Tenant: t[2]}, nil
	default:
		return Parts{Kind: k, Tenant: t[1], CaseID: t[2]}, nil
	}
}
