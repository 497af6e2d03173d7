package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/amends-dev/amends/internal/approval"
	"github.com/amends-dev/amends/internal/custody"
	"github.com/amends-dev/amends/internal/deskapi"
	"github.com/amends-dev/amends/internal/deskclient"
	"github.com/amends-dev/amends/internal/display"
	amendsv1 "github.com/amends-dev/amends/proto/amends/v1"
)

// custodyCmd is `amends custody`.
type custodyCmd struct {
	List    custodyListCmd    `cmd:"" help:"List the cases that wait for people."`
	Show    custodyShowCmd    `cmd:"" help:"Show a case that is with people, and what to decide it by."`
	Take    custodyTakeCmd    `cmd:"" help:"Take a case into your custody."`
	Release custodyReleaseCmd `cmd:"" help:"Give a case back to its queue."`
	Decide  custodyDecideCmd  `cmd:"" help:"Decide a case that is in your custody."`
}

// custodyTakeCmd is `amends custody take`.
type custodyTakeCmd struct {
	signFlags
	Reason string `help:"Why; part of what is signed."`
}

// Run takes the case.
func (c *custodyTakeCmd) Run(ctx context.Context, t *terminal) error {
	return c.signCustody(ctx, t, custodyStep{step: amendsv1.CustodyStep_CUSTODY_STEP_TAKE, reason: c.Reason})
}

// custodyReleaseCmd is `amends custody release`.
type custodyReleaseCmd struct {
	signFlags
	Reason string `help:"Why; part of what is signed."`
}

// Run gives the case back.
func (c *custodyReleaseCmd) Run(ctx context.Context, t *terminal) error {
	return c.signCustody(ctx, t, custodyStep{step: amendsv1.CustodyStep_CUSTODY_STEP_RELEASE, reason: c.Reason})
}

// custodyStep is what a custodian wants to sign.
type custodyStep struct {
	step   amendsv1.CustodyStep
	reason string
	text   string
	// refunds makes the refunds to propose, from the case as it is shown.
	refunds func(deskapi.Custody) ([]*amendsv1.ActionRefund, error)
	// settlements say what became of refunds in doubt.
	settlements []*amendsv1.Settlement
}

// signCustody shows the case, asks, signs, hands in and tells what became of it.
func (f *signFlags) signCustody(ctx context.Context, t *terminal, s custodyStep) error {
	key, desk, err := f.open()
	if err != nil {
		return err
	}
	shown, packet, err := desk.Custody(ctx, f.Tenant, f.Case)
	if err != nil {
		return err
	}
	text, sum := custody.Text(packet), custody.SHA256(packet)
	switch {
	case shown.Tenant != f.Tenant || shown.CaseID != f.Case:
		return errors.New("not signed: the console sent another case")
	case shown.PacketText != text || shown.PacketSHA256 != sum:
		return errors.New("not signed: the console shows another text or hash than the packet it sent")
	}
	d := &amendsv1.CustodyDecision{
		Tenant: f.Tenant, CaseId: f.Case, Step: s.step, PacketSha256: sum, CustodianId: key.ApproverID, KeyId: key.KeyID,
		SignedAt: timestamppb.New(t.now()), Reason: s.reason, Text: s.text, Settlements: s.settlements,
	}
	if s.refunds != nil {
		if d.Refunds, err = s.refunds(shown); err != nil {
			return fmt.Errorf("not signed: %w", err)
		}
	}
	signs, err := approval.CustodyText(d)
	if err != nil {
		return fmt.Errorf("not signed: %w", err)
	}
	if err := f.confirm(t, func(w io.Writer) {
		showCustody(w, shown, text)
		fmt.Fprintf(w, "\nDecision to sign:\n\n%s", indent(signs))
	}); err != nil {
		return fmt.Errorf("not signed: %w", err)
	}
	if err := approval.SignCustody(key, d); err != nil {
		return err
	}
	relayed, err := handIn(ctx, desk.DecideCustody, d)
	if err != nil {
		return fmt.Errorf("signed, but not handed in: %w", err)
	}
	return f.reportCustody(ctx, t, desk, d, handedIn{tenant: f.Tenant, caseID: f.Case, messageID: relayed.MessageID, version: shown.Version})
}

// custodyDecided is the result for machines.
type custodyDecided struct {
	Tenant       string `json:"tenant"`
	CaseID       string `json:"case_id"`
	Step         string `json:"step"`
	Custodian    string `json:"custodian"`
	PacketSHA256 string `json:"packet_sha256"`
	MessageID    string `json:"message_id"`
	// Recorded: the case holds the decision, be it as one that counts or as a
	// refused one. Version, State and Refused say what it came to.
	Recorded bool   `json:"recorded"`
	Refused  string `json:"refused"`
	Version  uint64 `json:"version"`
	State    string `json:"state"`
	// Unjudged: the judgement was waited for and did not come.
	Unjudged bool `json:"unjudged"`
	// Sent: the custodian's own words left the desk. Rejected says why not, and
	// why a settlement settles nothing.
	Sent bool `json:"sent"`
	// Settled: the executor verified what was said of refunds in doubt.
	Settled  bool     `json:"settled"`
	Rejected []string `json:"rejected,omitempty"`

	decided uint64
}

// reportCustody tells what became of a decision. It is an error unless the
// decision counts, or nobody wanted to wait.
func (f *signFlags) reportCustody(ctx context.Context, t *terminal, desk *deskclient.Console, d *amendsv1.CustodyDecision, in handedIn) error {
	out := custodyDecided{
		Tenant: in.tenant, CaseID: in.caseID, Step: approval.StepName(d.GetStep()), Custodian: d.GetCustodianId(),
		PacketSHA256: d.GetPacketSha256(), MessageID: in.messageID,
	}
	line := out.Step + " handed in"
	var failure error
	if !f.NoWait {
		ctx, cancel := context.WithTimeout(ctx, f.Wait)
		defer cancel()
		j, err := judgement(ctx, desk, in)
		switch {
		case err != nil:
			out.Unjudged = true
			failure = fmt.Errorf("handed in, not judged yet: %w", err)
		case j.Refused != "":
			failure = errors.New("refused: " + display.Line(j.Refused))
		}
		out.Recorded, out.Refused, out.Version, out.State = err == nil, j.Refused, j.Version, j.State
		out.decided = j.Version
		if failure == nil && d.GetText() != "" {
			failure = verdict(ctx, desk, in, &out)
		}
		if failure == nil && len(d.GetSettlements()) > 0 {
			failure = settlement(ctx, desk, in, &out)
		}
		line = fmt.Sprintf("%s by %s (v%d, %s)", out.Step, out.Custodian, out.Version, display.Line(out.State))
	}
	if f.JSON {
		return errors.Join(t.writeJSON(out), failure)
	}
	if failure == nil {
		fmt.Fprintln(t.out, line)
	}
	return failure
}

// verdict waits until a custodian's own words were sent, or came back from the
// verifier with what is wrong with them.
func verdict(ctx context.Context, desk *deskclient.Console, in handedIn, out *custodyDecided) error {
	seen := out.Version
	for pause := askAgain; ; pause = min(2*pause, maxPause) {
		shown, err := desk.Record(ctx, in.tenant, in.caseID, seen+1)
		rec := new(amendsv1.CaseRecord)
		if err == nil {
			err = protojson.Unmarshal(shown.Record, rec)
		}
		if err == nil {
			seen = max(seen, shown.Version)
			out.Version, out.State = shown.Version, shown.State
			for _, r := range rec.GetReplies() {
				if r.GetVersion() > out.decided && r.GetKind() == amendsv1.ReplyKind_REPLY_KIND_WRITTEN {
					out.Sent = true
					return nil
				}
			}
			if shown.State == stateHandoff {
				for _, c := range rec.GetVerification().GetChecks() {
					if !c.GetSupported() {
						out.Rejected = append(out.Rejected, c.GetReason()+": "+c.GetFound())
					}
				}
				return fmt.Errorf("not sent, the case is back with you: %s", display.Line(strings.Join(out.Rejected, "; ")))
			}
		} else if p, ok := errors.AsType[*deskapi.Problem](err); ok && p.RetryAfter == 0 {
			return err
		}
		if sleep(ctx, pause) != nil {
			out.Unjudged = true
			return fmt.Errorf("decided; whether the text is sent is not known yet (v%d, %s)", seen, display.Line(out.State))
		}
	}
}

// stateHandoff is where a case is that people have.
const stateHandoff = "HUMAN_HANDOFF"

// showCustody writes who has a case and the packet to decide it by.
func showCustody(w io.Writer, c deskapi.Custody, packet string) {
	fmt.Fprintf(w, "%s  %s  v%d", display.Line(c.CaseID), display.Line(c.State), c.Version)
	if c.OrderID != "" {
		fmt.Fprintf(w, "  order %s", display.Line(c.OrderID))
	}
	fmt.Fprintf(w, "\nqueue %s%s\n", display.Line(c.Queue), clock(" since ", c.Since))
	if c.Custodian != "" {
		fmt.Fprintf(w, "in the custody of %s%s\n", display.Line(c.Custodian), clock(" until ", c.Until))
	}
	fmt.Fprintf(w, "\nPacket:\n\n%s\nsha256 %s\n", indent(packet), display.Line(c.PacketSHA256))
	for _, p := range c.Evidence.Captures {
		fmt.Fprintf(w, "  capture %s %s %s\n", display.Line(p.PaymentID), format(p.Amount), display.Line(p.Status))
	}
	for _, r := range c.Evidence.Refunds {
		fmt.Fprintf(w, "  refund %s on %s %s %s\n", display.Line(r.RefundID), display.Line(r.PaymentID), format(r.Amount), display.Line(r.Status))
	}
	for _, e := range c.Transfers {
		fmt.Fprintf(w, "  %s  from %s to %s: %s\n", at(e.At), display.Line(e.From), display.Line(e.To), display.Line(e.Reason))
	}
}

func at(t *time.Time) string { return clock("", t) }
