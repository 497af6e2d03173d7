package sandbox_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/amends-dev/amends/internal/sandbox"
	"github.com/amends-dev/amends/internal/sandbox/sandboxtest"
)

// childFile, when set, makes the test binary a sandbox on that journal.
const childFile = "SANDBOX_TEST_CHILD_FILE"

func TestMain(m *testing.M) {
	if file := os.Getenv(childFile); file != "" {
		runChild(file)
		return
	}
	code := m.Run()
	http.DefaultClient.CloseIdleConnections()
	if err := goleak.Find(); err != nil && code == 0 {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

// reopen starts a second sandbox on a copy of a journal.
func reopen(t *testing.T, c sandbox.Config, journal []byte) (*sandboxtest.Sandbox, error) {
	t.Helper()
	c.File = filepath.Join(t.TempDir(), "copy.jsonl")
	if err := os.WriteFile(c.File, journal, 0o600); err != nil {
		t.Fatal(err)
	}
	s, err := sandbox.Start(t.Context(), c)
	if err != nil {
		return nil, err
	}
	t.Cleanup(func() { _ = s.Close() })
	return &sandboxtest.Sandbox{Server: s, Config: c, Admin: sandbox.NewAdmin(s.URL, sandboxtest.AdminKey)}, nil
}

func journalOf(t *testing.T, s *sandboxtest.Sandbox) []byte {
	t.Helper()
	data, err := os.ReadFile(s.Config.File)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func TestReplayGivesTheSameState(t *testing.T) {
	t.Parallel()
	for _, synced := range []bool{false, true} {
		s := sandboxtest.Start(t, func(c *sandbox.Config) { c.Sync = synced })
		s.Load(t, sandboxtest.Duplicate())
		first := send(t, s.URL, refund("k", duplicateRefund))
		if err := s.Admin.SetRefundStatus(t.Context(), "rf_5521", "failed"); err != nil {
			t.Fatal(err)
		}
		send(t, s.URL, refund("k2", duplicateRefund))
		want := s.Ledger(t)
		version := sourceVersion(t, s)
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}

		again, err := reopen(t, s.Config, journalOf(t, s))
		if err != nil {
			t.Fatal(err)
		}
		if got := again.Ledger(t); !reflect.DeepEqual(want, got) {
			t.Errorf("sync %t: replay gives %+v, want %+v", synced, got, want)
		}
		if got := sourceVersion(t, again); got != version {
			t.Errorf("sync %t: source version %s, want %s", synced, got, version)
		}
		// Keys outlive the restart, and so do the numbers given out.
		repeat := send(t, again.URL, refund("k", duplicateRefund))
		if repeat.body != first.body || repeat.header.Get("Idempotent-Replayed") != "true" {
			t.Errorf("sync %t: repeat after restart: %d %s", synced, repeat.status, repeat.body)
		}
		next := send(t, again.URL, refund("k3", refundOf(t, map[string]any{"payment_id": "pay_8472_a"})))
		if id := parseRefund(t, next).RefundID; id != "rf_5523" {
			t.Errorf("sync %t: next refund is %s", synced, id)
		}
	}
}

// Cut the journal after every byte of its last entry: the torn entry is gone,
// all earlier ones are there, and the service goes on from there.
func TestTornLastLine(t *testing.T) {
	t.Parallel()
	s := sandboxtest.Start(t)
	s.Load(t, sandboxtest.Duplicate())
	send(t, s.URL, refund("k1", refundOf(t, map[string]any{"amount_minor": 1})))
	send(t, s.URL, refund("k2", refundOf(t, map[string]any{"amount_minor": 2})))
	whole := journalOf(t, s)
	last := bytes.LastIndexByte(whole[:len(whole)-1], '\n') + 1
	for cut := last; cut <= len(whole); cut += 7 {
		again, err := reopen(t, s.Config, whole[:cut])
		if err != nil {
			t.Fatalf("cut at %d: %v", cut, err)
		}
		if n := len(again.Ledger(t).Refunds); n != 1 {
			t.Errorf("cut at %d: %d refunds, want 1", cut, n)
		}
		got := send(t, again.URL, refund("k2", refundOf(t, map[string]any{"amount_minor": 2})))
		if id := parseRefund(t, got).RefundID; id != "rf_5522" || got.header.Get("Idempotent-Replayed") != "" {
			t.Errorf("cut at %d: the torn refund comes back as %s", cut, got.body)
		}
		if err := again.Close(); err != nil {
			t.Fatal(err)
		}
		twice, err := reopen(t, s.Config, journalOf(t, again))
		if err != nil {
			t.Fatalf("cut at %d: second start: %v", cut, err)
		}
		if n := len(twice.Ledger(t).Refunds); n != 2 {
			t.Errorf("cut at %d: %d refunds after the second start", cut, n)
		}
		if err := twice.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

func TestDamagedJournalRefusesTheStart(t *testing.T) {
	t.Parallel()
	s := sandboxtest.Start(t)
	s.Load(t, sandboxtest.Duplicate())
	send(t, s.URL, refund("k1", duplicateRefund))
	whole := string(journalOf(t, s))
	lines := strings.SplitAfter(whole, "\n")
	for name, journal := range map[string]string{
		"garbage in the middle": lines[0] + "garbage\n" + lines[1],
		"line missing":          lines[1],
		"line twice":            lines[0] + lines[1] + lines[1],
		"line of a later kind":  whole + `{"seq":3,"at":"2026-03-12T10:14:00Z","payout":{}}` + "\n",
		"status of nothing":     whole + `{"seq":3,"at":"2026-03-12T10:14:00Z","changed":{"refund_id":"rf_1","status":"x"}}` + "\n",
	} {
		if _, err := reopen(t, s.Config, []byte(journal)); err == nil {
			t.Errorf("%s: started", name)
		}
	}
}

// When the journal is gone, nothing is answered as done.
func TestLostJournal(t *testing.T) {
	t.Parallel()
	clock := sandboxtest.NewClock(time.Now())
	server, err := sandbox.Start(t.Context(), sandbox.Config{File: filepath.Join(t.TempDir(), "lost.jsonl"), Keys: sandboxtest.Keys(), Now: clock.Now})
	if err != nil {
		t.Fatal(err)
	}
	s := &sandboxtest.Sandbox{Server: server, Admin: sandbox.NewAdmin(server.URL, sandboxtest.AdminKey)}
	s.Load(t, sandboxtest.Duplicate())
	if err := s.BreakJournal(); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		got := send(t, s.URL, refund("k", duplicateRefund))
		if got.status != http.StatusServiceUnavailable || got.code(t) != "journal_unavailable" {
			t.Errorf("%d %s", got.status, got.body)
		}
	}
	if n := len(s.Ledger(t).Refunds); n != 0 {
		t.Errorf("%d refunds that are in no journal", n)
	}
	if err := s.Close(); err == nil {
		t.Error("the close reported nothing")
	}
}

func runChild(file string) {
	s, err := sandbox.Start(context.Background(), sandbox.Config{File: file, Keys: sandboxtest.Keys(), Now: time.Now})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	if _, err := fmt.Fprintln(os.Stdout, s.URL); err != nil {
		os.Exit(1)
	}
	select {} // until it is killed
}

// The real thing: a sandbox is killed while refunds are being made. What it
// answered is there after the restart, and a repeat of everything makes one
// refund a key.
func TestKilledInTheMiddle(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "killed.jsonl")
	child := exec.CommandContext(t.Context(), os.Args[0])
	child.Env = append(os.Environ(), childFile+"="+file)
	out, err := child.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(errors.Join(err, child.Process.Kill(), child.Wait()))
	}
	url := strings.TrimSpace(line)
	if err := sandbox.NewAdmin(url, sandboxtest.AdminKey).Load(t.Context(), sandboxtest.Duplicate()); err != nil {
		t.Fatal(err)
	}

	const workers, killAfter, most = 8, 100, 10000
	one := refundOf(t, map[string]any{"amount_minor": 1})
	var mu sync.Mutex
	answered := map[string]string{}
	sent := 0
	var wg sync.WaitGroup
	for w := range workers {
		wg.Go(func() {
			for i := range most {
				key := fmt.Sprintf("k-%d-%d", w, i)
				r, err := trySend(t, url, refund(key, one))
				mu.Lock()
				sent++
				if err == nil && r.status == http.StatusCreated {
					answered[key] = r.body
				}
				kill := len(answered) == killAfter
				mu.Unlock()
				if kill {
					_ = child.Process.Kill() // a second kill finds it dead
				}
				if err != nil {
					return
				}
			}
		})
	}
	wg.Wait()
	if err := child.Wait(); err == nil {
		t.Error("the child ended by itself")
	}

	journal, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	c := sandbox.Config{Keys: sandboxtest.Keys(), Now: time.Now}
	s, err := reopen(t, c, journal)
	if err != nil {
		t.Fatal(err)
	}
	if n := len(s.Ledger(t).Refunds); n < len(answered) || n > sent {
		t.Errorf("%d refunds, %d answered, %d sent", n, len(answered), sent)
	}
	for key, body := range answered {
		again := send(t, s.URL, refund(key, one))
		if again.body != body || again.header.Get("Idempotent-Replayed") != "true" {
			t.Errorf("%s: answered %s, then %s", key, body, again.body)
		}
	}
}
