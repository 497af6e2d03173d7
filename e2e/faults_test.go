package e2e_test

import (
	"testing"
	"time"

	"github.com/amends-dev/amends/internal/allinone"
	"github.com/amends-dev/amends/internal/sandbox"
	amendsv1 "github.com/amends-dev/amends/proto/amends/v1"
)

// B01, MONEY-1: the provider refunds and its answer is lost, or it says that it
// failed when it did not; also where it keeps no keys, so that a repeat would
// be a second refund. One refund, and the case closes.
func TestLostAnswerIsOneRefundB01(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		options allinone.Options
		fault   sandbox.Fault
	}{
		"answer lost":          {allinone.Options{}, sandbox.Fault{Kind: sandbox.AnswerLost, Times: 1, Payment: "pay_8472_b"}},
		"error after":          {allinone.Options{}, sandbox.Fault{Kind: sandbox.ErrorAfter, Code: 502, Times: 1}},
		"answer lost, no keys": {allinone.Options{NoProviderKeys: true}, sandbox.Fault{Kind: sandbox.AnswerLost, Times: 1}},
		"keys forgotten":       {allinone.Options{KeyWindow: time.Nanosecond}, sandbox.Fault{Kind: sandbox.AnswerLost, Times: 1}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := start(t, c.options)
			w.orders(1, true)
			w.faults(c.fault)
			if err := w.post(0); err != nil {
				t.Fatal(err)
			}
			v, err := w.finish(0, closed)
			if err != nil {
				t.Fatal(err)
			}
			if r := w.refunds(); v.State != "VERIFIED_CLOSED" || len(r) != 1 {
				t.Errorf("ended %s with refunds %+v", v.State, r)
			}
			if f := w.Faults(); f[0].Struck != 1 {
				t.Errorf("faults %v", f)
			}
			w.sound(1, amendsv1.CaseState_CASE_STATE_VERIFIED_CLOSED)
		})
	}
}
