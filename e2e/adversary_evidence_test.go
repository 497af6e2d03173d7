package e2e_test

import (
	"bytes"
	"fmt"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/amends-dev/amends/internal/allinone"
	"github.com/amends-dev/amends/internal/deskapi"
	"github.com/amends-dev/amends/internal/deskclient"
	"github.com/amends-dev/amends/internal/roles"
	"github.com/amends-dev/amends/internal/sandbox"
	"github.com/amends-dev/amends/internal/subject"
)

// evidenceAttempts: somebody with the investigator's credential reports two
// payments where there was one, in evidence that is well-formed to the last
// call id. The desk believes it, and so do people; the executor reads the order
// for itself.
func evidenceAttempts() []attempt {
	as := string(roles.PaymentInvestigator)
	return []attempt{
		{as, "invents a duplicate below the threshold", func(s *siege) string { return s.invent("9101", "9102", 50000) }, "order_not_overpaid, the case HUMAN_HANDOFF"},
		{as, "invents a duplicate that a deceived approver signs for", func(s *siege) string { return s.invent("9103", "9104", 200000) }, "order_not_overpaid, the case HUMAN_HANDOFF"},
	}
}

// invent has the desk look into order model, which was paid twice, and answers
// for the investigator about order once, which was not, with that evidence.
func (s *siege) invent(model, once string, minor int64) string {
	s.t.Helper()
	s.paid(model, minor, 2)
	s.paid(once, minor, 1, func(l *sandbox.Ledger) { l.Captures[0].PaymentID = "pay_" + once + "_b" }) // the invented one is a
	auditor, err := s.Auditor()
	if err != nil {
		s.t.Fatal(err)
	}
	defer auditor.Close()
	hold := func(held bool) {
		if err := auditor.Hold(s.ctx, roles.TaskConsumer(roles.PaymentInvestigator), held); err != nil {
			s.t.Fatal(err)
		}
	}
	ask := func(order string) string {
		id := "req-" + order
		if _, err := s.gateway.Post(s.ctx, deskclient.Post{Key: id, CaseID: id, Message: "Order " + order + " was charged twice, please refund one."}); err != nil {
			s.t.Fatal(err)
		}
		return id
	}
	genuine := s.evidence(ask(model))
	hold(true)
	defer hold(false)
	id := ask(once)
	s.until(id, 0, in("INVESTIGATING"))
	s.steal(roles.PaymentInvestigator).put(subject.Result(string(roles.PaymentInvestigator), allinone.Tenant, id), bytes.ReplaceAll(genuine, []byte(model), []byte(once)))
	if minor >= approvalFrom {
		waiting := s.until(id, 0, in("AWAITING_APPROVAL"))
		_, a, err := s.staff.Action(s.ctx, allinone.Tenant, id, waiting.Version)
		if err != nil {
			s.t.Fatal(err)
		}
		if _, err := s.staff.Decide(s.ctx, s.decision("maya-1", a, 1)); err != nil {
			s.t.Fatal(err)
		}
	}
	v := s.until(id, 0, in("HUMAN_HANDOFF"))
	var got string
	s.await("the executor's answer to "+id, func() bool {
		for _, all := range s.answers {
			if all[0].GetCaseId() == id {
				got = said(all[0])
			}
		}
		return got != ""
	})
	return fmt.Sprintf("%s, the case %s", got, v.State)
}

// evidence gives the investigator's result about a case as it was on the wire.
func (s *siege) evidence(caseID string) (found []byte) {
	s.t.Helper()
	want := subject.Result(string(roles.PaymentInvestigator), allinone.Tenant, caseID)
	s.until(caseID, 0, func(v deskapi.View) bool { return v.State != "RECEIVED" && v.State != "INVESTIGATING" })
	s.read(roles.StreamResults, func(m jetstream.Msg) {
		if m.Subject() == want {
			found = m.Data()
		}
	})
	return found
}
