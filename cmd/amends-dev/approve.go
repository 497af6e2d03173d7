package main

import (
	"context"
	"fmt"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/amends-dev/amends/internal/allinone"
	"github.com/amends-dev/amends/internal/approval"
	"github.com/amends-dev/amends/internal/deskclient"
	amendsv1 "github.com/amends-dev/amends/proto/amends/v1"
)

// approve does what an approver does: look at the action, sign exactly that,
// hand it in. It gives the approval's id.
func approve(ctx context.Context, desk *deskclient.Console, key approval.Key25519, caseID string, minVersion uint64) (string, error) {
	shown, action, err := desk.Action(ctx, allinone.Tenant, caseID, minVersion)
	if err != nil {
		return "", fmt.Errorf("look at the action of %s: %w", caseID, err)
	}
	sum, err := approval.ActionSHA256(action) // computed here; the console's own is for reading
	if err != nil {
		return "", err
	}
	d := &amendsv1.SignedDecision{
		ApprovalId: shown.NextApprovalID, Verdict: amendsv1.Verdict_VERDICT_APPROVE, Tenant: action.GetTenant(), CaseId: action.GetCaseId(),
		ActionSha256: sum, SignedAt: timestamppb.New(time.Now()), Expires: action.GetExpires(),
	}
	if err := approval.Sign(key, d); err != nil {
		return "", err
	}
	done, err := desk.Decide(ctx, d)
	if err != nil {
		return "", fmt.Errorf("hand in the approval of %s: %w", caseID, err)
	}
	return done.ApprovalID, nil
}
