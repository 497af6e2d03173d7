package console

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"github.com/amends-dev/amends/internal/bus"
	"github.com/amends-dev/amends/internal/casework"
	"github.com/amends-dev/amends/internal/deskapi"
	"github.com/amends-dev/amends/internal/edge"
	"github.com/amends-dev/amends/internal/roles"
	"github.com/amends-dev/amends/internal/subject"
	amendsv1 "github.com/amends-dev/amends/proto/amends/v1"
)

const (
	// versionWait is how long a version the caller names is waited for, and
	// versionPoll the first pause between two looks; pauses double.
	versionWait = 2 * time.Second
	versionPoll = 5 * time.Millisecond
	maxPoll     = 200 * time.Millisecond
)

var (
	notReached = deskapi.NewProblem(http.StatusServiceUnavailable, deskapi.CodeVersionNotReached, "the case has not reached that version").After(time.Second)
	badVersion = deskapi.NewProblem(http.StatusBadRequest, deskapi.CodeBodyInvalid, deskapi.ParamMinVersion+" is not a number")
)

// read gives the record of the request's case.
func (c *console) read(r request) (*amendsv1.CaseRecord, *deskapi.Problem) {
	var want uint64
	if s := r.URL.Query().Get(deskapi.ParamMinVersion); s != "" {
		v, err := strconv.ParseUint(s, 10, 64)
		if err != nil {
			return nil, badVersion
		}
		want = v
	}
	rec, err := c.await(r.Context(), r.tenant, r.caseID, want)
	switch {
	case err == nil && rec.GetVersion() < want:
		return nil, notReached
	case err == nil:
		return rec, nil
	case errors.Is(err, bus.ErrNotFound) && want == 0:
		return nil, unknownCase
	case errors.Is(err, bus.ErrNotFound):
		return nil, notReached
	}
	c.log.LogAttrs(r.Context(), slog.LevelWarn, "case record not readable",
		slog.String("tenant", r.tenant), slog.String("case_id", r.caseID), slog.Any("error", err))
	return nil, unavailable
}

// await reads the record, for a wanted version again until it is there or
// versionWait is over. It gives what it read last.
func (c *console) await(ctx context.Context, tenant, caseID string, want uint64) (*amendsv1.CaseRecord, error) {
	over := time.NewTimer(versionWait)
	defer over.Stop()
	for pause := versionPoll; ; pause = min(2*pause, maxPoll) {
		rec, err := c.load(ctx, tenant, caseID)
		early := err == nil && rec.GetVersion() < want || errors.Is(err, bus.ErrNotFound) && want > 0
		if !early {
			return rec, err
		}
		again := time.NewTimer(pause)
		select {
		case <-again.C:
			continue
		case <-over.C:
		case <-ctx.Done():
		}
		again.Stop()
		return rec, err
	}
}

func (c *console) load(ctx context.Context, tenant, caseID string) (*amendsv1.CaseRecord, error) {
	m, err := c.bus.LastDirect(ctx, roles.StreamCases, subject.Case(tenant, caseID))
	if err != nil {
		return nil, err
	}
	var commit amendsv1.CaseCommit
	if err := proto.Unmarshal(m.Data, &commit); err != nil {
		return nil, fmt.Errorf("decode the case: %w", err)
	}
	if commit.GetRecord() == nil {
		return nil, errors.New("decode the case: no record")
	}
	return commit.GetRecord(), nil
}

// showRecord handles GET /v1/cases/{tenant}/{case}.
func (c *console) showRecord(w http.ResponseWriter, r request) *deskapi.Problem {
	rec, problem := c.read(r)
	if problem != nil {
		return problem
	}
	body, err := recordJSON(rec)
	if err != nil {
		return c.fault(r, err)
	}
	edge.WriteJSON(w, http.StatusOK, deskapi.Record{
		Tenant: rec.GetTenant(), CaseID: rec.GetCaseId(), Version: rec.GetVersion(), State: stateName(rec.GetState()),
		Decisions: judgements(rec), Held: casework.Held(rec), Stops: c.holding(r, rec), Record: body,
	})
	return nil
}

// judgements picks the decisions out of what the case handled; the console
// sends nothing else to a case.
func judgements(rec *amendsv1.CaseRecord) []deskapi.Judgement {
	out := []deskapi.Judgement{}
	for _, h := range rec.GetHandled() {
		if h.GetSender() == string(roles.Console) {
			out = append(out, deskapi.Judgement{
				MessageID: h.GetMessageId(), Version: h.GetVersion(), State: stateAt(rec, h.GetVersion()), Refused: h.GetRefused(),
			})
		}
	}
	return out
}

// stateAt gives the state a version led to; the timeline is in their order.
func stateAt(rec *amendsv1.CaseRecord, version uint64) string {
	i, ok := slices.BinarySearchFunc(rec.GetTimeline(), version, func(e *amendsv1.TimelineEntry, v uint64) int {
		return cmp.Compare(e.GetVersion(), v)
	})
	if !ok {
		return ""
	}
	return stateName(rec.GetTimeline()[i].GetState())
}

// recordJSON names every field that staff see.
func recordJSON(r *amendsv1.CaseRecord) (json.RawMessage, error) {
	return protoJSON(&amendsv1.CaseRecord{
		Tenant: r.GetTenant(), CaseId: r.GetCaseId(), RequestId: r.GetRequestId(), CustomerId: r.GetCustomerId(), Channel: r.GetChannel(),
		Version: r.GetVersion(), State: r.GetState(), OpenedAt: r.GetOpenedAt(), UpdatedAt: r.GetUpdatedAt(),
		TraceId: r.GetTraceId(), Pins: r.GetPins(), ContinuesCaseId: r.GetContinuesCaseId(), ContinuedByCaseId: r.GetContinuedByCaseId(),
		Messages: r.GetMessages(), Triage: r.GetTriage(), Tasks: r.GetTasks(), Payment: r.GetPayment(), Policy: r.GetPolicy(),
		Decision: r.GetDecision(), Action: r.GetAction(), ActionSha256: r.GetActionSha256(), Approvals: r.GetApprovals(),
		Effect: r.GetEffect(), PastEffects: r.GetPastEffects(), OutcomeUnknown: r.GetOutcomeUnknown(), Draft: r.GetDraft(), Verification: r.GetVerification(),
		Reply: r.GetReply(), Replies: r.GetReplies(), Custody: r.GetCustody(), Conflicts: r.GetConflicts(),
		CancelRevision: r.GetCancelRevision(), Deadlines: r.GetDeadlines(), Consumption: r.GetConsumption(), Timeline: r.GetTimeline(),
	})
}

func protoJSON(m proto.Message) (json.RawMessage, error) {
	body, err := protojson.Marshal(m)
	if err != nil {
		return nil, fmt.Errorf("encode %s: %w", m.ProtoReflect().Descriptor().Name(), err)
	}
	return body, nil
}

// fault answers for what should not be able to happen.
func (c *console) fault(r request, err error) *deskapi.Problem {
	c.log.LogAttrs(r.Context(), slog.LevelError, "request not answered",
		slog.String("tenant", r.tenant), slog.String("case_id", r.caseID), slog.Any("error", err))
	return deskapi.NewProblem(http.StatusInternalServerError, deskapi.CodeInternal, "")
}

func stateName(s amendsv1.CaseState) string { return strings.TrimPrefix(s.String(), "CASE_STATE_") }
