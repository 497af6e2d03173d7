package executor

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"
)

// tape says what happens in a schedule, one choice after the other.
type tape interface {
	// pick gives a number below n.
	pick(n int, what string) int
}

// shrinking is a tape that rapid can make shorter and calmer.
type shrinking struct{ t *rapid.T }

// upTo are generators of 0 to n.
var upTo = func() (g [256]*rapid.Generator[int]) {
	for n := range g {
		g[n] = rapid.IntRange(0, n)
	}
	return g
}()

// pick wraps around, for rapid is fond of the highest number and here the first
// is the calm one.
func (s shrinking) pick(n int, what string) int { return upTo[n].Draw(s.t, what) % n }

// random is a tape without end from a seed.
type random struct{ *rand.Rand }

func newRandom(seed uint64) random { return random{rand.New(rand.NewPCG(seed, 8472))} }

func (r random) pick(n int, _ string) int { return r.IntN(n) }

// shards run at once, each with a quarter of the schedules and its own seeds.
const shards = 4

// TestSchedulesMONEY1MONEY2MONEY3MONEY4TRUTH2AUTH2 runs executors, cases and
// people under schedules of duplicate deliveries, crashes, lost answers,
// cancels, stops and expiries, and judges what came of it.
func TestSchedulesMONEY1MONEY2MONEY3MONEY4TRUTH2AUTH2(t *testing.T) {
	t.Parallel()
	var met tally
	t.Run("shards", func(t *testing.T) {
		for i := range shards {
			t.Run(fmt.Sprint(i+1), func(t *testing.T) {
				t.Parallel()
				rapid.Check(t, func(t *rapid.T) {
					tp := shrinking{t}
					for range i { // one seed for all shards is still another tape for each
						tp.pick(255, "shard")
					}
					w := runSchedule(tp, bug{})
					met.add(w.saw)
					if w.broken != nil {
						t.Logf("%s: %s\n%s", w.broken.invariant, w.broken.detail, w.tale())
						t.Fatalf("%s does not hold", w.broken.invariant)
					}
				})
			})
		}
	})
	t.Log(&met)
	if met.schedules >= 20000 {
		for _, name := range met.unmet() {
			t.Errorf("no schedule met: %s", name)
		}
	}
}

// runSchedule plays one schedule to its end and judges it.
func runSchedule(tp tape, b bug) *world {
	w := newWorld(tp, b)
	defer w.close()
	for range 60 + 10*w.pick(20, "length") {
		if w.broken != nil {
			break
		}
		w.next()
	}
	w.comeToRest()
	w.judge()
	w.sawRefunds()
	return w
}
