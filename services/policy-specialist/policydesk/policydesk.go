package policydesk

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/amends-dev/amends/internal/boot"
	"github.com/amends-dev/amends/internal/bus"
	"github.com/amends-dev/amends/internal/policy"
	"github.com/amends-dev/amends/internal/roles"
	"github.com/amends-dev/amends/internal/taskwork"
	"github.com/amends-dev/amends/internal/tools"
	amendsv1 "github.com/amends-dev/amends/proto/amends/v1"
)

// Deps are what the specialist works with.
type Deps struct {
	Bus *bus.Conn
	Log *slog.Logger
	Now func() time.Time
}

const (
	callSearch = 1

	reasonCorpusUnknown = "corpus_version_unknown"
	reasonSearchRefused = "policy_search_refused"
)

// Run works on policy tasks until ctx ends.
func Run(ctx context.Context, cfg Config, deps Deps) error {
	if deps.Now == nil {
		deps.Now = time.Now
	}
	corpus, err := load(cfg.Corpus)
	if err != nil {
		return fmt.Errorf("%w: %w", boot.ErrConfig, err)
	}
	registry, err := tools.New(roles.Desk(), roles.PolicySpecialist, deps.Now)
	if err != nil {
		return err
	}
	work := func(ctx context.Context, t taskwork.Task) (proto.Message, error) {
		return read(ctx, registry.Open(t.Contract, t.Suffix, t.Envelope.GetAttempt(), t.Received), corpus, t.Assign.GetPolicy())
	}
	return taskwork.Run(ctx, deps.Bus, taskwork.Options{
		Workers: cfg.Workers, Slices: []amendsv1.Slice{amendsv1.Slice_SLICE_POLICY}, Now: deps.Now,
	}, work)
}

func load(dir string) (*policy.Corpus, error) {
	if dir == "" {
		return policy.Embedded()
	}
	return policy.Load(os.DirFS(dir))
}

// read is the deterministic engine: one search, as of the moment the case was
// received.
func read(ctx context.Context, s *tools.Session, corpus *policy.Corpus, q *amendsv1.PolicySlice) (proto.Message, error) {
	asOf := q.GetReceivedAt().AsTime().UTC()
	request := tools.Request{Number: callSearch, Tool: roles.ToolPolicySearch, Args: []tools.Arg{
		{Name: "topic", Value: q.GetTopic()}, {Name: "as_of", Value: asOf.Format(time.RFC3339)}, {Name: "corpus", Value: q.GetCorpusVersion()},
	}}
	f, err := tools.Call(ctx, s, request, func(context.Context, *amendsv1.Scope) (tools.Answer[policy.Finding], error) {
		if q.GetCorpusVersion() != corpus.Version() {
			return tools.Answer[policy.Finding]{}, &tools.Miss{
				Outcome: amendsv1.LookupOutcome_LOOKUP_OUTCOME_INCOMPLETE, Reason: reasonCorpusUnknown,
				Err: fmt.Errorf("this is corpus %s", corpus.Version()),
			}
		}
		f := corpus.Search(q.GetTopic(), asOf)
		raw, err := canonical(f)
		return tools.Answer[policy.Finding]{Value: f, Raw: raw, SourceVersion: corpus.Version()}, err
	})
	if _, refused := errors.AsType[*tools.Refused](err); refused {
		return nil, &taskwork.Failure{Reason: reasonSearchRefused, Err: err, Session: s}
	}
	calls := s.Calls()
	return &amendsv1.PolicyReading{
		Outcome: calls[0].GetOutcome(), Passage: f.Passage, Rule: f.Rule, Conflicts: f.Conflicts,
		CorpusVersion: corpus.Version(), Calls: calls, Usage: s.Usage(),
	}, nil
}

// canonical gives the bytes of a finding that its call is recorded with.
func canonical(f policy.Finding) ([]byte, error) {
	wire := proto.MarshalOptions{Deterministic: true}
	return wire.Marshal(&amendsv1.PolicyReading{Passage: f.Passage, Rule: f.Rule, Conflicts: slices.Concat(f.Conflicts, f.Superseded)})
}
