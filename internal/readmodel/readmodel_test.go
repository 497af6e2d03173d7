package readmodel_test

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/amends-dev/amends/internal/ident"
	"github.com/amends-dev/amends/internal/readmodel"
)

var epoch = time.Date(2026, 3, 12, 10, 14, 0, 0, time.UTC)

// store is an empty Redis: an embedded one, or the one AMENDS_TEST_REDIS names,
// whose database 15 is emptied.
func store(t *testing.T) (redis.UniversalClient, func()) {
	t.Helper()
	o := &redis.Options{Addr: os.Getenv("AMENDS_TEST_REDIS"), DB: 15}
	if o.Addr == "" {
		o.Addr, o.DB = miniredis.RunT(t).Addr(), 0
		t.Parallel()
	}
	c := redis.NewClient(o)
	t.Cleanup(func() { _ = c.Close() })
	flush := func() {
		if err := c.FlushDB(t.Context()).Err(); err != nil {
			t.Fatal(err)
		}
	}
	flush()
	return c, flush
}

func build(t *testing.T, m *readmodel.Model, entries ...readmodel.Entry) {
	t.Helper()
	if ok, err := m.Claim(t.Context(), "", "t"); err != nil || !ok {
		t.Fatalf("claim: %t, %v", ok, err)
	}
	put(t, m, entries...)
	if ok, err := m.Finish(t.Context(), "t", "run-1"); err != nil || !ok {
		t.Fatalf("finish: %t, %v", ok, err)
	}
}

func put(t *testing.T, m *readmodel.Model, entries ...readmodel.Entry) {
	t.Helper()
	if err := m.Put(t.Context(), entries...); err != nil {
		t.Fatal(err)
	}
}

// entry gives case n of acme-in's cust_5519, opened n minutes after the epoch.
func entry(n int, version uint64) readmodel.Entry {
	id := fmt.Sprintf("req-%d", n)
	return readmodel.Entry{
		Tenant: "acme-in", CaseID: id, RequestID: id, CustomerID: "cust_5519", OrderID: "8472", State: "RECEIVED", Version: version,
		OpenedAt: epoch.Add(time.Duration(n) * time.Minute), UpdatedAt: epoch,
	}
}

func ids(entries []readmodel.Entry) string {
	var out []string
	for _, e := range entries {
		out = append(out, strings.TrimPrefix(e.CaseID, "req-"))
	}
	return strings.Join(out, " ")
}

func list(t *testing.T, m *readmodel.Model, q readmodel.Query) readmodel.Page {
	t.Helper()
	page, err := m.ByCustomer(t.Context(), "acme-in", "cust_5519", q)
	if err != nil {
		t.Fatal(err)
	}
	return page
}

func TestOlderVersionNeverReplacesANewerOne(t *testing.T) {
	r, _ := store(t)
	m := readmodel.New(r, "desk")
	build(t, m)
	var all sync.WaitGroup
	for v := uint64(1); v <= 40; v++ {
		all.Go(func() {
			e := entry(1, v)
			e.State = fmt.Sprint("V", v)
			if err := m.Put(t.Context(), e); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	put(t, m, entry(1, 39), entry(2, 1), entry(1, 7))
	if got := list(t, m, readmodel.Query{Limit: 10}); ids(got.Entries) != "2 1" || got.Entries[1].State != "V40" {
		t.Errorf("%+v", got)
	}
	if err := m.Put(t.Context(), make([]readmodel.Entry, readmodel.MaxPut+1)...); err == nil {
		t.Error("more than it may hold was put at once")
	}
}

func TestListIsNewestFirstAndStableUnderInserts(t *testing.T) {
	r, _ := store(t)
	m := readmodel.New(r, "desk")
	build(t, m, entry(2, 1), entry(5, 1), entry(1, 1), entry(4, 1), entry(3, 1))
	first := list(t, m, readmodel.Query{Limit: 2})
	if ids(first.Entries) != "5 4" || first.Next.IsZero() {
		t.Fatalf("first page %q, next %q", ids(first.Entries), first.Next)
	}
	put(t, m, entry(6, 1), entry(4, 2))
	cursor, err := readmodel.ParseCursor(first.Next.String())
	if err != nil {
		t.Fatal(err)
	}
	second := list(t, m, readmodel.Query{After: cursor, Limit: 2})
	last := list(t, m, readmodel.Query{After: second.Next, Limit: 2})
	if ids(second.Entries) != "3 2" || ids(last.Entries) != "1" || !last.Next.IsZero() {
		t.Errorf("then %q and %q, next %q", ids(second.Entries), ids(last.Entries), last.Next)
	}
	if exact := list(t, m, readmodel.Query{Limit: 6}); len(exact.Entries) != 6 || !exact.Next.IsZero() {
		t.Errorf("a page of all: %q, next %q", ids(exact.Entries), exact.Next)
	}
}

func TestListByStateLooksBoundedlyFar(t *testing.T) {
	r, _ := store(t)
	m := readmodel.New(r, "desk")
	build(t, m)
	for n := 1; n <= 1203; n++ {
		e := entry(n, 1)
		if n%600 == 0 || n <= 3 {
			e.State = "HUMAN_HANDOFF"
		}
		put(t, m, e)
	}
	var got []string
	q := readmodel.Query{Limit: 2, State: "HUMAN_HANDOFF"}
	for range 5 {
		page := list(t, m, q)
		got = append(got, ids(page.Entries))
		if q.After = page.Next; page.Next.IsZero() {
			break
		}
	}
	if joined := strings.Join(got, "|"); joined != "1200 600|3 2|1" {
		t.Errorf("pages %q", joined)
	}
}

// TENANT-1: a list holds nothing of another tenant or customer.
func TestListsAreApartTENANT1(t *testing.T) {
	r, _ := store(t)
	m := readmodel.New(r, "desk")
	beta, other := entry(1, 1), entry(2, 1)
	beta.Tenant, other.CustomerID = "beta", "cust_7001"
	build(t, m, beta, other, entry(3, 1))
	if got := list(t, m, readmodel.Query{Limit: 10}); ids(got.Entries) != "3" {
		t.Errorf("cases %q", ids(got.Entries))
	}
	// What a list holds by mistake is still not shown.
	if err := r.ZAdd(t.Context(), "{desk}:acme-in:customer:cust_5519", redis.Z{Member: fmt.Sprintf("%012x:req-2", epoch.Add(2*time.Minute).UnixMilli())}).Err(); err != nil {
		t.Fatal(err)
	}
	if got := list(t, m, readmodel.Query{Limit: 10}); ids(got.Entries) != "3" {
		t.Errorf("with a planted case: %q", ids(got.Entries))
	}
	of, err := m.CasesOfOrder(t.Context(), "acme-in", "8472")
	if err != nil || ids(of) != "3 2" {
		t.Errorf("of the order: %q, %v", ids(of), err)
	}
}

func TestCaseThatChangedItsOrderIsListedUnderTheNewOne(t *testing.T) {
	r, _ := store(t)
	m := readmodel.New(r, "desk")
	moved := entry(1, 2)
	moved.OrderID = "9001"
	none := entry(2, 1)
	none.OrderID = ""
	build(t, m, entry(1, 1), moved, none)
	for order, want := range map[string]string{"8472": "", "9001": "1"} {
		got, err := m.CasesOfOrder(t.Context(), "acme-in", order)
		if err != nil || ids(got) != want {
			t.Errorf("of %s: %q, %v", order, ids(got), err)
		}
	}
}

// Bug B55: no key is built from text that is not an id.
func TestIDsAreCheckedB55(t *testing.T) {
	r, _ := store(t)
	m := readmodel.New(r, "desk")
	build(t, m)
	before, err := r.DBSize(t.Context()).Result()
	if err != nil {
		t.Fatal(err)
	}
	for _, bad := range []string{"8472.>", "*", "a b", "", "a:b", strings.Repeat("8", 300)} {
		for i := range 4 {
			e := entry(1, 1)
			*[]*string{&e.Tenant, &e.CaseID, &e.CustomerID, &e.OrderID}[i] = bad
			if err := m.Put(t.Context(), e); !errors.Is(err, ident.ErrToken) && (i < 3 || bad != "") {
				t.Errorf("field %d as %q: %v", i, bad, err)
			}
			if err := r.Del(t.Context(), "{desk}:acme-in:case:req-1", "{desk}:acme-in:customer:cust_5519").Err(); err != nil {
				t.Fatal(err)
			}
		}
		_, err1 := m.ByCustomer(t.Context(), bad, "c", readmodel.Query{Limit: 1})
		_, err2 := m.ByCustomer(t.Context(), "t", bad, readmodel.Query{Limit: 1})
		_, err3 := m.CasesOfOrder(t.Context(), bad, "o")
		_, err4 := m.CasesOfOrder(t.Context(), "t", bad)
		for i, err := range []error{err1, err2, err3, err4} {
			if !errors.Is(err, ident.ErrToken) {
				t.Errorf("read %d with %q: %v", i+1, bad, err)
			}
		}
	}
	if after, err := r.DBSize(t.Context()).Result(); err != nil || after != before {
		t.Errorf("%d keys, want %d, %v", after, before, err)
	}
}

func TestEmptiedRedisIsNotReady(t *testing.T) {
	r, flush := store(t)
	m := readmodel.New(r, "desk")
	if _, err := m.ByCustomer(t.Context(), "acme-in", "cust_5519", readmodel.Query{Limit: 1}); !errors.Is(err, readmodel.ErrNotReady) {
		t.Errorf("before: %v", err)
	}
	build(t, m, entry(1, 1))
	flush()
	_, err1 := m.ByCustomer(t.Context(), "acme-in", "cust_5519", readmodel.Query{Limit: 1})
	_, err2 := m.CasesOfOrder(t.Context(), "acme-in", "8472")
	if !errors.Is(err1, readmodel.ErrNotReady) || !errors.Is(err2, readmodel.ErrNotReady) {
		t.Errorf("after: %v; %v", err1, err2)
	}
}

// A case that Redis dropped by itself is missed, and with it the whole model.
func TestEvictedCaseIsNoticed(t *testing.T) {
	r, _ := store(t)
	m := readmodel.New(r, "desk")
	build(t, m, entry(1, 1), entry(2, 1))
	if err := r.Del(t.Context(), "{desk}:acme-in:case:req-1").Err(); err != nil {
		t.Fatal(err)
	}
	_, err := m.ByCustomer(t.Context(), "acme-in", "cust_5519", readmodel.Query{Limit: 10})
	marker, err2 := m.Marker(t.Context())
	if !errors.Is(err, readmodel.ErrNotReady) || err2 != nil || marker != "" {
		t.Errorf("%v; marker %q, %v", err, marker, err2)
	}
}

// Redis may be emptied between any two steps of filling it.
func TestModelThatRedisForgetsIsNotReady(t *testing.T) {
	r, flush := store(t)
	m := readmodel.New(r, "desk")
	claim := func(was readmodel.Marker, c readmodel.Claim, want bool) {
		t.Helper()
		if ok, err := m.Claim(t.Context(), was, c); err != nil || ok != want {
			t.Fatalf("claim %s: %t, %v", c, ok, err)
		}
	}
	still := func(c readmodel.Claim, want bool) {
		t.Helper()
		if ok, err := m.Extend(t.Context(), c); err != nil || ok != want {
			t.Errorf("extend %s: %t, %v", c, ok, err)
		}
	}
	claim("", "a", true)
	claim("", "b", false)
	still("a", true)
	still("b", false)
	if ttl := r.TTL(t.Context(), "{desk}:marker").Val(); ttl <= 0 {
		t.Error("a claim does not lapse")
	}
	if err := m.Release(t.Context(), "b"); err != nil {
		t.Error(err)
	}
	still("a", true) // another's release changed nothing
	if err := m.Release(t.Context(), "a"); err != nil {
		t.Error(err)
	}
	claim("", "a", true)
	flush()
	claim("", "b", true)
	still("a", false)
	if ok, err := m.Finish(t.Context(), "a", ""); ok || err != nil {
		t.Errorf("a lost claim finished: %t, %v", ok, err)
	}
	if was, err := m.Marker(t.Context()); err != nil || !was.Claimed() || was.Ready() {
		t.Fatalf("marker %q, %v", was, err)
	}
	if _, err := m.ByCustomer(t.Context(), "acme-in", "cust_5519", readmodel.Query{Limit: 10}); !errors.Is(err, readmodel.ErrNotReady) {
		t.Errorf("while it is filled: %v", err)
	}
	if ok, err := m.Finish(t.Context(), "b", "run-1"); !ok || err != nil {
		t.Errorf("finish: %t, %v", ok, err)
	}
	if ttl := r.TTL(t.Context(), "{desk}:marker").Val(); ttl > 0 {
		t.Error("the marker lapses")
	}
}

// A model that became ready on another run of the server is filled again.
func TestMarkerRemembersTheServer(t *testing.T) {
	r, _ := store(t)
	m := readmodel.New(r, "desk")
	build(t, m, entry(1, 1))
	was, err := m.Marker(t.Context())
	if err != nil || !was.Ready() || was.Server() != "run-1" {
		t.Fatalf("marker %q, %v", was, err)
	}
	if ok, err := m.Claim(t.Context(), was, "again"); !ok || err != nil {
		t.Errorf("claim: %t, %v", ok, err)
	}
	if ok, err := m.Finish(t.Context(), "again", "run-2"); !ok || err != nil {
		t.Errorf("finish: %t, %v", ok, err)
	}
	if now, err := m.Marker(t.Context()); err != nil || !now.Ready() || now.Server() != "run-2" {
		t.Errorf("marker %q, %v", now, err)
	}
}

// A case is in the list of the state it waits in, and in no other; the oldest
// comes first, page by page.
func TestWaitingCasesTENANT1(t *testing.T) {
	r, _ := store(t)
	m := readmodel.New(r, "desk")
	in := func(n int, version uint64, state string) readmodel.Entry {
		e := entry(n, version)
		e.State = state
		return e
	}
	stranger := in(9, 1, "HUMAN_HANDOFF")
	stranger.Tenant = "other"
	build(t, m, in(1, 1, "HUMAN_HANDOFF"), in(2, 1, "AWAITING_APPROVAL"), in(3, 1, "HUMAN_HANDOFF"), in(4, 1, "INVESTIGATING"), in(5, 1, "HUMAN_HANDOFF"), stranger)
	list := func(state string, limit int) (ids string) {
		t.Helper()
		var q readmodel.Query
		for q.Limit = limit; ; {
			page, err := m.Waiting(t.Context(), "acme-in", state, q)
			if err != nil {
				t.Fatal(err)
			}
			for _, e := range page.Entries {
				ids += e.CaseID + " "
			}
			if q.After = page.Next; q.After.IsZero() {
				return strings.TrimSpace(ids)
			}
		}
	}
	if got := list("HUMAN_HANDOFF", 2); got != "req-1 req-3 req-5" {
		t.Errorf("waiting: %q", got)
	}
	put(t, m, in(3, 2, "AWAITING_APPROVAL"), in(5, 2, "VERIFIED_CLOSED"), in(1, 1, "INVESTIGATING"))
	if got, other := list("HUMAN_HANDOFF", 10), list("AWAITING_APPROVAL", 10); got != "req-1" || other != "req-2 req-3" {
		t.Errorf("waiting: %q and %q", got, other)
	}
	put(t, m, in(3, 3, "HUMAN_HANDOFF"))
	if got := list("HUMAN_HANDOFF", 1); got != "req-1 req-3" {
		t.Errorf("waiting again: %q", got)
	}
	found := in(6, 1, "HUMAN_HANDOFF")
	found.Queue = "reconciliation"
	put(t, m, in(2, 2, "RECONCILING"), found)
	if got, other := list("RECONCILING", 1), list("HUMAN_HANDOFF", 1); got != "req-2 req-6" || other != "req-1 req-3" {
		t.Errorf("waiting for reconciliation: %q, else %q", got, other)
	}
	found.Version, found.State, found.Queue = 2, "VERIFIED_CLOSED", ""
	put(t, m, found)
	if got := list("RECONCILING", 1); got != "req-2" {
		t.Errorf("waiting for reconciliation: %q", got)
	}
	if _, err := m.Waiting(t.Context(), "acme-in", "a b", readmodel.Query{Limit: 1}); err == nil {
		t.Error("B55: a state that is no token")
	}
}

func TestCursorsAreStrict(t *testing.T) {
	t.Parallel()
	for _, bad := range []string{"a", "!", "MDE5Y2UxZjk2M2MwOnJlcS0x\n", "MDE5Y2UxZjk2M2MwOg", strings.Repeat("A", 400), "MDE5Q0UxRjk2M0MwOnJlcS0x", "KG5vdCBoZXgpLi4uOnJlcS0x"} {
		if c, err := readmodel.ParseCursor(bad); !errors.Is(err, readmodel.ErrCursor) {
			t.Errorf("%q read as %q, %v", bad, c, err)
		}
	}
	if c, err := readmodel.ParseCursor(""); err != nil || !c.IsZero() {
		t.Errorf("no cursor: %q, %v", c, err)
	}
}

func FuzzParseCursor(f *testing.F) {
	for _, s := range []string{"", "MDE5Y2UxZjk2M2MwOnJlcS0x", "KDAxOWNlMWY5NjNjMDpyZXEtMQ", "Kw"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		c, err := readmodel.ParseCursor(s)
		if err == nil && c.String() != s {
			t.Errorf("%q came back as %q", s, c)
		}
		if err != nil && !c.IsZero() {
			t.Errorf("%q refused and read as %q", s, c)
		}
	})
}
