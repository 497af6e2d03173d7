package casestoretest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/amends-dev/amends/internal/casestore"
	amendsv1 "github.com/amends-dev/amends/proto/amends/v1"
)

// Store is what the suite tests.
type Store interface {
	Load(ctx context.Context, tenant, caseID string) (casestore.Snapshot, error)
	Commit(ctx context.Context, c *amendsv1.CaseCommit, expect uint64) (uint64, error)
	Log(ctx context.Context, tenant, caseID string) ([]*amendsv1.CaseCommit, error)
}

// Run tests a store. open is called once and gives an empty one; each test
// works on cases of its own.
func Run(t *testing.T, open func(t *testing.T) Store) {
	t.Helper()
	s := open(t)
	for _, c := range []struct {
		name string
		test func(t *testing.T, s Store)
	}{
		{"an unknown case is not found", unknown},
		{"a commit is what is loaded", roundTrip},
		{"only the expected sequence is replaced", expectation},
		{"sequences are counted per case", perCase},
		{"tenants are apart", tenants},
		{"the log has every commit in order", history},
		{"an invalid commit stores nothing", invalid},
		{"a commit above the limit stores nothing", oversize},
		{"nobody changes what is stored", aliasing},
		{"a cancelled commit is not half stored", cancelled},
		{"100 claimants of a new case, one winner (B41)", func(t *testing.T, s Store) { claim(t, s, "req-claim-new", 0) }},
		{"100 claimants of a version, one winner (B41)", func(t *testing.T, s Store) {
			claim(t, s, "req-claim", commit(t, s, Commit(Tenant, "req-claim", 1, "first"), 0))
		}},
		{"no update is lost", noLostUpdate},
	} {
		t.Run(c.name, func(t *testing.T) { c.test(t, s) })
	}
}

func bounded(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	t.Cleanup(cancel)
	return ctx
}

func commit(t *testing.T, s Store, c *amendsv1.CaseCommit, expect uint64) uint64 {
	t.Helper()
	seq, err := s.Commit(bounded(t), c, expect)
	if err != nil {
		t.Fatalf("commit version %d: %v", c.GetRecord().GetVersion(), err)
	}
	return seq
}

func load(t *testing.T, s Store, tenant, caseID string) casestore.Snapshot {
	t.Helper()
	snap, err := s.Load(bounded(t), tenant, caseID)
	if err != nil {
		t.Fatalf("load %s of %s: %v", caseID, tenant, err)
	}
	return snap
}

func fails(t *testing.T, what string, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Errorf("%s: got %v, want %v", what, err, want)
	}
}

func unknown(t *testing.T, s Store) {
	for _, id := range []string{"req-unknown", "", "req.*", ">", strings.Repeat("x", 65)} {
		_, err := s.Load(bounded(t), Tenant, id)
		fails(t, "load "+id, err, casestore.ErrNotFound)
		_, err = s.Log(bounded(t), Tenant, id)
		fails(t, "log "+id, err, casestore.ErrNotFound)
	}
}

func roundTrip(t *testing.T, s Store) {
	want := Commit(Tenant, "req-round", 1, "a")
	seq := commit(t, s, want, 0)
	got := load(t, s, Tenant, "req-round")
	if got.Seq != seq || !proto.Equal(got.Record, want.GetRecord()) {
		t.Errorf("loaded %v at %d, committed %v at %d", got.Record, got.Seq, want.GetRecord(), seq)
	}
}

func expectation(t *testing.T, s Store) {
	const id = "req-expect"
	_, err := s.Commit(bounded(t), Commit(Tenant, id, 1, "early"), 7)
	fails(t, "a version before there is a case", err, casestore.ErrConflict)
	first := commit(t, s, Commit(Tenant, id, 1, "a"), 0)
	_, err = s.Commit(bounded(t), Commit(Tenant, id, 1, "again"), 0)
	fails(t, "a case that exists created again", err, casestore.ErrConflict)
	second := commit(t, s, Commit(Tenant, id, 2, "b"), first)
	for _, wrong := range []uint64{0, first, second + 1, 1 << 62} {
		_, err = s.Commit(bounded(t), Commit(Tenant, id, 3, "c"), wrong)
		fails(t, fmt.Sprintf("expecting %d at %d", wrong, second), err, casestore.ErrConflict)
	}
	if got := load(t, s, Tenant, id); got.Seq != second || got.Record.GetTraceId() != "b" {
		t.Errorf("after refused commits: %s at %d", got.Record.GetTraceId(), got.Seq)
	}
}

func perCase(t *testing.T, s Store) {
	a := commit(t, s, Commit(Tenant, "req-one", 1, "a"), 0)
	b := commit(t, s, Commit(Tenant, "req-two", 1, "b"), 0)
	if b <= a {
		t.Errorf("the later commit has sequence %d, the earlier %d", b, a)
	}
	_, err := s.Commit(bounded(t), Commit(Tenant, "req-one", 2, "a"), b)
	fails(t, "expecting another case's sequence", err, casestore.ErrConflict)
	if again := commit(t, s, Commit(Tenant, "req-one", 2, "a"), a); again <= b {
		t.Errorf("sequence %d after %d", again, b)
	}
}

func tenants(t *testing.T, s Store) {
	commit(t, s, Commit(Tenant, "req-shared", 1, "ours"), 0)
	_, err := s.Load(bounded(t), "acme-de", "req-shared")
	fails(t, "another tenant's case", err, casestore.ErrNotFound)
	commit(t, s, Commit("acme-de", "req-shared", 1, "theirs"), 0)
	if got := load(t, s, Tenant, "req-shared").Record.GetTraceId(); got != "ours" {
		t.Errorf("loaded %q", got)
	}
}

func history(t *testing.T, s Store) {
	const id, n = "req-history", 12
	var want []*amendsv1.CaseCommit
	var seq uint64
	for v := range uint64(n) {
		c := Commit(Tenant, id, v+1, fmt.Sprint("author", v))
		seq = commit(t, s, c, seq)
		want = append(want, c)
		commit(t, s, Commit(Tenant, fmt.Sprint("req-between-", v), 1, "x"), 0)
	}
	got, err := s.Log(bounded(t), Tenant, id)
	if err != nil || len(got) != n {
		t.Fatalf("%d commits, %v", len(got), err)
	}
	for i := range want {
		if !proto.Equal(got[i], want[i]) {
			t.Errorf("commit %d is %v, want %v", i, got[i], want[i])
		}
	}
}

func invalid(t *testing.T, s Store) {
	const id = "req-invalid"
	for what, change := range map[string]func(c *amendsv1.CaseCommit){
		"no record":              func(c *amendsv1.CaseCommit) { c.Record = nil },
		"no input":               func(c *amendsv1.CaseCommit) { c.Inputs = nil },
		"version 0":              func(c *amendsv1.CaseCommit) { c.FirstVersion, c.Record.Version = 0, 0 },
		"ends before its first":  func(c *amendsv1.CaseCommit) { c.FirstVersion = 2 },
		"unknown state":          func(c *amendsv1.CaseCommit) { c.Record.State = 99 },
		"tenant not a token":     func(c *amendsv1.CaseCommit) { c.Record.Tenant = "acme.in" },
		"case with a wildcard":   func(c *amendsv1.CaseCommit) { c.Record.CaseId = "*" },
		"case with two tokens":   func(c *amendsv1.CaseCommit) { c.Record.CaseId = id + ".x" },
		"short input message id": func(c *amendsv1.CaseCommit) { c.Inputs[0].Envelope.MessageId = "1" },
	} {
		c := Commit(Tenant, id, 1, "a")
		change(c)
		_, err := s.Commit(bounded(t), c, 0)
		fails(t, what, err, casestore.ErrInvalid)
	}
	_, err := s.Load(bounded(t), Tenant, id)
	fails(t, "after invalid commits", err, casestore.ErrNotFound)
}

func oversize(t *testing.T, s Store) {
	const id = "req-large"
	c := Commit(Tenant, id, 1, "a")
	for range 6 {
		in := proto.Clone(c.Inputs[0]).(*amendsv1.AppliedInput)
		in.Envelope.Payload = make([]byte, casestore.MaxSize/6)
		c.Inputs = append(c.Inputs, in)
	}
	if size := proto.Size(c); size <= casestore.MaxSize {
		t.Fatalf("%d bytes are within the limit", size)
	}
	_, err := s.Commit(bounded(t), c, 0)
	fails(t, "too large", err, casestore.ErrInvalid)
	_, err = s.Load(bounded(t), Tenant, id)
	fails(t, "after it", err, casestore.ErrNotFound)

	room := casestore.MaxSize - proto.Size(c)
	last := c.Inputs[len(c.Inputs)-1].Envelope
	last.Payload = last.Payload[:len(last.Payload)+room]
	if size := proto.Size(c); size != casestore.MaxSize {
		t.Fatalf("%d bytes are not exactly the limit", size)
	}
	commit(t, s, c, 0)
	if got, err := s.Log(bounded(t), Tenant, id); err != nil || !proto.Equal(got[0], c) {
		t.Errorf("the largest commit came back different: %v", err)
	}
}

func aliasing(t *testing.T, s Store) {
	const id = "req-alias"
	c := Commit(Tenant, id, 1, "a")
	commit(t, s, c, 0)
	c.Record.TraceId = "changed after the commit"
	got := load(t, s, Tenant, id)
	got.Record.TraceId = "changed after the load"
	if again := load(t, s, Tenant, id); again.Record.GetTraceId() != "a" {
		t.Errorf("stored %q", again.Record.GetTraceId())
	}
}

func cancelled(t *testing.T, s Store) {
	const id = "req-cancelled"
	first := commit(t, s, Commit(Tenant, id, 1, "a"), 0)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.Commit(ctx, Commit(Tenant, id, 2, "b"), first); err == nil {
		t.Error("a cancelled commit was acknowledged")
	}
	got := load(t, s, Tenant, id)
	if got.Seq == first != (got.Record.GetVersion() == 1) {
		t.Errorf("version %d at sequence %d", got.Record.GetVersion(), got.Seq)
	}
}

func claim(t *testing.T, s Store, id string, expect uint64) {
	const claimants = 100
	start := make(chan struct{})
	var wg sync.WaitGroup
	var won, lost atomic.Int32
	var winner atomic.Value
	ctx := bounded(t)
	for i := range claimants {
		wg.Go(func() {
			<-start
			author := fmt.Sprint("claimant-", i)
			switch _, err := s.Commit(ctx, Commit(Tenant, id, 2, author), expect); {
			case err == nil:
				won.Add(1)
				winner.Store(author)
			case errors.Is(err, casestore.ErrConflict):
				lost.Add(1)
			default:
				t.Errorf("%s: %v", author, err)
			}
		})
	}
	close(start)
	wg.Wait()
	if won.Load() != 1 || lost.Load() != claimants-1 {
		t.Fatalf("%d won and %d lost of %d", won.Load(), lost.Load(), claimants)
	}
	if got := load(t, s, Tenant, id).Record.GetTraceId(); got != winner.Load() {
		t.Errorf("%v won, %s is stored", winner.Load(), got)
	}
}

func noLostUpdate(t *testing.T, s Store) {
	const id, writers, each = "req-updates", 8, 5
	commit(t, s, Commit(Tenant, id, 1, "first"), 0)
	ctx := bounded(t)
	var wg sync.WaitGroup
	for w := range writers {
		wg.Go(func() {
			for done := 0; done < each && ctx.Err() == nil; {
				snap, err := s.Load(ctx, Tenant, id)
				if err != nil {
					t.Errorf("writer %d: %v", w, err)
					return
				}
				next := Commit(Tenant, id, snap.Record.GetVersion()+1, fmt.Sprint("writer-", w))
				switch _, err = s.Commit(ctx, next, snap.Seq); {
				case err == nil:
					done++
				case !errors.Is(err, casestore.ErrConflict):
					t.Errorf("writer %d: %v", w, err)
					return
				}
			}
		})
	}
	wg.Wait()
	if got := load(t, s, Tenant, id).Record.GetVersion(); got != 1+writers*each {
		t.Errorf("version %d after %d updates", got, writers*each)
	}
}
