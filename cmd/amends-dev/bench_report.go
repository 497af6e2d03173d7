package main

import (
	"fmt"
	"os"
	"runtime/pprof"
	"slices"
	"time"
)

// quantile gives a latency in milliseconds, over the cases that closed.
func (w *benchWorld) quantile(q float64) float64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.took) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(w.took))
	return float64(sorted[int(q*float64(len(sorted)-1))].Microseconds()) / 1000
}

// progress tells every two seconds how far the load is, for people only. It
// returns how to stop it.
func (w *benchWorld) progress(c *console, b benchCmd, began time.Time) (stop func()) {
	done := make(chan struct{})
	if b.JSON {
		return func() { w.sayFirst() }
	}
	go func() {
		tick := time.NewTicker(2 * time.Second)
		defer tick.Stop()
		for {
			select {
			case <-done:
				return
			case <-tick.C:
				n := w.done.Load()
				c.printf("  %d of %d cases, %.0f/s\n", n, b.Cases, float64(n)/time.Since(began).Seconds())
			}
		}
	}()
	return func() {
		close(done)
		w.sayFirst()
	}
}

// sayFirst names the first error, which the counts alone would hide.
func (w *benchWorld) sayFirst() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.first != nil {
		fmt.Fprintln(os.Stderr, "amends-dev: first error:", w.first)
	}
}

// profile writes a CPU profile until stop is called; an empty path writes none.
func profile(path string) (stop func(), err error) {
	if path == "" {
		return func() {}, nil
	}
	f, err := os.Create(path)
	if err != nil {
		return nil, fmt.Errorf("profile: %w", err)
	}
	if err := pprof.StartCPUProfile(f); err != nil {
		return nil, fmt.Errorf("profile: %w", err)
	}
	return func() {
		pprof.StopCPUProfile()
		if err := f.Close(); err != nil {
			fmt.Fprintln(os.Stderr, "amends-dev: profile:", err)
		}
	}, nil
}
