package orchestrator

import (
	"testing"

	"github.com/amends-dev/amends/internal/casework"
	"github.com/amends-dev/amends/internal/roles"
)

// What a killed process held comes again while there is time to do it:
// deadlines run from the broker's time of the input that starts them, so a task
// that an input causes on its second delivery must not be late when it is sent,
// and an answer of a second try not when it arrives (LIVE-1, B39).
func TestRedeliveryComesBeforeTheDeadlines(t *testing.T) {
	t.Parallel()
	lim := casework.DefaultLimits()
	for _, c := range roles.Desk().Consumers {
		if c.Stream == roles.StreamCases || c.Stream == roles.StreamViews {
			continue // what is read there moves no case on
		}
		if c.AckWait > lim.EffectDeadline/2 {
			t.Errorf("%s: what was in a killed process comes after %s; an effect has %s", c.Name, c.AckWait, lim.EffectDeadline)
		}
		if 2*c.AckWait > lim.Deadline/2 {
			t.Errorf("%s: what was in a killed process twice comes after %s; a task has %s", c.Name, 2*c.AckWait, lim.Deadline)
		}
	}
}
