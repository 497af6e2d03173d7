package orchestrator

import (
	"hash/maphash"
	"sync"

	"github.com/amends-dev/amends/internal/casestore"
	"github.com/amends-dev/amends/internal/casework"
)

// cacheSize bounds how many records a process remembers.
const cacheSize = 5_000

// cache remembers the newest record this process saw of a case. It may be
// stale: a commit on a stale record loses its compare-and-set.
type cache struct {
	mu   sync.Mutex
	snap map[string]casestore.Snapshot
}

func newCache() *cache { return &cache{snap: map[string]casestore.Snapshot{}} }

func (c *cache) get(tenant, id string) (casestore.Snapshot, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	s, ok := c.snap[tenant+"."+id]
	return s, ok
}

func (c *cache) put(s casestore.Snapshot) {
	key := s.Record.GetTenant() + "." + s.Record.GetCaseId()
	c.mu.Lock()
	defer c.mu.Unlock()
	if casework.Closed(s.Record) {
		delete(c.snap, key) // hardly anything comes for it any more
		return
	}
	for old := range c.snap {
		if len(c.snap) < cacheSize {
			break
		}
		delete(c.snap, old) // any: a lost entry costs one read
	}
	c.snap[key] = s
}

func (c *cache) drop(tenant, id string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.snap, tenant+"."+id)
}

// views remembers the sequence of the view this process stored last, so that
// the next one needs no read. The stream may lose its tail with the broker and
// use sequences again, so everything is forgotten when the connection was lost.
type views struct {
	mu  sync.Mutex
	seq map[string]uint64
}

func newViews() *views { return &views{seq: map[string]uint64{}} }

func (v *views) get(subj string) uint64 {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.seq[subj]
}

func (v *views) put(subj string, seq uint64, last bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if last || len(v.seq) >= cacheSize {
		delete(v.seq, subj)
		return
	}
	v.seq[subj] = seq
}

func (v *views) forget() {
	v.mu.Lock()
	defer v.mu.Unlock()
	clear(v.seq)
}

// locks serialises the work on one case inside this process.
type locks struct {
	seed    maphash.Seed
	stripes [1024]sync.Mutex
}

func newLocks() *locks { return &locks{seed: maphash.MakeSeed()} }

func (l *locks) lock(tenant, id string) (unlock func()) {
	m := &l.stripes[maphash.String(l.seed, tenant+"."+id)%uint64(len(l.stripes))]
	m.Lock()
	return m.Unlock
}
