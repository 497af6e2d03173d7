package policy

import (
	"slices"
	"strings"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	amendsv1 "github.com/amends-dev/amends/proto/amends/v1"
)

// Finding is what a search gave. A finding without a passage says that the
// corpus holds nothing on the topic.
type Finding struct {
	// Passage is the one to rely on.
	Passage *amendsv1.PolicyPassage
	// Rule is published with the passage's document; nil when it has none.
	Rule *amendsv1.RefundRule
	// Superseded are earlier or not yet effective versions of the same policy.
	Superseded []*amendsv1.PolicyPassage
	// Conflicts are current passages of equal authority with another rule.
	Conflicts []*amendsv1.PolicyPassage
}

// maxConflicts is how many a policy reading can carry.
const maxConflicts = 8

// Search finds the policy on a topic that is current at a moment.
func (c *Corpus) Search(topic string, asOf time.Time) Finding {
	query := terms(topic)
	best, score := (*Document)(nil), 0
	for i, d := range c.documents {
		// Of equals the higher authority, then the newer version, is relied on.
		if s := c.index.score(i, query); s > 0 && c.current(d, asOf) && (s > score || s == score && outranks(d, best)) {
			best, score = d, s
		}
	}
	if best == nil {
		return Finding{}
	}
	best = c.overruling(best, asOf)
	f := Finding{Passage: c.passage(best, query, false), Rule: best.Rule}
	for _, d := range c.documents {
		switch {
		case d == best:
		case !c.current(d, asOf):
			if d.ID == best.ID {
				f.Superseded = append(f.Superseded, c.passage(d, query, true))
			}
		case d.Authority == best.Authority && disagree(d.Rule, best.Rule) && len(f.Conflicts) < maxConflicts:
			f.Conflicts = append(f.Conflicts, c.passage(d, query, false))
		}
	}
	return f
}

// overruling gives the current document of higher authority that rules on the
// same matter, or d itself.
func (c *Corpus) overruling(d *Document, asOf time.Time) *Document {
	for _, o := range c.documents {
		if d.Rule != nil && o.Rule.GetName() == d.Rule.GetName() && o.Authority > d.Authority && c.current(o, asOf) {
			d = o
		}
	}
	return d
}

func outranks(a, b *Document) bool {
	if a.Authority != b.Authority {
		return a.Authority > b.Authority
	}
	return a.ID == b.ID && a.Version > b.Version
}

// current reports whether a document is in force at a moment: effective, and
// not replaced by a version that is.
func (c *Corpus) current(d *Document, at time.Time) bool {
	if d.EffectiveFrom.After(at) {
		return false
	}
	for _, next := range c.documents {
		if next.ID == d.ID && next.Version == d.SupersededBy {
			return next.EffectiveFrom.After(at)
		}
	}
	return true
}

// disagree reports two rules of one name that are not the same.
func disagree(a, b *amendsv1.RefundRule) bool {
	return a != nil && b != nil && a.GetName() == b.GetName() && !proto.Equal(a, b)
}

// passage quotes the section of a document that fits the query best.
func (c *Corpus) passage(d *Document, query []string, superseded bool) *amendsv1.PolicyPassage {
	best, score := d.Sections[0], -1
	for _, s := range d.Sections {
		n := 0
		for _, q := range query {
			if slices.Contains(s.terms, q) {
				n++
			}
			if slices.Contains(s.headingTerms, q) {
				n++
			}
		}
		if n > score {
			best, score = s, n
		}
	}
	return &amendsv1.PolicyPassage{
		DocumentId: d.ID, Version: d.Version, Superseded: superseded, EffectiveFrom: timestamppb.New(d.EffectiveFrom),
		Citation: d.Citation(best),
		Quote: &amendsv1.UntrustedText{
			Text: best.Text, Origin: amendsv1.TextOrigin_TEXT_ORIGIN_POLICY_DOCUMENT,
			Trust: amendsv1.TextTrust_TEXT_TRUST_PUBLISHED, InstructionAuthority: amendsv1.InstructionAuthority_INSTRUCTION_AUTHORITY_NONE,
		},
	}
}

// index holds how often a term counts for each document.
type index struct {
	// weights are per term and document number.
	weights map[string]map[int]int
	total   int
}

const (
	topicWeight   = 8
	titleWeight   = 4
	headingWeight = 2
	textWeight    = 1
)

func newIndex(documents []*Document) index {
	x := index{weights: map[string]map[int]int{}, total: len(documents)}
	for i, d := range documents {
		add := func(list []string, weight int) {
			for _, t := range list {
				if x.weights[t] == nil {
					x.weights[t] = map[int]int{}
				}
				x.weights[t][i] = max(x.weights[t][i], weight)
			}
		}
		add(terms(d.Title), titleWeight)
		for _, t := range d.Topics {
			add(terms(t), topicWeight)
		}
		for _, s := range d.Sections {
			add(s.headingTerms, headingWeight)
			add(s.terms, textWeight)
		}
	}
	return x
}

// score weighs rare terms over common ones. A document that holds less than
// half of the terms does not match.
func (x index) score(document int, query []string) int {
	sum, held := 0, 0
	for _, q := range query {
		if w := x.weights[q][document]; w > 0 {
			held++
			sum += w * (1 + x.total - len(x.weights[q]))
		}
	}
	if held*2 <= len(query) && held < len(query) {
		return 0
	}
	return sum
}

// terms gives the words of a text, each once, in lower case and without a
// plural s.
func terms(text string) []string {
	var out []string
	for _, w := range strings.FieldsFunc(strings.ToLower(text), func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < '0' || r > '9')
	}) {
		if len(w) > 3 && strings.HasSuffix(w, "s") && !strings.HasSuffix(w, "ss") && w != "status" {
			w = w[:len(w)-1]
		}
		if len(w) > 2 && !slices.Contains(out, w) {
			out = append(out, w)
		}
	}
	return out
}
