package composer

import (
	"context"
	"log/slog"
	"testing"

	"github.com/amends-dev/amends/internal/bus"
	"github.com/amends-dev/amends/internal/bus/bustest"
	"github.com/amends-dev/amends/internal/evidence"
	"github.com/amends-dev/amends/internal/roles"
	"github.com/amends-dev/amends/internal/taskwork/taskworktest"
	amendsv1 "github.com/amends-dev/amends/proto/amends/v1"
)

func TestDraftsOverTheBus(t *testing.T) {
	t.Parallel()
	d := taskworktest.Start(t, roles.Composer, bustest.Options{}, func(ctx context.Context, conn *bus.Conn) error {
		return Run(ctx, Defaults(), Deps{Bus: conn, Log: slog.New(slog.DiscardHandler)})
	})
	kind := amendsv1.ReplyKind_REPLY_KIND_REFUNDED
	facts := []*amendsv1.Claim{refund("rf_5521", 200000, amendsv1.RefundStatus_REFUND_STATUS_PENDING)}
	hash := evidence.ClaimsSHA256(kind, facts)
	task := func(facts ...*amendsv1.Claim) *amendsv1.TaskAssign {
		return &amendsv1.TaskAssign{
			Contract: d.Contract(amendsv1.Slice_SLICE_COMPOSE),
			Input:    &amendsv1.TaskAssign_Compose{Compose: &amendsv1.ComposeSlice{Kind: kind, Facts: facts, FactsSha256: hash, OrderId: "8472"}},
		}
	}
	d.Assign(task(facts...))
	got := taskworktest.Answer[*amendsv1.Draft](d)
	if want := "About order 8472: A refund of ₹2,000.00 (reference rf_5521) has been requested and is pending at the bank."; got.GetText() != want || got.GetFactsSha256() != hash {
		t.Errorf("draft %v", got)
	}
	d.Assign(task(claim(amendsv1.ClaimKind_CLAIM_KIND_PAYMENTS_FOUND)))
	if e := taskworktest.Answer[*amendsv1.TaskError](d); e.GetReason() != reasonClaimUnknown || e.GetRetryable() {
		t.Errorf("an incomplete fact: %v", e)
	}
}

func TestConfig(t *testing.T) {
	t.Parallel()
	if err := Defaults().Validate(); err != nil {
		t.Error(err)
	}
	if (Config{}).Validate() == nil {
		t.Error("no workers accepted")
	}
}
