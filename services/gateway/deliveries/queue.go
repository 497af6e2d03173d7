package deliveries

import (
	"container/heap"
	"sync"
	"time"
)

// maxQueue bounds the cases one endpoint's queue holds. What does not fit is
// still in the log, and is found there when there is room again.
const maxQueue = 100_000

// queue knows when which case of an endpoint is due next. It is a cache of the
// log.
type queue struct {
	// wake is told when something may be due earlier than before.
	wake chan struct{}

	mu    sync.Mutex
	items items
	by    map[string]*item
	// short: something did not fit.
	short bool
}

type item struct {
	caseID string
	at     time.Time
	index  int
}

func newQueue() *queue { return &queue{wake: make(chan struct{}, 1), by: map[string]*item{}} }

// set plans a look at a case.
func (q *queue) set(caseID string, at time.Time) {
	q.mu.Lock()
	defer q.mu.Unlock()
	switch it := q.by[caseID]; {
	case it != nil:
		it.at = at
		heap.Fix(&q.items, it.index)
	case len(q.items) >= maxQueue:
		q.short = true
		return
	default:
		it = &item{caseID: caseID, at: at}
		q.by[caseID] = it
		heap.Push(&q.items, it)
	}
	select {
	case q.wake <- struct{}{}:
	default:
	}
}

func (q *queue) remove(caseID string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if it := q.by[caseID]; it != nil {
		heap.Remove(&q.items, it.index)
		delete(q.by, caseID)
	}
}

// pop takes a case that is due, or says how long until one is.
func (q *queue) pop(now time.Time) (caseID string, wait time.Duration) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.items) == 0 {
		return "", time.Hour // or until something is planned
	}
	first := q.items[0]
	if first.at.After(now) {
		return "", first.at.Sub(now)
	}
	heap.Remove(&q.items, 0)
	delete(q.by, first.caseID)
	return first.caseID, 0
}

// room reports, once, that something did not fit and now may.
func (q *queue) room() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if !q.short || len(q.items) > maxQueue/2 {
		return false
	}
	q.short = false
	return true
}

// items is a heap by time.
type items []*item

func (s items) Len() int           { return len(s) }
func (s items) Less(i, j int) bool { return s[i].at.Before(s[j].at) }
func (s items) Swap(i, j int) {
	s[i], s[j] = s[j], s[i]
	s[i].index, s[j].index = i, j
}

func (s *items) Push(x any) {
	if it, ok := x.(*item); ok {
		it.index = len(*s)
		*s = append(*s, it)
	}
}

func (s *items) Pop() any {
	last := (*s)[len(*s)-1]
	*s = (*s)[:len(*s)-1]
	return last
}
