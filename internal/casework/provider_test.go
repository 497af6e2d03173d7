package casework_test

import (
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/amends-dev/amends/internal/casework"
	amendsv1 "github.com/amends-dev/amends/proto/amends/v1"
)

func (w *world) told(kind, object string) {
	w.tb.Helper()
	w.apply(w.input("gateway", &amendsv1.ProviderEvent{OrderId: "8472", Kind: kind, ObjectId: object}, nil))
}

// permutations gives every order of n things.
func permutations(n int) [][]int {
	if n == 0 {
		return [][]int{nil}
	}
	var out [][]int
	for _, p := range permutations(n - 1) {
		for at := range n {
			q := append(append(append([]int(nil), p[:at]...), n-1), p[at:]...)
			out = append(out, q)
		}
	}
	return out
}

// B11: whatever order the provider's events come in, all at once or with the
// desk's work between them, the case comes to the same end: it reads what is so.
func TestProviderEventsInEveryOrderB11(t *testing.T) {
	t.Parallel()
	events := [][2]string{{"capture.updated", "pay_8472_b"}, {"capture.settled", "pay_8472_b"}, {"refund.created", "rf_of_nobody"}, {"dispute.updated", "dp_1"}}
	var want *amendsv1.CaseRecord
	for _, order := range permutations(len(events)) {
		for _, slowly := range []bool{false, true} {
			w := newWorld(t, ledger8472(false))
			w.post(supported())
			w.settle()
			if got := casework.StateName(w.rec.GetState()); got != "HOLD_FOR_EVIDENCE" {
				t.Fatalf("the case is in %s", got)
			}
			w.ledger = ledger8472(true)
			for _, i := range order {
				w.told(events[i][0], events[i][1])
				if slowly {
					w.settle()
				}
			}
			w.settle()
			w.apply(w.decision(amendsv1.Verdict_VERDICT_APPROVE, "maya", "apr-8472-1", true))
			w.settle()
			got := w.rec
			if want == nil {
				want = got
			}
			if casework.StateName(got.GetState()) != "VERIFIED_CLOSED" || len(got.GetEffect().GetRefunds()) != 1 ||
				!proto.Equal(got.GetAction().GetRefunds()[0], want.GetAction().GetRefunds()[0]) ||
				got.GetEffect().GetRefunds()[0].GetIdempotencyKey() != want.GetEffect().GetRefunds()[0].GetIdempotencyKey() ||
				len(got.GetReplies()) != len(want.GetReplies()) {
				t.Errorf("order %v, slowly %t: ended %s with %v and %d replies", order, slowly, casework.StateName(got.GetState()), got.GetEffect().GetRefunds(), len(got.GetReplies()))
			}
		}
	}
}

// B08: news of a refund, again and late, change nothing of a finished case; it
// has its own refund read again, once at a time.
func TestLateNewsOfARefundB08(t *testing.T) {
	t.Parallel()
	w := newWorld(t, ledger8472(true))
	w.post(supported())
	w.settle()
	w.apply(w.decision(amendsv1.Verdict_VERDICT_APPROVE, "maya", "apr-8472-1", true))
	w.settle()
	before := proto.CloneOf(w.rec)
	for _, e := range [][2]string{{"refund.updated", "rf_5521"}, {"refund.created", "rf_5000"}, {"refund.updated", "rf_5521"}, {"refund.failed", "rf_5000"}} {
		w.told(e[0], e[1])
	}
	if w.rec.GetState() != before.GetState() || !proto.Equal(w.rec.GetEffect(), before.GetEffect()) || len(w.rec.GetReplies()) != len(before.GetReplies()) || len(w.tasks()) != 1 {
		t.Errorf("the case is %s with %v and %d tasks", casework.StateName(w.rec.GetState()), w.rec.GetEffect(), len(w.tasks()))
	}
	for _, e := range w.rec.GetTimeline()[len(before.GetTimeline()):] {
		if e.GetRow() != "input.refused" && e.GetRow() != "refund.news" {
			t.Errorf("row %s", e.GetRow())
		}
	}
}
