package bus_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/amends-dev/amends/internal/bus"
	"github.com/amends-dev/amends/internal/bus/bustest"
	"github.com/amends-dev/amends/internal/roles"
	"github.com/amends-dev/amends/internal/subject"
)

// cpu is the processor time this process has used, client and broker together.
func cpu() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

func measure(b *testing.B, workers int, op func(i int64) error) {
	b.SetParallelism((workers + 1) / 2)
	var n atomic.Int64
	b.ReportAllocs()
	b.ResetTimer()
	used := cpu()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			if err := op(n.Add(1)); err != nil {
				b.Error(err)
				return
			}
		}
	})
	b.ReportMetric(float64((cpu()-used).Nanoseconds())/1e3/float64(b.N), "cpu-µs/op")
}

func BenchmarkPublish(b *testing.B) {
	desk := bustest.Desk(b, bustest.Options{})
	data := make([]byte, 700)
	ctx := context.Background()
	for _, workers := range []int{2, 64} {
		b.Run(fmt.Sprintf("bus/%d", workers), func(b *testing.B) {
			c := desk.Connect(roles.Orchestrator)
			measure(b, workers, func(i int64) error {
				_, err := c.Publish(ctx, subject.Task("composer", "t", fmt.Sprint("c", i%4096)), data)
				return err
			})
		})
		b.Run(fmt.Sprintf("busCAS/%d", workers), func(b *testing.B) {
			c := desk.Connect(roles.Orchestrator)
			x := time.Now().UnixNano()
			measure(b, workers, func(i int64) error {
				_, err := c.Publish(ctx, subject.Case("t", fmt.Sprint("c", x, "-", i)), data, bus.ExpectLast(0))
				return err
			})
		})
		b.Run(fmt.Sprintf("jetstream/%d", workers), func(b *testing.B) {
			nc := desk.Raw(roles.Orchestrator, nats.ReconnectBufSize(-1))
			js, err := jetstream.NewWithAPIPrefix(nc, bus.DefaultAPIPrefix)
			if err != nil {
				b.Fatal(err)
			}
			measure(b, workers, func(i int64) error {
				ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
				defer cancel()
				_, err := js.PublishMsg(ctx, &nats.Msg{Subject: subject.Task("composer", "t", fmt.Sprint("c", i%4096)), Data: data})
				return err
			})
		})
	}
}

func BenchmarkConsume(b *testing.B) {
	desk := bustest.Desk(b, bustest.Options{})
	ctx := context.Background()
	orch, composer := desk.Connect(roles.Orchestrator), desk.Connect(roles.Composer)
	data := make([]byte, 700)
	b.Run("raw", func(b *testing.B) {
		var wg sync.WaitGroup
		next := make(chan int)
		for range 64 {
			wg.Go(func() {
				for i := range next {
					if _, err := orch.Publish(ctx, subject.Task("composer", "t", fmt.Sprint("c", i%4096)), data); err != nil {
						b.Error(err)
					}
				}
			})
		}
		for i := range b.N {
			next <- i
		}
		close(next)
		wg.Wait()
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		var n atomic.Int64
		b.ReportAllocs()
		b.ResetTimer()
		used := cpu()
		err := composer.ConsumeRaw(ctx, roles.TaskConsumer(roles.Composer), func(context.Context, *bus.Raw) error {
			if n.Add(1) == int64(b.N) {
				b.StopTimer()
				b.ReportMetric(float64((cpu()-used).Nanoseconds())/1e3/float64(b.N), "cpu-µs/op")
				cancel()
			}
			return nil
		}, bus.ConsumeOptions{Workers: 64})
		if err != nil {
			b.Fatal(err)
		}
	})
}
