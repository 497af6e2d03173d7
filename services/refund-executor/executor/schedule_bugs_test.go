package executor

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	amendsv1 "github.com/amends-dev/amends/proto/amends/v1"
	"github.com/amends-dev/amends/services/refund-executor/effectstore"
	"github.com/amends-dev/amends/services/refund-executor/provider"
)

// bug is a fault planted into the world, to see that the judge finds it.
type bug struct {
	name string
	// from is the seed the hunt begins with: rare ones are found soon.
	from uint64
	// breaks are the invariants that it may break, one of which is found first.
	breaks   []string
	terms    func(*terms)
	store    func(w *world, s effectstore.Store) effectstore.Store
	provider func(w *world, p provider.Provider) provider.Provider
	config   func(*Config)
	answer   func(proto.Message)
}

// maxHunt is how many schedules a planted bug may survive.
const maxHunt = 3000

// The check can fail: each bug that is planted into the world is found, as
// a breach of an invariant that it breaks.
func TestSchedulesFindPlantedBugs(t *testing.T) {
	t.Parallel()
	for _, b := range bugs {
		t.Run(b.name, func(t *testing.T) {
			t.Parallel()
			for n := range uint64(maxHunt) {
				seed := b.from + n
				w := runSchedule(newRandom(seed), b)
				if w.broken == nil {
					continue
				}
				for _, name := range b.breaks {
					if w.broken.invariant == name {
						t.Logf("schedule %d: %s: %s", seed, w.broken.invariant, w.broken.detail)
						return
					}
				}
				t.Fatalf("schedule %d: %s: %s, want %v\n%s", seed, w.broken.invariant, w.broken.detail, b.breaks, w.tale())
			}
			t.Fatalf("not found in %d schedules", maxHunt)
		})
	}
}

var bugs = []bug{
	{
		name: "a store without compare-and-set", breaks: []string{"MONEY-1", "MONEY-2", "MONEY-3", "MONEY-4", "TRUTH-2"},
		store: func(w *world, s effectstore.Store) effectstore.Store { return overwriting{s, w} },
	},
	{
		name: "an intent that is not kept", breaks: []string{"MONEY-2"},
		store: func(_ *world, s effectstore.Store) effectstore.Store { return forgetful{s} },
	},
	{
		name: "a withdrawal that leaves no tombstone", breaks: []string{"MONEY-3"},
		store: func(_ *world, s effectstore.Store) effectstore.Store { return unmarked{s} },
	},
	{
		name: "caps that are forgotten", breaks: []string{"AUTH-2"},
		terms: func(t *terms) { t.small() },
		store: func(_ *world, s effectstore.Store) effectstore.Store { return uncapped{s} },
	},
	{
		name: "a stop that nobody sees", breaks: []string{"STOP"},
		store: func(_ *world, s effectstore.Store) effectstore.Store { return unstoppable{s} },
	},
	{
		name: "limits far too high", breaks: []string{"MONEY-2", "AUTH-2"},
		config: func(c *Config) {
			c.Limits = []Limits{{Currency: "INR", ApprovalThreshold: 1 << 40, SecondThreshold: 1 << 41, CapTenantHour: 1 << 40, CapTenantDay: 1 << 40}}
		},
	},
	{
		name: "a provider that ignores keys and says it keeps them", breaks: []string{"MONEY-1"},
		provider: func(_ *world, p provider.Provider) provider.Provider { return &keyless{Provider: p} },
	},
	{
		name: "a fresh reference for every call", breaks: []string{"MONEY-2", "TRUTH-2"},
		provider: func(_ *world, p provider.Provider) provider.Provider { return &fresh{Provider: p} },
	},
	{
		name: "keys that are forgotten before their time", from: 1500, breaks: []string{"MONEY-1"},
		terms: func(t *terms) { t.promises.KeyWindow = 24 * time.Hour },
		provider: func(_ *world, p provider.Provider) provider.Provider {
			return boastful{p, provider.Promises{KeyWindow: 1000 * time.Hour, CallTimeout: 5 * time.Second}}
		},
	},
	{
		name: "a provider that works on calls for longer than it says", from: 9400, breaks: []string{"MONEY-1", "MONEY-3", "MONEY-4"},
		terms: func(t *terms) { t.promises = provider.Promises{CallTimeout: 3 * time.Hour} },
		provider: func(_ *world, p provider.Provider) provider.Provider {
			return boastful{p, provider.Promises{CallTimeout: time.Second}}
		},
	},
	{
		name: "a call that may start at any time", breaks: []string{"MONEY-2"},
		provider: func(_ *world, p provider.Provider) provider.Provider { return untimed{p} },
	},
	{
		name: "a reading without what was made by hand", breaks: []string{"MONEY-1", "MONEY-4"},
		terms:    func(t *terms) { t.lax = true },
		provider: func(_ *world, p provider.Provider) provider.Provider { return partial{p} },
	},
	{
		name: "an acknowledgement made up", breaks: []string{"TRUTH-2"},
		answer: func(m proto.Message) {
			r, ok := m.(*amendsv1.EffectResult)
			if !ok || r.GetClass() != amendsv1.EffectClass_EFFECT_CLASS_UNKNOWN {
				return
			}
			r.Class = amendsv1.EffectClass_EFFECT_CLASS_ACKNOWLEDGED
			for _, one := range r.GetRefunds() {
				one.Outcome.Class, one.Outcome.RefundId, one.Outcome.ProviderStatus = r.GetClass(), "rf_1", amendsv1.RefundStatus_REFUND_STATUS_PENDING
			}
		},
	},
}

// small makes an order whose duplicates need nobody's approval, and caps that
// two of them pass.
func (t *terms) small() {
	t.order.Order.Total.Minor, t.order.Order.Total.Currency = 40000, "INR"
	for _, c := range t.order.Captures {
		c.Amount.Minor, c.Amount.Currency = 40000, "INR"
	}
	t.cfg.Limits[0].CapTenantHour = 60000
	t.limits = t.cfg.Limits[0]
}

type overwriting struct {
	effectstore.Store
	w *world
}

func (s overwriting) SaveEntry(ctx context.Context, e *amendsv1.EffectEntry, _ uint64) (uint64, error) {
	var last uint64
	s.w.aside(func() { _, last, _, _ = s.Store.Entry(ctx, e.GetTenant(), e.GetOrderId()) })
	return s.Store.SaveEntry(ctx, e, last)
}

type forgetful struct{ effectstore.Store }

func (s forgetful) SaveEntry(_ context.Context, _ *amendsv1.EffectEntry, expect uint64) (uint64, error) {
	return expect + 1, nil
}

type unmarked struct{ effectstore.Store }

func (s unmarked) SaveEntry(ctx context.Context, e *amendsv1.EffectEntry, expect uint64) (uint64, error) {
	e = proto.CloneOf(e)
	e.Tombstones = nil
	return s.Store.SaveEntry(ctx, e, expect)
}

type uncapped struct{ effectstore.Store }

func (s uncapped) Caps(ctx context.Context, tenant string) (*amendsv1.CapWindow, uint64, error) {
	_, seq, err := s.Store.Caps(ctx, tenant)
	return nil, seq, err
}

type unstoppable struct{ effectstore.Store }

func (s unstoppable) Stopped(ctx context.Context, tenant string) (bool, error) {
	_, err := s.Store.Stopped(ctx, tenant)
	return false, err
}

type keyless struct {
	provider.Provider
	calls int
}

func (p *keyless) Create(ctx context.Context, key string, body []byte, notAfter time.Time) provider.Outcome {
	p.calls++
	return p.Provider.Create(ctx, fmt.Sprint(key, "#", p.calls), body, notAfter)
}

type fresh struct {
	provider.Provider
	calls int
}

func (p *fresh) Create(ctx context.Context, key string, body []byte, notAfter time.Time) provider.Outcome {
	p.calls++
	again := fmt.Sprint(key, "#", p.calls)
	return p.Provider.Create(ctx, again, []byte(strings.Replace(string(body), key, again, 1)), notAfter)
}

type boastful struct {
	provider.Provider
	says provider.Promises
}

func (p boastful) Promises() provider.Promises { return p.says }

type untimed struct{ provider.Provider }

func (p untimed) Create(ctx context.Context, key string, body []byte, _ time.Time) provider.Outcome {
	return p.Provider.Create(ctx, key, body, dawn.AddDate(1, 0, 0))
}

type partial struct{ provider.Provider }

func (p partial) ReadOrder(ctx context.Context, tenant, order string) (provider.Order, error) {
	o, err := p.Provider.ReadOrder(ctx, tenant, order)
	var ours []*amendsv1.Refund
	for _, r := range o.Refunds {
		if r.GetReference() != "" {
			ours = append(ours, r)
		}
	}
	o.Refunds = ours
	return o, err
}
