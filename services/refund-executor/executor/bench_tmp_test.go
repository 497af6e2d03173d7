package executor_test

import (
	"fmt"
	"testing"
	"time"
)

func TestTmpBench(t *testing.T) {
	d := open(t)
	d.cfg.Payments.URL = d.provider.URL
	const n = 3000
	for i := range n {
		d.order(fmt.Sprintf("o%d", i), 200000, 2)
	}
	var asked []string
	for i := range n {
		a := duplicate(fmt.Sprintf("o%d", i), 200000)
		asked = append(asked, d.send(execute(a, d.sign(d.maya, a, 1))))
	}
	start := time.Now()
	d.run()
	for _, x := range asked {
		d.answer(x)
	}
	t.Logf("%.0f/s", n/time.Since(start).Seconds())
}
