package casefile

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/amends-dev/amends/internal/prose"
)

// Deed is what an approver does.
type Deed string

// The deeds.
const (
	// Approve signs an approval; Deny a denial.
	Approve Deed = "approve"
	Deny    Deed = "deny"
	// Expire lets the shown action expire; later ones are approved.
	Expire Deed = "let it expire"
	// Nothing is done, now or later.
	Nothing Deed = "nothing"
)

// ApproverAction is what approvers do, read from plain words.
type ApproverAction struct {
	Text string
	Deed Deed
	// Old: of the action shown first, not of the current one.
	Old bool
	// Times is how often the same is handed in.
	Times int
	// Alter: the decision is for another action than the one shown. Amounts are
	// those that were named, as written; the shown one alters nothing.
	// AlterTarget: another payment instead of another amount.
	Alter       bool
	Amounts     []string
	AlterTarget bool
	// Forged: signed with a key that is in nobody's name.
	Forged bool
	// Signers says who signs: 0 all that are needed, else the first or second.
	Signer int
}

var (
	denyRE   = regexp.MustCompile(`\b(den(y|ies|ied|ial)|reject(s|ed)?|declin(e|es|ed)|refus(e|es|ed|al)|disapprov\w*|not approv\w*|says? no)\b`)
	expireRE = regexp.MustCompile(`\b(expir\w*|laps\w*|times? out|timed out|runs? out|too late)\b`)
	idleRE   = regexp.MustCompile(`\b(nothing|no action|ignor\w*|nobody|no one|never|does not (act|answer|respond|react|decide)|do not (act|answer|respond|approve)|no (answer|response|decision|approval)|absent|on leave|silent|none)\b`)
	yesRE    = regexp.MustCompile(`\b(approv\w*|sign\w*|accept\w*|confirm\w*|grant\w*|allow\w*|yes|ok(ay)?)\b`)
	oldRE    = regexp.MustCompile(`\b(old|earlier|first (action|record|proposal|one)|previous|stale|expired|void(ed)?|superseded|original|same (action|record|approval)|former|late)\b`)
	twiceRE  = regexp.MustCompile(`\b(twice|two times|2 times|2x|double|again|repeat\w*|once more)\b`)
	manyRE   = regexp.MustCompile(`\b(thrice|three times|3 times)\b`)
	alterRE  = regexp.MustCompile(`\b(another|other|different|wrong|chang\w*|tamper\w*|modif\w*|alter\w*|larger|higher|bigger|inflat\w*|instead|mutat\w*)\b`)
	targetRE = regexp.MustCompile(`\b(payment|capture|order|case)\b`)
	forgeRE  = regexp.MustCompile(`\b(forg\w*|fake\w*|unknown key|wrong key|unregistered|not registered|without (a )?(valid )?signature|unsigned|invalid signature|stolen|impost\w*)\b`)
	oneRE    = regexp.MustCompile(`\b(only one|one approver|one of (the )?(two|them)|single approver|first approver|maya|one person|one signature)\b`)
	otherRE  = regexp.MustCompile(`\b(second approver|ravi|other approver)\b`)
)

// ParseApproverAction reads what an approver does.
func ParseApproverAction(text string) (ApproverAction, error) {
	t := strings.ToLower(strings.Join(strings.Fields(strings.ReplaceAll(text, "_", " ")), " "))
	a := ApproverAction{Text: text, Times: 1}
	switch {
	case denyRE.MatchString(t):
		a.Deed = Deny
	case yesRE.MatchString(t) && !idleRE.MatchString(t) && !strings.HasPrefix(t, "let"):
		a.Deed = Approve
	case idleRE.MatchString(t):
		a.Deed = Nothing
		return a, nil
	case expireRE.MatchString(t), strings.HasPrefix(t, "wait"), strings.HasPrefix(t, "let "):
		a.Deed = Expire
		return a, nil
	default:
		return ApproverAction{}, fmt.Errorf("approver_action: %q is not understood; an approver may approve, deny, do nothing or let it expire", text)
	}
	a.Old = oldRE.MatchString(t)
	a.Forged = forgeRE.MatchString(t)
	switch {
	case manyRE.MatchString(t):
		a.Times = 3
	case twiceRE.MatchString(t):
		a.Times = 2
	}
	switch {
	case otherRE.MatchString(t):
		a.Signer = 2
	case oneRE.MatchString(t):
		a.Signer = 1
	}
	a.alter(t)
	return a, nil
}

// alter reads whether the decision is for something else than was shown.
func (a *ApproverAction) alter(t string) {
	if a.Deed != Approve {
		return
	}
	tokens := prose.Read(t).Tokens
	for i, tok := range tokens {
		unit := i+1 < len(tokens) && timeUnits[tokens[i+1].Low]
		if tok.Kind == prose.Amount || tok.Kind == prose.Number && tok.Digits >= 3 && !unit {
			a.Amounts = append(a.Amounts, tok.Raw)
		}
	}
	if alterRE.MatchString(otherRE.ReplaceAllString(t, "")) {
		a.Alter = true
		a.AlterTarget = len(a.Amounts) == 0 && targetRE.MatchString(t) && !strings.Contains(t, "amount")
	}
}

var timeUnits = fieldSet("seconds second minutes minute min mins hours hour days day weeks week")
