package executor

import (
	"fmt"
	"slices"
	"strings"
	"sync"

	amendsv1 "github.com/amends-dev/amends/proto/amends/v1"
	"github.com/amends-dev/amends/services/refund-executor/ledger"
	"github.com/amends-dev/amends/services/refund-executor/provider"
)

// What a schedule can meet.
const (
	sawRefund           = "a refund was made"
	sawSeveral          = "two or more refunds were made"
	sawTwoCases         = "two cases made refunds"
	sawManyInAction     = "an action of several refunds"
	sawPartial          = "part of a capture was refunded"
	sawGoodwill         = "goodwill below the total"
	sawUnapproved       = "refunded below the caps, approved by nobody"
	sawTwoApprovers     = "two people approved"
	sawCrashAfterCommit = "killed between the provider's commit and its answer"
	sawCrashBeforeCall  = "killed between the intent and the call"
	sawLostAnswer       = "an answer of the provider lost"
	sawLate             = "a call that arrived late"
	sawLostAck          = "a write whose acknowledgement was lost"
	sawLostResult       = "a result lost"
	sawDuplicate        = "a task handed out twice"
	sawTwoAtOnce        = "two executors at work for one case"
	sawCompeting        = "executors at work for two cases at once"
	sawRefusedCapture   = "refused: another refund took the capture"
	sawRefusedOrder     = "refused: another refund took the excess"
	sawRefusedSlices    = "refused: nobody approved the sum of the slices"
	sawRefusedCap       = "refused by a cap"
	sawDeclined         = "refused by the provider"
	sawCancelWon        = "withdrawn before it was begun"
	sawCancelLost       = "withdrawn after it was begun"
	sawHeld             = "held by a stop"
	sawExpired          = "an approval expired before the case used it"
	sawActionExpired    = "an action expired on its way to the executor"
	sawDenied           = "denied"
	sawPaused           = "time passed over an executor at work"
	sawCallWindow       = "a call that came too late after its intent"
	sawKeyWindow        = "in doubt when the provider forgot the key"
	sawNoKeys           = "in doubt at a provider that keeps no keys"
	sawUndecidable      = "undecidable"
	sawUnknown          = "outcome unknown"
	sawByHand           = "a refund made by hand"
	sawFailedLater      = "a refund that failed later"
	sawDeadLetter       = "a task that used up its deliveries"
	sawConfirmed        = "a refund read again after the provider's news"
	sawSettled          = "a doubt settled by a custodian"
	sawNotSettled       = "a custodian's answer that cannot be so"
	sawProvenAbsent     = "a refund in doubt proven absent"
	sawBalance          = "provider, ledger and cases were expected to balance"
	sawLeftToSweep      = "a refund that only the sweep finds"
)

// classes are all of them; a long run meets each.
var classes = []string{
	sawRefund, sawSeveral, sawTwoCases, sawManyInAction, sawPartial, sawGoodwill, sawUnapproved, sawTwoApprovers,
	sawCrashAfterCommit, sawCrashBeforeCall, sawLostAnswer, sawLate, sawLostAck, sawLostResult, sawDuplicate, sawTwoAtOnce, sawCompeting,
	sawRefusedCapture, sawRefusedOrder, sawRefusedSlices, sawRefusedCap, sawDeclined, sawCancelWon, sawCancelLost, sawHeld, sawExpired, sawActionExpired, sawDenied,
	sawPaused, sawCallWindow, sawKeyWindow, sawNoKeys, sawUndecidable, sawUnknown, sawByHand, sawFailedLater, sawDeadLetter,
	sawConfirmed, sawSettled, sawNotSettled, sawProvenAbsent, sawBalance,
}

// rare are those that a long run may miss.
var rare = []string{sawLeftToSweep}

var sawReasons = map[string]string{
	ledger.ReasonExceedsCaptured: sawRefusedCapture, ledger.ReasonNotOverpaid: sawRefusedOrder, ledger.ReasonApprovalMissing: sawRefusedSlices,
	ledger.ReasonCapRefund: sawRefusedCap, ledger.ReasonCapOrder: sawRefusedCap, ledger.ReasonCapHour: sawRefusedCap, ledger.ReasonCapDay: sawRefusedCap,
	"card_closed": sawDeclined, ledger.ReasonActionExpired: sawActionExpired, "approval_expired": sawActionExpired,
	ledger.ReasonProvenAbsent: sawProvenAbsent, ledger.ReasonSettledAbsent: sawSettled,
	reasonCallWindow: sawCallWindow, provider.ReasonWithdrawn: sawCallWindow, reasonNoKeys: sawNoKeys,
}

var sawClasses = map[amendsv1.EffectClass]string{
	amendsv1.EffectClass_EFFECT_CLASS_HELD: sawHeld, amendsv1.EffectClass_EFFECT_CLASS_UNDECIDABLE: sawUndecidable, amendsv1.EffectClass_EFFECT_CLASS_UNKNOWN: sawUnknown,
	amendsv1.EffectClass_EFFECT_CLASS_NOT_BEGUN: sawCancelWon,
}

var sawRows = map[string]string{
	"denied": sawDenied, "approval.expired": sawExpired, "approval.expired.none_left": sawExpired, "approved.one_more": sawTwoApprovers,
	"refund.confirmed": sawConfirmed, "refund.failed_later": sawConfirmed, "settle.failed": sawNotSettled,
}

func (w *world) sawAnswer(r *amendsv1.EffectResult) {
	for _, name := range []string{sawReasons[r.GetReason()], sawClasses[r.GetClass()]} {
		if name != "" {
			w.saw[name] = true
		}
	}
	for _, one := range r.GetRefunds() {
		if one.GetOutcome().GetSettledBy() != "" {
			w.saw[sawSettled] = true
		}
	}
}

func (w *world) sawRow(row string) {
	if name := sawRows[row]; name != "" {
		w.saw[name] = true
	}
}

// sawRefunds looks at what was made in the end.
func (w *world) sawRefunds() {
	cases, actions := map[string]bool{}, map[string]int{}
	n := 0
	for _, f := range w.facts {
		if f.kind != refundMade {
			continue
		}
		n++
		w.saw[sawRefund] = true
		parts := strings.Split(f.refund.GetReference(), ":")
		if m := w.matter(parts[min(1, len(parts)-1)]); m != nil {
			cases[m.id] = true
			actions[m.id]++
			w.saw[sawManyInAction] = w.saw[sawManyInAction] || len(m.rec.GetAction().GetRefunds()) > 1
			w.saw[sawCancelLost] = w.saw[sawCancelLost] || m.rec.GetCancelRevision() > 0
		}
		for _, c := range w.order.order.Captures {
			if c.GetPaymentId() == f.refund.GetPaymentId() && f.refund.GetAmount().GetMinor() < c.GetAmount().GetMinor() {
				w.saw[sawPartial] = true
			}
		}
	}
	w.saw[sawSeveral] = n > 1
	w.saw[sawTwoCases] = len(cases) > 1
}

// tally counts the schedules that met each class.
type tally struct {
	mu        sync.Mutex
	schedules int
	met       map[string]int
}

func (t *tally) add(saw map[string]bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.met == nil {
		t.met = map[string]int{}
	}
	t.schedules++
	for name, yes := range saw {
		if yes {
			t.met[name]++
		}
	}
}

func (t *tally) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d schedules, of which so many met\n", t.schedules)
	for _, name := range append(slices.Clone(classes), rare...) {
		fmt.Fprintf(&b, "%8d  %s\n", t.met[name], name)
	}
	return b.String()
}

// unmet gives the classes that no schedule met.
func (t *tally) unmet() []string {
	return slices.DeleteFunc(slices.Clone(classes), func(name string) bool { return t.met[name] > 0 })
}
