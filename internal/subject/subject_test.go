package subject_test

import (
	"errors"
	"testing"

	"github.com/amends-dev/amends/internal/ident"
	"github.com/amends-dev/amends/internal/subject"
)

func TestParseReadsWhatTheBuildersWrite(t *testing.T) {
	for _, c := range []struct {
		s    string
		want subject.Parts
	}{
		{subject.Intake("gateway", "acme-in", "req-8472"), subject.Parts{Kind: subject.KindIntake, Sender: "gateway", Tenant: "acme-in", CaseID: "req-8472"}},
		{subject.Case("acme-in", "req-8472"), subject.Parts{Kind: subject.KindCase, Tenant: "acme-in", CaseID: "req-8472"}},
		{subject.Task("composer", "acme-in", "req-8472"), subject.Parts{Kind: subject.KindTask, Recipient: "composer", Tenant: "acme-in", CaseID: "req-8472"}},
		{subject.Result("composer", "acme-in", "req-8472"), subject.Parts{Kind: subject.KindResult, Sender: "composer", Tenant: "acme-in", CaseID: "req-8472"}},
		{subject.Effect("acme-in", "8472"), subject.Parts{Kind: subject.KindEffect, Tenant: "acme-in", CaseID: "8472"}},
		{subject.EffectCap("acme-in"), subject.Parts{Kind: subject.KindEffect, Tenant: "acme-in", CaseID: "cap"}},
		{subject.Control("acme-in"), subject.Parts{Kind: subject.KindControl, Tenant: "acme-in"}},
		{subject.Reconcile("acme-in"), subject.Parts{Kind: subject.KindControl, Tenant: "acme-in"}},
		{subject.Report("refund-executor", "acme-in", "run-1"), subject.Parts{Kind: subject.KindReport, Sender: "refund-executor", Tenant: "acme-in", CaseID: "run-1"}},
		{subject.Due("acme-in", "req-8472"), subject.Parts{Kind: subject.KindDue, Tenant: "acme-in", CaseID: "req-8472"}},
		{subject.View("acme-in", "req-8472"), subject.Parts{Kind: subject.KindView, Tenant: "acme-in", CaseID: "req-8472"}},
		{subject.Delivery("acme-in", "req-8472"), subject.Parts{Kind: subject.KindDelivery, Tenant: "acme-in", CaseID: "req-8472"}},
		{subject.Endpoint("acme-in", "web"), subject.Parts{Kind: subject.KindEndpoint, Tenant: "acme-in", CaseID: "web"}},
		{subject.Dead("composer", "bad.tenant", ""), subject.Parts{Kind: subject.KindDead, Sender: "composer", Tenant: "none", CaseID: "none"}},
		{subject.Audit("console", "acme-in"), subject.Parts{Kind: subject.KindAudit, Sender: "console", Tenant: "acme-in"}},
	} {
		got, err := subject.Parse(c.s)
		if err != nil || got != c.want {
			t.Errorf("Parse(%q) = %+v, %v; want %+v", c.s, got, err, c.want)
		}
	}
}

// Bug B55: nothing but plain tokens becomes a subject.
func TestParseRefusesB55(t *testing.T) {
	for _, s := range []string{"", "case", "case.t", "case.t.c.x", "case.*.c", "case.t.>", "intake.gateway.t", "other.t.c", "case..c", "case.t.a b"} {
		if _, err := subject.Parse(s); !errors.Is(err, subject.ErrSubject) {
			t.Errorf("Parse(%q) = %v, want ErrSubject", s, err)
		}
	}
}

// The name of the stop for every tenant is no tenant's: whoever may stop the one
// would stop them all.
func TestNoTenantIsCalledAll(t *testing.T) {
	for _, tenant := range []string{subject.StopAll, "", "acme.>"} {
		if err := subject.CheckTenant("tenants", tenant); !errors.Is(err, ident.ErrToken) {
			t.Errorf("%q: %v", tenant, err)
		}
	}
	for _, tenant := range []string{"acme-in", "All", "all-of-us"} {
		if err := subject.CheckTenant("tenants", tenant); err != nil {
			t.Errorf("%q: %v", tenant, err)
		}
	}
}
