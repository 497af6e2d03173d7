package e2e_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"text/tabwriter"

	"github.com/amends-dev/amends/internal/roles"
)

// attempt is one thing somebody with stolen credentials tries, and what has to
// come of it: a reason code, a class, or the broker's refusal.
type attempt struct {
	as, attack string
	do         func(*siege) string
	want       string
}

// Who is played: the orchestrator's credential commands the executor, the
// console's relays decisions and turns the stop switch.
const (
	asOrchestrator = string(roles.Orchestrator)
	asConsole      = string(roles.Console)
	asBoth         = "orchestrator + console"
)

// AUTH-2, MONEY-1, MONEY-2, MONEY-4: whoever holds the broker credential of the
// asOrchestrator, of the console, of both, or of any other service but the
// executor, gets no refund at or above the threshold without an approver's own
// signature under exactly that action, and below it no more than the executor's
// caps. What the provider holds in the end is judged apart from all the code
// that let it through.
func TestStolenCredentialsMoveNoMoneyAUTH2(t *testing.T) {
	t.Parallel()
	s := besiege(t)
	t.Cleanup(s.table)
	for _, rows := range [][]attempt{
		brokerAttempts(), approvalAttempts(), peopleAttempts(), formAttempts(), replayAttempts(), settleAttempts(), caseAttempts(), evidenceAttempts(), stopAttempts(), sliceAttempts(),
	} {
		for _, a := range rows {
			s.run(a)
		}
	}
	s.emptyTheCaps()
	s.verdict()
}

func (s *siege) run(a attempt) {
	s.t.Helper()
	got := a.do(s)
	if got != a.want {
		s.t.Errorf("%s, %s: %q, want %q", a.as, a.attack, got, a.want)
	}
	s.attempts = append(s.attempts, outcome{a.as, a.attack, got, a.want})
}

// table prints what was tried.
func (s *siege) table() {
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "ATTACK\tOUTCOME\tCREDENTIAL")
	rows := slices.Clone(s.attempts)
	for i, o := range rows {
		if o.got != o.want {
			o.got += " (want " + o.want + ")"
		}
		if i+1 < len(rows) && rows[i+1].attack == o.attack && rows[i+1].got == o.got && o.got == denied {
			rows[i+1].as = o.as + ", " + rows[i+1].as
			continue
		}
		fmt.Fprintf(w, "%s\t%s\t%s\n", o.attack, o.got, o.as)
	}
	if err := w.Flush(); err != nil {
		s.t.Error(err)
	}
	s.t.Logf("%d attempts\n%s", len(s.attempts), b.String())
}
