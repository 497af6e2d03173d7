package bustest

import (
	"context"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// Count gives how many messages a stream holds under a subject filter.
func (b *Broker) Count(stream, filter string) int {
	b.tb.Helper()
	s, ctx := b.stream(stream)
	info, err := s.Info(ctx, jetstream.WithSubjectFilter(filter))
	if err != nil {
		b.tb.Fatal(err)
	}
	n := uint64(0)
	for _, held := range info.State.Subjects {
		n += held
	}
	return int(n)
}

// Purge empties streams, as a loss would.
func (b *Broker) Purge(streams ...string) {
	b.tb.Helper()
	for _, name := range streams {
		s, ctx := b.stream(name)
		if err := s.Purge(ctx); err != nil {
			b.tb.Fatal(err)
		}
	}
}

func (b *Broker) stream(name string) (jetstream.Stream, context.Context) {
	b.tb.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	b.tb.Cleanup(cancel)
	s, err := b.Admin().Stream(ctx, name)
	if err != nil {
		b.tb.Fatal(err)
	}
	return s, ctx
}
