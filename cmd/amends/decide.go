package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/amends-dev/amends/internal/approval"
	"github.com/amends-dev/amends/internal/deskapi"
	"github.com/amends-dev/amends/internal/deskclient"
	"github.com/amends-dev/amends/internal/ident"
	amendsv1 "github.com/amends-dev/amends/proto/amends/v1"
)

// signFlags are what approving and denying have in common.
type signFlags struct {
	Case string `arg:"" help:"Case id."`
	Key  string `required:"" type:"path" placeholder:"FILE" help:"Your key file."`
	consoleFlags
	Yes bool `help:"Sign without asking."`

	Wait   time.Duration `default:"15s" help:"How long to wait until the desk has judged the decision."`
	NoWait bool          `help:"Only hand the decision in."`
}

// maxWait bounds --wait; what takes longer is for the operators of the desk.
const maxWait = 10 * time.Minute

// AfterApply checks what was said. kong calls Validate before it looks for
// missing flags, and those would be told as bad ones.
func (f *signFlags) AfterApply() error {
	if err := ident.Tokens("case", f.Case); err != nil {
		return err
	}
	if err := f.consoleFlags.AfterApply(); err != nil {
		return err
	}
	if f.Wait <= 0 || f.Wait > maxWait {
		return fmt.Errorf("--wait: want more than 0 and up to %s", maxWait)
	}
	return nil
}

const stateAwaitingApproval = "AWAITING_APPROVAL"

// decide shows, asks, signs, hands in and tells what became of it.
func (f *signFlags) decide(ctx context.Context, t *terminal, verdict amendsv1.Verdict, reason string) error {
	key, desk, err := f.open()
	if err != nil {
		return err
	}
	shown, action, err := desk.Action(ctx, f.Tenant, f.Case, 0)
	if err != nil {
		return err
	}
	p, err := propose(f.Tenant, f.Case, shown, action, t.now())
	if err != nil {
		return fmt.Errorf("not signed: %w", err)
	}
	d := &amendsv1.SignedDecision{
		ApprovalId: approval.IDOf(f.Case, shown.ApprovalsRecorded+1, int(shown.ApproversNeeded), key.ApproverID), Verdict: verdict, Tenant: f.Tenant, CaseId: f.Case, ActionSha256: p.sha256,
		ApproverId: key.ApproverID, KeyId: key.KeyID,
		SignedAt: timestamppb.New(t.now()), Expires: action.GetExpires(), Reason: reason,
	}
	text, err := approval.DecisionText(d)
	if err != nil {
		return fmt.Errorf("not signed: %w", err)
	}
	if err := f.confirm(t, func(w io.Writer) { describe(w, p, shown, text) }); err != nil {
		return fmt.Errorf("not signed: %w", err)
	}
	if err := approval.Sign(key, d); err != nil {
		return err
	}
	relayed, err := handIn(ctx, desk.Decide, d)
	if err != nil {
		return fmt.Errorf("signed, but not handed in: %w", err)
	}
	return f.report(ctx, t, desk, decisionSent{d, handedIn{tenant: f.Tenant, caseID: f.Case, messageID: relayed.MessageID, version: shown.Version}})
}

// open reads the key and gives the client of the console.
func (f *signFlags) open() (approval.Key25519, *deskclient.Console, error) {
	data, err := readPrivate(f.Key)
	if err != nil {
		return approval.Key25519{}, nil, fmt.Errorf("key: %w", err)
	}
	key, err := approval.ParseKey(data)
	if err != nil {
		return approval.Key25519{}, nil, err
	}
	desk, err := f.consoleFlags.desk()
	return key, desk, err
}

// proposal is an action as computed here, from the record.
type proposal struct {
	text       string
	sha256     string
	total      *amendsv1.Money
	expires    time.Time
	approvalID string
}

// propose checks that what the console sent is the action that was asked for,
// still open, and the same in all its forms.
func propose(tenant, caseID string, shown deskapi.Action, action *amendsv1.ActionRecord, now time.Time) (proposal, error) {
	text, err := approval.ActionText(action)
	if err != nil {
		return proposal{}, err
	}
	sum, err := approval.ActionSHA256(action)
	if err != nil {
		return proposal{}, err
	}
	total, err := approval.Total(action)
	if err != nil {
		return proposal{}, fmt.Errorf("action record: %w", err)
	}
	p := proposal{
		text: text, sha256: sum, total: total, expires: action.GetExpires().AsTime(),
		approvalID: approval.ID(caseID, shown.ApprovalsRecorded+1),
	}
	switch {
	case action.GetTenant() != tenant || action.GetCaseId() != caseID:
		return proposal{}, errors.New("the console sent the action of another case")
	case shown.ActionSHA256 != sum || shown.ActionText != text:
		return proposal{}, errors.New("the console shows another text or hash than the action it sent")
	case shown.NextApprovalID != p.approvalID:
		return proposal{}, errors.New("the console names another approval id than its count gives")
	case shown.State != stateAwaitingApproval:
		return proposal{}, fmt.Errorf("the case awaits no approval; it is %s", shown.State)
	case !now.Before(p.expires):
		return proposal{}, fmt.Errorf("the action expired at %s", p.expires.UTC().Format(time.RFC3339))
	}
	return p, nil
}

// confirm shows exactly what will be signed and asks.
func (f *signFlags) confirm(t *terminal, show func(io.Writer)) error {
	out := t.out
	if f.JSON {
		out = t.err
	}
	show(out)
	if f.Yes {
		return nil
	}
	if !t.interactive {
		return errors.New("nobody is there to ask; say --yes to sign without asking")
	}
	fmt.Fprint(out, "\nSign this? [y/N] ")
	answer, err := t.answer()
	if err != nil {
		return err
	}
	switch strings.ToLower(answer) {
	case "y", "yes":
		return nil
	}
	return errors.New("you said no")
}

// answer reads what a person types.
func (t *terminal) answer() (string, error) {
	line, err := bufio.NewReader(io.LimitReader(t.in, 64)).ReadString('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		return "", fmt.Errorf("read the answer: %w", err)
	}
	return strings.TrimSpace(line), nil
}
