package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/amends-dev/amends/internal/allinone"
	"github.com/amends-dev/amends/internal/deskapi"
	"github.com/amends-dev/amends/internal/deskclient"
	"github.com/amends-dev/amends/internal/sandbox"
)

// benchCmd is closed-loop load: each worker posts a case, approves it with
// a real signature when the desk asks, and follows it until it is closed.
type benchCmd struct {
	Cases       int           `help:"How many cases." default:"2000"`
	Concurrency int           `help:"How many at once." default:"64"`
	Sync        string        `help:"always: acknowledged messages of synced streams are on the disk; default: within two minutes." enum:"always,default" default:"always"`
	JSON        bool          `help:"Write one JSON object."`
	Limit       time.Duration `help:"Give up on a case after this long." default:"30s"`
	Profile     string        `help:"Write a CPU profile of the load to this file." optional:"" type:"path"`
}

// benchResult is what a run measured. Milliseconds and megabytes are for
// people to compare; the counts are exact.
type benchResult struct {
	Cases       int     `json:"cases"`
	Errors      int     `json:"errors"`
	Refunds     int     `json:"refunds"`
	CasesPerS   float64 `json:"cases_per_s"`
	P50         float64 `json:"p50_ms"`
	P95         float64 `json:"p95_ms"`
	P99         float64 `json:"p99_ms"`
	Synced      float64 `json:"synced_per_case"`
	Persisted   float64 `json:"persisted_per_case"`
	Bytes       float64 `json:"bytes_per_case"`
	CPU         float64 `json:"cpu_ms_per_case"`
	PeakRSS     float64 `json:"peak_rss_mb"`
	Sync        string  `json:"sync"`
	Concurrency int     `json:"concurrency"`
}

// Validate refuses a load that is none.
func (b benchCmd) Validate() error {
	if b.Cases < 1 || b.Concurrency < 1 || b.Concurrency > 4096 {
		return errors.New("want at least one case and a concurrency of 1 to 4096")
	}
	return nil
}

// Run measures, and fails unless every case closed with exactly one refund.
func (b benchCmd) Run(ctx context.Context, c *console) error {
	dir, remove, err := allinone.TempDir()
	if err != nil {
		return err
	}
	defer remove()
	desk, err := allinone.Start(ctx, allinone.Options{Dir: dir, NoSync: b.Sync != "always", Operator: true, Unlimited: true, Log: c.log})
	if err != nil {
		return err
	}
	defer func() { _ = desk.Close() }() // its files are removed anyway
	res, err := b.measure(ctx, c, desk)
	if err != nil {
		return err
	}
	if b.JSON {
		if err := json.NewEncoder(c.out).Encode(res); err != nil {
			return fmt.Errorf("write the result: %w", err)
		}
	} else {
		b.print(c, res)
	}
	if res.Errors > 0 || res.Refunds != res.Cases {
		return fmt.Errorf("%w: %d cases, %d errors, %d refunds", errCheck, res.Cases, res.Errors, res.Refunds)
	}
	return nil
}

func (b benchCmd) measure(ctx context.Context, c *console, desk *allinone.Desk) (benchResult, error) {
	const warm = 32
	if err := seed(ctx, desk, warm+b.Cases); err != nil {
		return benchResult{}, err
	}
	w, err := newBenchWorld(desk, b)
	if err != nil {
		return benchResult{}, err
	}
	w.load(ctx, 0, warm) // connections, caches, first allocations
	before, err := desk.Counts(ctx)
	if err != nil {
		return benchResult{}, err
	}
	w.reset(b.Cases)
	stop, err := profile(b.Profile)
	if err != nil {
		return benchResult{}, err
	}
	cpu, began := cpuTime(), time.Now()
	progress := w.progress(c, b, began)
	w.load(ctx, warm, b.Cases)
	took, used := time.Since(began), cpuTime()-cpu
	progress()
	stop()
	after, err := desk.Counts(ctx)
	if err != nil {
		return benchResult{}, err
	}
	ledger, err := desk.Provider.Ledger(ctx)
	if err != nil {
		return benchResult{}, err
	}
	stored, n := after.Minus(before), float64(b.Cases)
	return benchResult{
		Cases: b.Cases, Errors: int(w.errors.Load()), Refunds: len(ledger.Refunds) - warm, CasesPerS: n / took.Seconds(),
		P50: w.quantile(0.50), P95: w.quantile(0.95), P99: w.quantile(0.99),
		Synced: float64(stored.Synced) / n, Persisted: float64(stored.Persisted) / n, Bytes: float64(stored.Bytes) / n,
		CPU: used.Seconds() * 1000 / n, PeakRSS: peakRSS(), Sync: b.Sync, Concurrency: b.Concurrency,
	}, nil
}

func (b benchCmd) print(c *console, r benchResult) {
	c.printf("%d cases, %d at once, sync %s: %d refunds, %d errors\n", r.Cases, r.Concurrency, r.Sync, r.Refunds, r.Errors)
	c.printf("  %.0f cases/s; post to closed p50 %.1f ms, p95 %.1f ms, p99 %.1f ms\n", r.CasesPerS, r.P50, r.P95, r.P99)
	c.printf("  per case: %.2f synced and %.2f persisted messages, %.0f bytes kept, %.2f ms CPU; peak memory %.0f MB\n", r.Synced, r.Persisted, r.Bytes, r.CPU, r.PeakRSS)
}

// seed loads one duplicated order per case.
func seed(ctx context.Context, desk *allinone.Desk, n int) error {
	const part = 5000
	placed := time.Now().Add(-48 * time.Hour).UTC().Truncate(time.Second)
	captured, settled := placed.Add(2*time.Second), placed.Add(17*time.Hour)
	again := placed.Add(7 * time.Second)
	for from := 0; from < n; from += part {
		var l sandbox.Ledger
		for i := from; i < min(from+part, n); i++ {
			id := orderID(i)
			l.Orders = append(l.Orders, sandbox.Order{OrderID: id, Tenant: allinone.Tenant, CustomerID: allinone.Customer, TotalMinor: 200000, Currency: "INR", PlacedAt: placed})
			for _, p := range []struct {
				name string
				at   *time.Time
			}{{"_a", &captured}, {"_b", &again}} {
				l.Captures = append(l.Captures, sandbox.Capture{
					PaymentID: "pay_" + id + p.name, OrderID: id, Tenant: allinone.Tenant, AmountMinor: 200000, Currency: "INR",
					Status: "settled", Captured: true, Settled: true, CapturedAt: p.at, SettledAt: &settled, Method: "card_visa_4417",
				})
			}
		}
		if err := desk.Provider.Load(ctx, l); err != nil {
			return err
		}
	}
	return nil
}

func orderID(i int) string { return strconv.Itoa(1_000_000 + i) }

// benchWorld is the clients' side of the load.
type benchWorld struct {
	benchCmd
	gateway *deskclient.Gateway
	staff   *deskclient.Console
	desk    *allinone.Desk
	errors  atomic.Int64
	done    atomic.Int64
	mu      sync.Mutex
	took    []time.Duration
	first   error
}

func newBenchWorld(desk *allinone.Desk, b benchCmd) (*benchWorld, error) {
	g, s, err := desk.Clients(b.Concurrency)
	return &benchWorld{benchCmd: b, gateway: g, staff: s, desk: desk}, err
}

func (w *benchWorld) reset(n int) {
	w.errors.Store(0)
	w.done.Store(0)
	w.took = make([]time.Duration, 0, n)
}

// load runs n cases from a first one on, and returns when all have ended.
func (w *benchWorld) load(ctx context.Context, from, n int) {
	var next atomic.Int64
	var g errgroup.Group
	for range min(w.Concurrency, n) {
		g.Go(func() error {
			for {
				i := int(next.Add(1)) - 1
				if i >= n || ctx.Err() != nil {
					return nil
				}
				w.one(ctx, from+i)
			}
		})
	}
	_ = g.Wait() // the workers count their own errors
}

func (w *benchWorld) one(ctx context.Context, i int) {
	ctx, cancel := context.WithTimeout(ctx, w.Limit)
	defer cancel()
	began := time.Now()
	err := w.play(ctx, "bench-"+strconv.Itoa(i), orderID(i))
	w.done.Add(1)
	w.mu.Lock()
	defer w.mu.Unlock()
	if err != nil {
		w.errors.Add(1)
		if w.first == nil {
			w.first = err
		}
		return
	}
	w.took = append(w.took, time.Since(began))
}

func (w *benchWorld) play(ctx context.Context, key, order string) error {
	posted, err := w.gateway.Post(ctx, deskclient.Post{Key: key, Message: "Order " + order + " was charged twice, and my refund has not arrived."})
	if err != nil {
		return err
	}
	state := ""
	err = w.gateway.Follow(ctx, posted.CaseID, "", 0, func(v deskapi.View) error {
		state = v.State
		if v.State == "AWAITING_APPROVAL" {
			_, err := allinone.Approve(ctx, w.staff, w.desk.Trial.Keys[allinone.Approver], posted.CaseID, v.Version)
			return err
		}
		return nil
	})
	if err == nil && state != "VERIFIED_CLOSED" {
		err = fmt.Errorf("case %s ended %s", posted.CaseID, state)
	}
	return err
}

func cpuTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

func peakRSS() float64 {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return float64(u.Maxrss) / 1024
}
