package gateway

import (
	"context"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"google.golang.org/protobuf/proto"

	"github.com/amends-dev/amends/internal/bus/bustest"
	"github.com/amends-dev/amends/internal/deskapi"
	"github.com/amends-dev/amends/internal/deskclient"
	"github.com/amends-dev/amends/internal/roles"
	"github.com/amends-dev/amends/internal/subject"
)

// BenchmarkPostAndFollow is one customer's part of a case: a post, and a stream
// of five views until the case is closed.
func BenchmarkPostAndFollow(b *testing.B) {
	broker := bustest.Desk(b, bustest.Options{})
	writes := broker.Connect(roles.Orchestrator)
	cfg := testConfig(miniredis.RunT(b).Addr())
	plenty := Rate{100000, 100000}
	cfg.Limits.Posts, cfg.Limits.CustomerPosts, cfg.Limits.TenantPosts = plenty, plenty, plenty
	cfg.Limits.Reads, cfg.Limits.CustomerReads, cfg.Limits.TenantReads = plenty, plenty, plenty
	ready, ended := make(chan string, 1), make(chan error, 1)
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		ended <- Run(ctx, cfg, Deps{Bus: broker.Connect(roles.Gateway), Ready: func(addr string) { ready <- addr }})
	}()
	client, err := deskclient.NewGateway(deskclient.Config{URL: "http://" + <-ready, Token: webKey, Transport: deskclient.NewTransport(64)})
	if err != nil {
		b.Fatal(err)
	}
	var keys atomic.Int64
	start := time.Now()
	b.ReportAllocs()
	b.SetParallelism(32)
	b.ResetTimer()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			got, err := client.Post(ctx, deskclient.Post{Key: "k-" + strconv.FormatInt(keys.Add(1), 10), Message: "Order 8472 was charged twice"})
			if err != nil {
				b.Error(err)
				return
			}
			publish := func(version uint64, state string) error {
				data, err := proto.Marshal(view(got.CaseID, version, state))
				if err != nil {
					return err
				}
				_, err = writes.Publish(ctx, subject.View("acme-in", got.CaseID), data)
				return err
			}
			if err := publish(1, "RECEIVED"); err != nil {
				b.Error(err)
				return
			}
			err = client.Follow(ctx, got.CaseID, "", 0, func(v deskapi.View) error {
				switch {
				case v.Closed:
					return nil
				case v.Version < 4:
					return publish(v.Version+1, "INVESTIGATING")
				}
				return publish(v.Version+1, "VERIFIED_CLOSED")
			})
			if err != nil {
				b.Error(err)
				return
			}
		}
	})
	b.ReportMetric(float64(b.N)/time.Since(start).Seconds(), "cases/s")
	cancel()
	if err := <-ended; err != nil {
		b.Error(err)
	}
}
