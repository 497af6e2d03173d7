package deliveries_test

import (
	"strconv"
	"testing"

	"github.com/amends-dev/amends/internal/bus/bustest"
	"github.com/amends-dev/amends/internal/roles"
)

// Every view comes again after a log was lost, also those that were
// acknowledged long ago, and also while they are being consumed.
func TestLostLogOfManyCases(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	const cases = 150
	ids := make([]string, cases)
	for i := range ids {
		ids[i] = "req-" + strconv.Itoa(i)
		w.publish(view(ids[i], 5, 5))
	}
	stop := w.run(w.endpoint(), hurried(), nil)
	for _, id := range ids {
		w.await(id, 1, delivered)
	}
	stop()
	w.Purge(roles.StreamDeliveries)
	w.run(w.endpoint(), hurried(), nil)
	w.run(w.endpoint(), hurried(), nil) // both walk, at once
	for _, id := range ids {
		w.await(id, 1, delivered)
	}
	w.Purge(roles.StreamDeliveries)
	w.Stop()
	w.Start()
	bustest.Await(t, "the broker is back", func() bool { return w.gateway.Ready() == nil && w.views.Ready() == nil })
	for _, id := range ids {
		w.await(id, 1, delivered)
	}
}
