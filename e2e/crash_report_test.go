package e2e_test

import (
	"cmp"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"text/tabwriter"

	"github.com/amends-dev/amends/internal/roles"
)

// name says who is killed where.
func (c *crash) name() string {
	return strings.Join([]string{string(c.service), c.point, c.inputName()}, " ")
}

func (c *crash) inputName() string {
	names := c.story.inputs
	switch c.service {
	case roles.Gateway:
		names = c.story.requests
	case roles.RefundExecutor:
		names = c.story.tasks
	default:
	}
	if c.input < 1 || c.input > len(names) {
		return fmt.Sprintf("input %d", c.input)
	}
	return names[c.input-1]
}

// seconds is how long after the first kill the case ended.
func (c *crash) seconds() float64 {
	if len(c.killed) == 0 {
		return 0
	}
	return max(c.ended.Sub(c.killed[0]).Seconds(), 0)
}

var printing sync.Mutex

// report prints what came of every kill.
func report(t *testing.T, plan []*crash) {
	t.Helper()
	if !*everywhere {
		return
	}
	printing.Lock()
	defer printing.Unlock()
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 1, ' ', tabwriter.Debug)
	fmt.Fprintln(w, "service\tpoint\tstory\tat\tkilled\trefunds\tend\tversions\tbesides\tseconds")
	for _, c := range plan {
		killed := fmt.Sprint(len(c.killed))
		if c.stays {
			killed = "1 of 2"
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%d\t%s\t%d\t%s\t%.1f\n", c.service, c.point, c.story.name, c.inputName(), killed,
			c.found.refunds, c.found.state, c.found.versions, strings.Join(c.found.extra, " "), c.seconds())
	}
	_ = w.Flush() // to the terminal
}

// summary prints the table of docs/crash-tests.md: what came of each point.
func summary(plan []*crash) {
	byPoint := map[string][]*crash{}
	var order []string
	for _, c := range plan {
		key := string(c.service) + " | " + c.point
		if byPoint[key] == nil {
			order = append(order, key)
		}
		byPoint[key] = append(byPoint[key], c)
	}
	w := os.Stdout
	fmt.Fprintln(w, "\n| service | point | kills | cases | refunds | wanted | ended | slowest |\n|---|---|---|---|---|---|---|---|")
	for _, key := range order {
		cases := byPoint[key]
		kills, refunds, wanted, ends := 0, 0, 0, map[string]int{}
		for _, c := range cases {
			kills, refunds, wanted = kills+len(c.killed), refunds+c.found.refunds, wanted+len(c.story.refunds)
			ends[c.found.state]++
		}
		slowest := slices.MaxFunc(cases, func(a, b *crash) int { return cmp.Compare(a.seconds(), b.seconds()) })
		var ended []string
		for _, state := range slices.Sorted(maps.Keys(ends)) {
			ended = append(ended, fmt.Sprintf("%d %s", ends[state], state))
		}
		fmt.Fprintf(w, "| %s | %d | %d | %d | %d | %s | %.1f s |\n", key, kills, len(cases), refunds, wanted, strings.Join(ended, ", "), slowest.seconds())
	}
}
