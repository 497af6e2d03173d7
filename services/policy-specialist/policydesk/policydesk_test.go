package policydesk

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/amends-dev/amends/internal/bus"
	"github.com/amends-dev/amends/internal/bus/bustest"
	"github.com/amends-dev/amends/internal/policy"
	"github.com/amends-dev/amends/internal/roles"
	"github.com/amends-dev/amends/internal/taskwork/taskworktest"
	amendsv1 "github.com/amends-dev/amends/proto/amends/v1"
)

func desk(t *testing.T, cfg Config) *taskworktest.Desk {
	t.Helper()
	return taskworktest.Start(t, roles.PolicySpecialist, bustest.Options{}, func(ctx context.Context, conn *bus.Conn) error {
		return Run(ctx, cfg, Deps{Bus: conn, Log: slog.New(slog.DiscardHandler)})
	})
}

func task(d *taskworktest.Desk, topic, corpus string, at time.Time) *amendsv1.TaskAssign {
	return &amendsv1.TaskAssign{
		Contract: d.Contract(amendsv1.Slice_SLICE_POLICY),
		Input:    &amendsv1.TaskAssign_Policy{Policy: &amendsv1.PolicySlice{Topic: topic, ReceivedAt: timestamppb.New(at), CorpusVersion: corpus}},
	}
}

var march = time.Date(2026, 3, 12, 10, 14, 0, 0, time.UTC)

func TestReadingsOverTheBus(t *testing.T) {
	t.Parallel()
	d := desk(t, Defaults())

	d.Assign(task(d, "duplicate_charge_refund", policy.EmbeddedVersion, march))
	got := taskworktest.Answer[*amendsv1.PolicyReading](d)
	call := got.GetCalls()[0]
	if got.GetPassage().GetCitation() != "POL-REF-004 v4 section 2" || got.GetRule().GetWindowHours() != 720 || got.GetCorpusVersion() != policy.EmbeddedVersion || len(got.GetConflicts()) != 0 {
		t.Errorf("reading %v", got)
	}
	if call.GetCallId() != "call-8472-q1" || call.GetTool() != roles.ToolPolicySearch || call.GetOutcome() != amendsv1.LookupOutcome_LOOKUP_OUTCOME_SUPPORTED || got.GetOutcome() != call.GetOutcome() || call.GetResultSha256() == "" {
		t.Errorf("call %v", call)
	}

	d.Assign(task(d, "duplicate_charge_refund", policy.EmbeddedVersion, march.AddDate(-1, 0, 0)))
	if old := taskworktest.Answer[*amendsv1.PolicyReading](d); old.GetPassage().GetVersion() != 3 || old.GetRule().GetWindowHours() != 336 {
		t.Errorf("a year earlier: %v", old.GetPassage())
	}

	d.Assign(task(d, "quantum_gravity", policy.EmbeddedVersion, march))
	if none := taskworktest.Answer[*amendsv1.PolicyReading](d); none.GetOutcome() != amendsv1.LookupOutcome_LOOKUP_OUTCOME_SUPPORTED || none.GetPassage() != nil || none.GetRule() != nil {
		t.Errorf("nothing on the topic: %v", none)
	}

	d.Assign(task(d, "duplicate_charge_refund", "policy-corpus/1", march))
	if other := taskworktest.Answer[*amendsv1.PolicyReading](d); other.GetOutcome() != amendsv1.LookupOutcome_LOOKUP_OUTCOME_INCOMPLETE || other.GetPassage() != nil || other.GetCalls()[0].GetReason() != reasonCorpusUnknown {
		t.Errorf("another corpus: %v", other)
	}

	refused := task(d, "duplicate_charge_refund", policy.EmbeddedVersion, march)
	refused.Contract.PermittedTools = nil
	d.Assign(refused)
	if e := taskworktest.Answer[*amendsv1.TaskError](d); e.GetReason() != reasonSearchRefused || e.GetCalls()[0].GetReason() != "tool_not_permitted" {
		t.Errorf("without the tool: %v", e)
	}
}

func TestConflictingCorpusFromADirectory(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	document := func(id, window string) string {
		return "id: " + id + `
version: 1
title: Duplicate charges
authority: group
effective_from: 2025-01-01T00:00:00Z
topics: [duplicate_charge_refund]
rule: {name: duplicate_capture, window_hours: ` + window + `, approval_thresholds: [], second_thresholds: []}
sections: [{number: 1, heading: Duplicate charge, text: A duplicate charge is refunded.}]
`
	}
	for name, text := range map[string]string{"corpus.yaml": "version: test/1", "a.yaml": document("POL-A", "720"), "b.yaml": document("POL-B", "336")} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	cfg := Defaults()
	cfg.Corpus = dir
	d := desk(t, cfg)
	d.Assign(task(d, "duplicate_charge_refund", "test/1", march))
	if got := taskworktest.Answer[*amendsv1.PolicyReading](d); len(got.GetConflicts()) != 1 || got.GetConflicts()[0].GetCitation() != "POL-B v1 section 1" {
		t.Errorf("conflicts %v", got.GetConflicts())
	}
}

func TestABrokenCorpusRefusesToStart(t *testing.T) {
	t.Parallel()
	cfg := Defaults()
	cfg.Corpus = t.TempDir()
	if err := Run(t.Context(), cfg, Deps{Log: slog.New(slog.DiscardHandler)}); err == nil {
		t.Error("started without a corpus")
	}
	cfg.Workers = 0
	if cfg.Validate() == nil {
		t.Error("no workers accepted")
	}
}
