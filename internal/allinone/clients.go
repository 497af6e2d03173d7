package allinone

import (
	"context"
	"fmt"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/amends-dev/amends/internal/approval"
	"github.com/amends-dev/amends/internal/deskapi"
	"github.com/amends-dev/amends/internal/deskclient"
	amendsv1 "github.com/amends-dev/amends/proto/amends/v1"
)

// Clients gives clients of the customer and staff APIs on the trial
// credentials, with connections for so many callers at once.
func (d *Desk) Clients(callers int) (*deskclient.Gateway, *deskclient.Console, error) {
	t := deskclient.NewTransport(callers * 3)
	g, err := deskclient.NewGateway(deskclient.Config{URL: d.GatewayURL, Token: d.Trial.ChannelToken, Transport: t})
	if err != nil {
		return nil, nil, err
	}
	s, err := deskclient.NewConsole(deskclient.Config{URL: d.ConsoleURL, Token: d.Trial.StaffToken, Transport: t})
	return g, s, err
}

// Approve does what an approver does: look at the action of a case, at minVersion
// or later, sign exactly that with the approver's own key, hand it in. It gives
// the approval's id.
func Approve(ctx context.Context, staff *deskclient.Console, key approval.Key25519, caseID string, minVersion uint64) (string, error) {
	shown, action, err := staff.Action(ctx, Tenant, caseID, minVersion)
	if err != nil {
		return "", fmt.Errorf("look at the action of %s: %w", caseID, err)
	}
	d, err := Decision(key, shown, action, amendsv1.Verdict_VERDICT_APPROVE, time.Now())
	if err != nil {
		return "", err
	}
	done, err := staff.Decide(ctx, d)
	if err != nil {
		return "", fmt.Errorf("hand in the approval of %s: %w", caseID, err)
	}
	return done.ApprovalID, nil
}

// Decision signs a verdict about exactly the action an approver was shown.
func Decision(key approval.Key25519, shown deskapi.Action, action *amendsv1.ActionRecord, verdict amendsv1.Verdict, at time.Time) (*amendsv1.SignedDecision, error) {
	sum, err := approval.ActionSHA256(action) // computed here; the console's own is for reading
	if err != nil {
		return nil, err
	}
	d := &amendsv1.SignedDecision{
		ApprovalId: approval.IDOf(action.GetCaseId(), shown.ApprovalsRecorded+1, int(shown.ApproversNeeded), key.ApproverID), Verdict: verdict,
		Tenant: action.GetTenant(), CaseId: action.GetCaseId(),
		ActionSha256: sum, SignedAt: timestamppb.New(at), Expires: action.GetExpires(),
	}
	return d, approval.Sign(key, d)
}
