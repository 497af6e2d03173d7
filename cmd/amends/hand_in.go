package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/amends-dev/amends/internal/deskapi"
	"github.com/amends-dev/amends/internal/deskclient"
	"github.com/amends-dev/amends/internal/display"
	amendsv1 "github.com/amends-dev/amends/proto/amends/v1"
)

const (
	handInTries = 4
	// askAgain is the first pause of the wait for a judgement; pauses double.
	askAgain = 100 * time.Millisecond
	maxPause = 2 * time.Second
)

// handIn sends what counts once however often it is sent, and the same again
// while the console cannot take it.
func handIn[T, A any](ctx context.Context, send func(context.Context, T) (A, error), what T) (A, error) {
	pause := 200 * time.Millisecond
	for try := 1; ; try++ {
		relayed, err := send(ctx, what)
		if err == nil {
			return relayed, nil
		}
		if p, ok := errors.AsType[*deskapi.Problem](err); ok {
			if p.RetryAfter == 0 {
				return relayed, err
			}
			pause = min(p.RetryAfter, maxPause)
		}
		if try == handInTries {
			return relayed, err
		}
		if err := sleep(ctx, pause); err != nil {
			return relayed, err
		}
	}
}

// decisionSent is a decision on its way to its case.
type decisionSent struct {
	*amendsv1.SignedDecision
	handedIn
}

// handedIn is something signed on its way to its case.
type handedIn struct {
	tenant, caseID, messageID string
	// version is that of the case it was made on.
	version uint64
}

// decided is the result for machines.
type decided struct {
	ApprovalID   string `json:"approval_id"`
	Verdict      string `json:"verdict"`
	Tenant       string `json:"tenant"`
	CaseID       string `json:"case_id"`
	ActionSHA256 string `json:"action_sha256"`
	MessageID    string `json:"message_id"`
	// Recorded: the case holds the decision, be it as one that counts or as a
	// refused one. Version, State and Refused say what it came to.
	Recorded bool   `json:"recorded"`
	Refused  string `json:"refused"`
	Version  uint64 `json:"version"`
	State    string `json:"state"`
	// Unjudged: the judgement was waited for and did not come.
	Unjudged bool `json:"unjudged"`
}

// report tells what became of a decision. It is an error unless the decision
// counts, or nobody wanted to wait.
func (f *signFlags) report(ctx context.Context, t *terminal, desk *deskclient.Console, d decisionSent) error {
	word, done := "deny", "denied"
	if d.GetVerdict() == amendsv1.Verdict_VERDICT_APPROVE {
		word, done = "approve", "approved"
	}
	out := decided{
		ApprovalID: d.GetApprovalId(), Verdict: word, Tenant: d.GetTenant(), CaseID: d.GetCaseId(),
		ActionSHA256: d.GetActionSha256(), MessageID: d.messageID,
	}
	line := fmt.Sprintf("%s handed in as %s", word, out.ApprovalID)
	var failure error
	if !f.NoWait {
		ctx, cancel := context.WithTimeout(ctx, f.Wait)
		defer cancel()
		j, err := judgement(ctx, desk, d.handedIn)
		switch {
		case err != nil:
			out.Unjudged = true
			failure = fmt.Errorf("handed in as %s, not judged yet: %w", out.ApprovalID, err)
		case j.Refused != "":
			failure = errors.New("refused: " + display.Line(j.Refused))
		}
		out.Recorded, out.Refused, out.Version, out.State = err == nil, j.Refused, j.Version, j.State
		line = fmt.Sprintf("%s as %s (v%d, %s)", done, out.ApprovalID, j.Version, display.Line(j.State))
	}
	if f.JSON {
		return errors.Join(t.writeJSON(out), failure)
	}
	if failure == nil {
		fmt.Fprintln(t.out, line)
	}
	return failure
}

// judgement waits until the case has judged a decision. The console holds each
// request for a while until the case has another version; a read that fails is
// repeated if it may be.
func judgement(ctx context.Context, desk *deskclient.Console, d handedIn) (deskapi.Judgement, error) {
	seen := d.version
	last := fmt.Errorf("the case is at v%d", seen)
	for pause := askAgain; ; pause = min(2*pause, maxPause) {
		rec, err := desk.Record(ctx, d.tenant, d.caseID, seen+1)
		problem, refused := errors.AsType[*deskapi.Problem](err)
		switch {
		case err == nil:
			i := slices.IndexFunc(rec.Decisions, func(j deskapi.Judgement) bool { return j.MessageID == d.messageID })
			if i >= 0 {
				return rec.Decisions[i], nil
			}
			seen = max(seen, rec.Version)
			last = fmt.Errorf("the case is at v%d", seen)
		case refused && problem.RetryAfter == 0:
			return deskapi.Judgement{}, err
		case refused:
			pause = min(max(pause, problem.RetryAfter), maxPause)
			if problem.Code != deskapi.CodeVersionNotReached {
				last = err
			}
		case ctx.Err() == nil:
			last = err
		}
		if sleep(ctx, pause) != nil {
			return deskapi.Judgement{}, last
		}
	}
}

func sleep(ctx context.Context, d time.Duration) error {
	wait := time.NewTimer(d)
	defer wait.Stop()
	select {
	case <-wait.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
