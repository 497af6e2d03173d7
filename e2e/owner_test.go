package e2e_test

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/nats-io/nats.go/jetstream"
	"google.golang.org/protobuf/encoding/prototext"

	"github.com/amends-dev/amends/internal/allinone"
	"github.com/amends-dev/amends/internal/bus/bustest"
	"github.com/amends-dev/amends/internal/deskapi"
	"github.com/amends-dev/amends/internal/deskclient"
	"github.com/amends-dev/amends/internal/roles"
	amendsv1 "github.com/amends-dev/amends/proto/amends/v1"
)

// Bug B73: an order that nobody has and one of somebody else get answers that
// are equal byte for byte, over equal work: the same versions and states, the
// same look-ups with the same outcomes, the same number of messages on every
// stream. Nothing in it can be told apart by its time.
func TestForeignOrderTakesTheCourseOfAnUnknownOneB73(t *testing.T) {
	t.Parallel()
	w := start(t, allinone.Options{})
	w.orders(1, true) // 8472 is the customer's own; it is taken from them below
	l, err := w.Provider.Ledger(w.ctx)
	if err != nil {
		t.Fatal(err)
	}
	for i := range l.Orders {
		l.Orders[i].CustomerID = "cust_7001"
	}
	if err := w.Provider.Load(w.ctx, l); err != nil {
		t.Fatal(err)
	}
	foreign, unknown := "8472", "9472"
	views := map[string]deskapi.View{}
	for _, order := range []string{foreign, unknown} {
		_, err := w.gateway.Post(w.ctx, deskclient.Post{
			Key: "k-" + order, CaseID: "req-" + order, Message: "Order " + order + " was charged twice, and my refund has not arrived.",
		})
		if err != nil {
			t.Fatal(err)
		}
		views[order] = w.until("req-"+order, 0, func(v deskapi.View) bool { return v.State == "AWAITING_CUSTOMER" && len(v.Replies) > 0 })
	}
	a, b := views[foreign], views[unknown]
	if len(a.Replies) != len(b.Replies) || a.Version != b.Version || a.OrderID != b.OrderID {
		t.Fatalf("foreign %+v\nunknown %+v", a, b)
	}
	for i := range a.Replies {
		if x, y := a.Replies[i], b.Replies[i]; x.Text != y.Text || x.Kind != y.Kind || x.Version != y.Version {
			t.Errorf("foreign: %s %q\nunknown: %s %q", x.Kind, x.Text, y.Kind, y.Text)
		}
		if strings.Contains(a.Replies[i].Text, foreign) {
			t.Errorf("the reply names the order: %q", a.Replies[i].Text)
		}
	}
	for i := range a.Timeline {
		if a.Timeline[i].State != b.Timeline[i].State || a.Timeline[i].Version != b.Timeline[i].Version {
			t.Errorf("version %d: %s and %s", i+1, a.Timeline[i].State, b.Timeline[i].State)
		}
	}
	logs := w.logs()
	if x, y := course(logs["req-"+foreign], foreign), course(logs["req-"+unknown], unknown); x != y {
		t.Errorf("foreign:\n%s\nunknown:\n%s", x, y)
	}
	bustest.Await(t, "equal traffic of both cases", func() bool {
		x, y := w.traffic("req-"+foreign), w.traffic("req-"+unknown)
		return slices.Equal(x, y) && len(x) > 4
	})
}

// course gives what is recorded of a case, without what always differs: ids,
// hashes, times, and its order's number.
func course(log []*amendsv1.CaseCommit, order string) string {
	var b strings.Builder
	for _, c := range log {
		text := strings.ReplaceAll(prototext.MarshalOptions{Multiline: true}.Format(c), order, "ORDER")
		for _, line := range strings.Split(text, "\n") {
			line = strings.Join(strings.Fields(line), " ")
			if !strings.HasPrefix(line, "seconds:") && !strings.HasPrefix(line, "nanos:") {
				b.WriteString(random.ReplaceAllString(line, "#") + "\n")
			}
		}
	}
	return b.String()
}

// random are message ids, traces, hashes, and payloads.
var random = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f-]{27}|[0-9a-f]{64}|[0-9a-f]{32}|^payload: .*`)

// traffic counts what every stream holds about a case, by who sent it to whom.
func (w *world) traffic(id string) []string {
	w.t.Helper()
	counts := map[string]int{}
	for _, stream := range roles.Desk().Streams {
		w.read(stream.Name, func(m jetstream.Msg) {
			if subj, ok := strings.CutSuffix(m.Subject(), "."+id); ok {
				counts[subj]++
			}
		})
	}
	var out []string
	for subj, n := range counts {
		out = append(out, fmt.Sprint(subj, " ", n))
	}
	slices.Sort(out)
	return out
}
