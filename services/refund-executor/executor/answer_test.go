package executor

import (
	"testing"

	"google.golang.org/protobuf/proto"

	amendsv1 "github.com/amends-dev/amends/proto/amends/v1"
)

// A repeated answer is the same message, which the case takes once; one that
// knows more of a refund is a new one, or the case would never hear of it
// (MONEY-3).
func TestAnAnswerThatKnowsMoreIsANewMessageMONEY3(t *testing.T) {
	t.Parallel()
	refund := func(o *amendsv1.EffectOutcome) *amendsv1.EffectResult {
		return &amendsv1.EffectResult{Class: held, Reason: reasonStopped, Refunds: []*amendsv1.RefundResult{{IdempotencyKey: ourKey, Outcome: o}}}
	}
	answers := []proto.Message{
		&amendsv1.EffectResult{Class: held, Reason: reasonStopped},
		refund(&amendsv1.EffectOutcome{Class: unknown, Reason: "outcome_open"}),
		refund(&amendsv1.EffectOutcome{Class: noEffect, Reason: reasonStopped}),
		refund(&amendsv1.EffectOutcome{Class: acknowledged, RefundId: "rf_5521", ProviderStatus: amendsv1.RefundStatus_REFUND_STATUS_PENDING}),
		refund(&amendsv1.EffectOutcome{Class: acknowledged, RefundId: "rf_5521", ProviderStatus: amendsv1.RefundStatus_REFUND_STATUS_FAILED}),
		&amendsv1.TaskError{Reason: reasonExpired},
	}
	for i, a := range answers {
		for j, b := range answers {
			if same := said(a) == said(proto.Clone(b)); same != (i == j) {
				t.Errorf("answers %d and %d are the same message: %t", i, j, same)
			}
		}
	}
}
