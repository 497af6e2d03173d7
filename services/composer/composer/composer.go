package composer

import (
	"context"
	"log/slog"
	"strings"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/amends-dev/amends/internal/bus"
	"github.com/amends-dev/amends/internal/taskwork"
	amendsv1 "github.com/amends-dev/amends/proto/amends/v1"
)

// Deps are what the composer works with.
type Deps struct {
	Bus *bus.Conn
	Log *slog.Logger
	Now func() time.Time
}

// language of everything the deterministic engine writes.
const language = "en"

const reasonClaimUnknown = "claim_unknown"

// Run works on compose tasks until ctx ends.
func Run(ctx context.Context, cfg Config, deps Deps) error {
	work := func(_ context.Context, t taskwork.Task) (proto.Message, error) { return write(t.Assign.GetCompose()) }
	return taskwork.Run(ctx, deps.Bus, taskwork.Options{
		Workers: cfg.Workers, Slices: []amendsv1.Slice{amendsv1.Slice_SLICE_COMPOSE}, Now: deps.Now,
	}, work)
}

// write is the deterministic engine: a sentence a fact, in the facts' order.
func write(s *amendsv1.ComposeSlice) (proto.Message, error) {
	facts := merge(s.GetFacts())
	p := page{facts: facts}
	var text strings.Builder
	if s.GetOrderId() != "" && s.GetKind() != amendsv1.ReplyKind_REPLY_KIND_CLARIFY {
		text.WriteString("About order " + s.GetOrderId() + ":")
	}
	var last string
	for _, c := range facts {
		sentence, err := p.sentence(c)
		if err != nil {
			return nil, taskwork.Fail(reasonClaimUnknown, false, err)
		}
		if sentence == last {
			continue
		}
		if text.Len() > 0 {
			text.WriteByte(' ')
		}
		text.WriteString(sentence)
		last = sentence
	}
	if s.GetKind() == amendsv1.ReplyKind_REPLY_KIND_EXPLAIN {
		text.WriteString(" If this does not match what you see, please reply to this message.")
	}
	return &amendsv1.Draft{Kind: s.GetKind(), Text: text.String(), Claims: s.GetFacts(), FactsSha256: s.GetFactsSha256(), Language: language}, nil
}

// merge adds up the duplicates of one amount, so that three captures read as
// one statement.
func merge(facts []*amendsv1.Claim) []*amendsv1.Claim {
	out := make([]*amendsv1.Claim, 0, len(facts))
next:
	for _, c := range facts {
		if c.GetKind() == amendsv1.ClaimKind_CLAIM_KIND_DUPLICATE_FOUND {
			for i, have := range out {
				if have.GetKind() == c.GetKind() && proto.Equal(have.GetAmount(), c.GetAmount()) {
					out[i] = proto.CloneOf(have)
					out[i].Count += c.GetCount()
					continue next
				}
			}
		}
		out = append(out, c)
	}
	return out
}
