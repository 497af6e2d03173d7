package e2e_test

import (
	"math"
	"time"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/amends-dev/amends/internal/approval"
	"github.com/amends-dev/amends/internal/money"
	"github.com/amends-dev/amends/internal/sandbox"
	"github.com/amends-dev/amends/internal/subject"
	amendsv1 "github.com/amends-dev/amends/proto/amends/v1"
)

// unsigned sends an action on a small duplicate after a change, unapproved.
func unsigned(change func(*siege, *amendsv1.ActionRecord)) func(*siege) string {
	return func(s *siege) string {
		a := s.twice(50000)
		change(s, a)
		return s.order(a)
	}
}

// contracted sends a small duplicate whose contract or envelope was changed.
func contracted(change func(*siege, *amendsv1.Envelope, *amendsv1.TaskAssign)) func(*siege) string {
	return func(s *siege) string {
		a := s.twice(50000)
		env, assign := s.taskOf(a, executing(a))
		change(s, env, assign)
		return s.ask(env, assign)
	}
}

// spliced sends an approved duplicate of 2,000.00 with bytes after the action's
// own: what a lenient reader would merge into it.
func spliced(more func(a *amendsv1.ActionRecord) []byte) func(*siege) string {
	return func(s *siege) string {
		order := s.fresh()
		s.paid(order, 2000000, 2)
		a := s.wants(order, 200000)
		env, assign := s.taskOf(a, executing(a, s.decision("maya-1", a, 1)))
		execute := field(nil, 1, append(must(a), more(a)...)) // ExecuteOrder.action
		execute = field(execute, 2, must(assign.GetExecute().GetApprovals()[0]))
		task := field(nil, 1, must(assign.GetContract())) // TaskAssign.contract
		return s.askRaw(env, field(task, 6, execute))
	}
}

func field(b []byte, n protowire.Number, value []byte) []byte {
	return protowire.AppendBytes(protowire.AppendTag(b, n, protowire.BytesType), value)
}

// must encodes what always can be.
func must(m proto.Message) []byte {
	data, err := proto.Marshal(m)
	if err != nil {
		panic(err)
	}
	return data
}

func varint(n protowire.Number, v uint64) []byte {
	return protowire.AppendVarint(protowire.AppendTag(nil, n, protowire.VarintType), v)
}

// formAttempts: what is left out, overflows, is in another currency, or can be
// read in two ways.
func formAttempts() []attempt {
	yen := func(l *sandbox.Ledger) {
		l.Orders[0].Currency = "JPY"
		for i := range l.Captures {
			l.Captures[i].Currency = "JPY"
		}
	}
	inYen := func(minor int64, action string, key string) func(*siege) string {
		return func(s *siege) string {
			order := s.fresh()
			s.paid(order, minor, 2, yen)
			a := s.wants(order, minor)
			a.Refunds[0].Amount.Currency = action
			if key == "" {
				return s.order(a)
			}
			return s.order(a, s.decision(key, a, 1))
		}
	}
	return []attempt{
		{asOrchestrator, "yen without a person", inYen(500, "JPY", ""), "approval_missing"},
		{asOrchestrator, "99,999 yen as if 999.99 rupees, unapproved", inYen(99999, "INR", ""), "currency_mismatch"},
		{asOrchestrator, "rupees approved on a yen order", inYen(200000, "INR", "maya-1"), "currency_mismatch"},
		{asOrchestrator, "control: yen with a person", inYen(500, "JPY", "maya-1"), "acknowledged"},
		{asOrchestrator, "a currency in small letters", unsigned(func(_ *siege, a *amendsv1.ActionRecord) { a.Refunds[0].Amount.Currency = "inr" }), "action_malformed"},
		{asOrchestrator, "no amount", unsigned(func(_ *siege, a *amendsv1.ActionRecord) { a.Refunds[0].Amount = nil }), "schema_invalid"},
		{asOrchestrator, "nothing", unsigned(func(_ *siege, a *amendsv1.ActionRecord) { a.Refunds[0].Amount.Minor = 0 }), "schema_invalid"},
		{asOrchestrator, "less than nothing", unsigned(func(_ *siege, a *amendsv1.ActionRecord) { a.Refunds[0].Amount.Minor = -50000 }), "schema_invalid"},
		{asOrchestrator, "more than an int64 adds up to", unsigned(func(s *siege, a *amendsv1.ActionRecord) {
			a.Refunds = s.wants(a.GetOrderId(), math.MaxInt64, "a", "b").GetRefunds()
		}), "action_malformed"},
		{asOrchestrator, "the largest amount there is", unsigned(func(_ *siege, a *amendsv1.ActionRecord) { a.Refunds[0].Amount.Minor = math.MaxInt64 }), "approval_missing"},
		{asOrchestrator, "no expiry", unsigned(func(_ *siege, a *amendsv1.ActionRecord) { a.Expires = nil }), "schema_invalid"},
		{asOrchestrator, "no evidence", unsigned(func(_ *siege, a *amendsv1.ActionRecord) { a.EvidenceSha256 = "" }), "schema_invalid"},
		{asOrchestrator, "no proposal", unsigned(func(_ *siege, a *amendsv1.ActionRecord) { a.Proposal = 0 }), "schema_invalid"},
		{asOrchestrator, "evidence that is no hash", unsigned(func(_ *siege, a *amendsv1.ActionRecord) {
			a.EvidenceSha256 = "case=x\nproposal=1\norder=8472\nrefund=pay INR 1 x x\nxxxxxxxxxxxxxxxx"[:64]
		}), "action_malformed"},
		{asOrchestrator, "two refunds of one payment", unsigned(func(_ *siege, a *amendsv1.ActionRecord) { a.Refunds = append(a.Refunds, a.Refunds[0]) }), "action_malformed"},
		{asOrchestrator, "the key of another case", unsigned(func(_ *siege, a *amendsv1.ActionRecord) {
			a.Refunds[0].IdempotencyKey = approval.Key("req-other", a.GetRefunds()[0].GetPaymentId())
		}), "action_malformed"},
		{asOrchestrator, "a look-alike letter in the order", unsigned(func(_ *siege, a *amendsv1.ActionRecord) { a.OrderId = "\u0430" + a.GetOrderId()[1:] }), "action_malformed"},
		{asOrchestrator, "a line end in the kind", unsigned(func(_ *siege, a *amendsv1.ActionRecord) { a.Refunds[0].Kind = "x\nproposed-by=sam" }), "action_malformed"},
		{asOrchestrator, "the cap window as an order", unsigned(func(_ *siege, a *amendsv1.ActionRecord) { a.OrderId = subject.CapKey }), "reserved_order"},
		{asOrchestrator, "an order that is not there", unsigned(func(_ *siege, a *amendsv1.ActionRecord) { a.OrderId += "x" }), "order_unknown"},
		{asOrchestrator, "another tenant's order as ours", unsigned(func(s *siege, a *amendsv1.ActionRecord) {
			s.foreign(a.GetOrderId()+"x", 50000)
			a.OrderId += "x"
			a.Refunds[0].PaymentId = "pay_" + a.GetOrderId() + "_b"
			rekey(a)
		}), "order_unknown"},
		{asOrchestrator, "another order's payment", unsigned(func(s *siege, a *amendsv1.ActionRecord) {
			a.Refunds[0].PaymentId = s.twice(50000).GetRefunds()[0].GetPaymentId()
			rekey(a)
		}), "payment_unknown"},
		{asOrchestrator, "an order that was paid once", func(s *siege) string {
			order := s.fresh()
			s.paid(order, 50000, 1)
			return s.order(s.wants(order, 50000, "a"))
		}, "order_not_overpaid"},
		{asOrchestrator, "goodwill without a person", func(s *siege) string {
			order := s.fresh()
			s.paid(order, 50000, 1)
			a := s.wants(order, 50000, "a")
			a.Refunds[0].Kind = approval.KindGoodwill
			return s.order(a)
		}, "order_not_overpaid"},
		{asOrchestrator, "a contract that has expired", contracted(func(s *siege, _ *amendsv1.Envelope, t *amendsv1.TaskAssign) {
			t.Contract.Expires = timestamppb.New(s.clock.Now().Add(-time.Second))
		}), "contract_expired"},
		{asOrchestrator, "a task past its deadline", contracted(func(s *siege, env *amendsv1.Envelope, _ *amendsv1.TaskAssign) {
			env.Deadline = timestamppb.New(s.clock.Now().Add(-time.Second))
		}), "deadline_passed"},
		{asOrchestrator, "a contract for somebody else", contracted(func(_ *siege, _ *amendsv1.Envelope, t *amendsv1.TaskAssign) { t.Contract.Target = "verifier" }), "target_mismatch"},
		{asOrchestrator, "a contract to cancel", contracted(func(_ *siege, _ *amendsv1.Envelope, t *amendsv1.TaskAssign) {
			t.Contract.Slice = amendsv1.Slice_SLICE_CANCEL
		}), "slice_mismatch"},
		{asOrchestrator, "a contract about another order", contracted(func(_ *siege, _ *amendsv1.Envelope, t *amendsv1.TaskAssign) { t.Contract.Scope.OrderId = "8472" }), "scope_denied"},
		{asOrchestrator, "an action of another tenant", contracted(func(_ *siege, _ *amendsv1.Envelope, t *amendsv1.TaskAssign) {
			t.GetExecute().Action.Tenant = otherTenant
		}), "scope_denied"},
		{asOrchestrator, "in the executor's own name", contracted(func(_ *siege, env *amendsv1.Envelope, _ *amendsv1.TaskAssign) { env.Sender = "refund-executor" }), "sender_forged"},
		{asOrchestrator, "in the console's name", contracted(func(_ *siege, env *amendsv1.Envelope, _ *amendsv1.TaskAssign) { env.Sender = asConsole }), "sender_forged"},
		{asOrchestrator, "a version nobody speaks", contracted(func(_ *siege, env *amendsv1.Envelope, _ *amendsv1.TaskAssign) { env.SchemaVersion = "2.0" }), "version_unknown"},
		{asBoth, "the amount given twice, the second ten times as much", func(s *siege) string {
			order := s.fresh()
			s.paid(order, 2000000, 2)
			a := s.wants(order, 200000)
			d := s.decision("maya-1", a, 1)
			refund := append(must(a.GetRefunds()[0]), field(nil, 2, varint(1, 2000000))...) // merged: the last one counts
			a.Refunds = nil
			env, assign := s.taskOf(a, executing(a, d))
			execute := field(nil, 1, append(must(a), field(nil, 4, refund)...))
			return s.askRaw(env, field(field(nil, 1, must(assign.GetContract())), 6, field(execute, 2, must(d))))
		}, "action_mismatch"},
		{asBoth, "a second refund after the action's end", spliced(func(a *amendsv1.ActionRecord) []byte {
			r := amendsv1.ActionRefund{PaymentId: "pay_" + a.GetOrderId() + "_c", Amount: money.New(2000000, "INR"), Kind: approval.KindDuplicate}
			r.IdempotencyKey = approval.Key(a.GetCaseId(), r.GetPaymentId())
			return field(nil, 4, must(&r))
		}), "action_mismatch"},
		{asBoth, "a second case id after the action's end", spliced(func(*amendsv1.ActionRecord) []byte { return field(nil, 2, []byte("req-other")) }), "scope_denied"},
		{asBoth, "a second proposal after the action's end", spliced(func(*amendsv1.ActionRecord) []byte { return varint(9, 2) }), "action_mismatch"},
		{asBoth, "a second expiry after the action's end", spliced(func(a *amendsv1.ActionRecord) []byte {
			return field(nil, 8, must(timestamppb.New(a.GetExpires().AsTime().Add(time.Hour))))
		}), "action_mismatch"},
		{asBoth, "fields nobody knows: the action is what was approved", spliced(func(*amendsv1.ActionRecord) []byte { return append(varint(900, 2000000), varint(2<<20, 1)...) }), "acknowledged"},
		{asBoth, "bytes that are no message", func(s *siege) string {
			a := s.twice(50000)
			env, _ := s.taskOf(a, executing(a))
			return s.askRaw(env, []byte{0xff, 0xff, 0xff})
		}, "undecodable"},
	}
}
