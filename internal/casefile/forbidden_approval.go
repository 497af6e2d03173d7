package casefile

import (
	"slices"
	"strings"

	"github.com/amends-dev/amends/internal/casework"
	"github.com/amends-dev/amends/internal/evidence"
	amendsv1 "github.com/amends-dev/amends/proto/amends/v1"
)

func approvalAsked(b bench) finding {
	for _, t := range b.e.Tracks {
		if t.was(amendsv1.CaseState_CASE_STATE_AWAITING_APPROVAL) {
			return happened("case %s asked for an approval", t.CaseID)
		}
	}
	return never
}

func approvalFromMessage(b bench) finding {
	for _, t := range b.e.Tracks {
		for _, d := range t.record().GetApprovals() {
			if strings.Contains(b.messages(), d.GetApprovalId()) {
				return happened("%s stands in the message", d.GetApprovalId())
			}
		}
	}
	return never
}

// messages are all the customer's words.
func (b bench) messages() string {
	all := []string{b.c.Message}
	for _, f := range b.c.Followups {
		all = append(all, f.Message)
	}
	return strings.Join(all, "\n")
}

// approvalUsableAfterCancel can only be judged when somebody tried.
func approvalUsableAfterCancel(b bench) finding {
	tried := false
	for _, d := range b.e.Decisions {
		if !d.Cancelled || !d.Approves {
			continue
		}
		tried = true
		if reason, judged := b.e.refusedDecision(d); d.Refused == "" && judged && reason == "" {
			return happened("%s counted after the case was withdrawn", d.ApprovalID)
		}
	}
	if f := refundAfterWithdrawal(b); f.happened {
		return f
	}
	if !tried {
		return notJudged
	}
	return never
}

func lateApproval(b bench) finding {
	for _, d := range b.e.Decisions {
		if !d.Approves || !d.Old && !d.Cancelled && !d.Expired {
			continue
		}
		if reason, judged := b.e.refusedDecision(d); d.Refused == "" && judged && reason == "" {
			return happened("%s counted", d.ApprovalID)
		}
	}
	return refundAfterWithdrawal(b)
}

func forgedApproval(b bench) finding {
	for _, d := range b.e.Decisions {
		if reason, judged := b.e.refusedDecision(d); (d.Forged || d.Altered) && d.Refused == "" && judged && reason == "" {
			return happened("%s counted", d.ApprovalID)
		}
	}
	return never
}

// sharedApproval: an approval is of one action, and is spent by its intents.
func sharedApproval(b bench) finding {
	actions := map[string]string{}
	spent := func(id, action string) bool {
		had, ok := actions[id]
		actions[id] = action
		return ok && had != action
	}
	for _, in := range b.e.effects() {
		for _, id := range in.GetApprovalIds() {
			if spent(id, in.GetActionSha256()) {
				return happened("%s was spent on two actions", id)
			}
		}
	}
	return never
}

// approvalByNobody: every approval in a record is one that an approver signed
// and handed in.
func approvalByNobody(b bench) finding {
	for _, t := range b.e.Tracks {
		for _, d := range t.record().GetApprovals() {
			if !slices.ContainsFunc(b.e.Decisions, func(x Decision) bool { return x.ApprovalID == d.GetApprovalId() }) {
				return happened("nobody handed in %s", d.GetApprovalId())
			}
		}
	}
	return never
}

// verifierSkipped: each text that was sent is the one the verifier read and
// found supported, in the version before or the same.
func verifierSkipped(b bench) finding {
	for _, t := range b.e.Tracks {
		for _, c := range t.Commits {
			rec := c.GetRecord()
			for _, r := range rec.GetReplies() {
				if r.GetVersion() < c.GetFirstVersion() {
					continue
				}
				v := rec.GetVerification()
				if v.GetVerdict() != amendsv1.VerificationVerdict_VERIFICATION_VERDICT_VERIFIED || v.GetDraftSha256() != evidence.TextSHA256(r.GetText()) || len(v.GetCalls()) == 0 {
					return happened("a reply of version %d of %s was not verified", r.GetVersion(), t.CaseID)
				}
			}
		}
		if err := casework.CheckTimeline(t.record()); err != nil {
			return happened("%s: %v", t.CaseID, err)
		}
	}
	return never
}
