package providertest

import (
	"google.golang.org/protobuf/proto"

	amendsv1 "github.com/amends-dev/amends/proto/amends/v1"
	"github.com/amends-dev/amends/services/refund-executor/provider"
)

// Dead reports whether a refund with this status moves no money.
func Dead(s amendsv1.RefundStatus) bool {
	return s == amendsv1.RefundStatus_REFUND_STATUS_FAILED || s == amendsv1.RefundStatus_REFUND_STATUS_CANCELED
}

func clone(o provider.Order) provider.Order {
	out := provider.Order{Order: proto.CloneOf(o.Order)}
	for _, c := range o.Captures {
		out.Captures = append(out.Captures, proto.CloneOf(c))
	}
	for _, r := range o.Refunds {
		out.Refunds = append(out.Refunds, proto.CloneOf(r))
	}
	for _, d := range o.Disputes {
		out.Disputes = append(out.Disputes, proto.CloneOf(d))
	}
	return out
}

func acknowledged(r *amendsv1.Refund, replayed bool) provider.Outcome {
	return provider.Outcome{Class: amendsv1.EffectClass_EFFECT_CLASS_ACKNOWLEDGED, RefundID: r.GetRefundId(), Status: r.GetStatus(), Replayed: replayed}
}

func refusal(reason string) provider.Outcome {
	return provider.Outcome{Class: amendsv1.EffectClass_EFFECT_CLASS_REFUSED, Reason: reason}
}

func none(reason string) provider.Outcome {
	return provider.Outcome{Class: amendsv1.EffectClass_EFFECT_CLASS_NO_EFFECT, Reason: reason}
}

func lost(reason string) provider.Outcome {
	return provider.Outcome{Class: amendsv1.EffectClass_EFFECT_CLASS_UNKNOWN, Reason: reason}
}
