package policy

import (
	"errors"
	"fmt"
	"time"

	"github.com/amends-dev/amends/internal/ident"
	"github.com/amends-dev/amends/internal/money"
	amendsv1 "github.com/amends-dev/amends/proto/amends/v1"
)

// Document is one version of one policy.
type Document struct {
	ID            string
	Version       uint32
	Title         string
	Authority     Authority
	EffectiveFrom time.Time
	// SupersededBy is the version that replaces it, or 0.
	SupersededBy uint32
	Topics       []string
	Sections     []Section
	// Rule may be nil: not every policy decides by rule.
	Rule *amendsv1.RefundRule
}

// Section is a numbered part of a document's prose.
type Section struct {
	Number  uint32
	Heading string
	Text    string

	headingTerms, terms []string // terms are those of heading and text
}

// Authority orders documents: a higher one overrules a lower one. Between
// equals a person decides.
type Authority int

// The authorities, lowest first.
const (
	Local Authority = iota + 1
	Group
)

var authorities = map[string]Authority{"local": Local, "group": Group}

// Citation names a section: POL-REF-004 v4 section 2.
func (d *Document) Citation(s Section) string {
	return fmt.Sprintf("%s v%d section %d", d.ID, d.Version, s.Number)
}

// key names one version of one policy.
type key struct {
	id      string
	version uint32
}

func (d *Document) key() key { return key{d.ID, d.Version} }

// documentFile is a document as it is written.
type documentFile struct {
	ID            string        `yaml:"id"`
	Version       uint32        `yaml:"version"`
	Title         string        `yaml:"title"`
	Authority     string        `yaml:"authority"`
	EffectiveFrom time.Time     `yaml:"effective_from"`
	SupersededBy  uint32        `yaml:"superseded_by"`
	Topics        []string      `yaml:"topics"`
	Rule          *ruleFile     `yaml:"rule"`
	Sections      []sectionFile `yaml:"sections"`
}

type sectionFile struct {
	Number  uint32 `yaml:"number"`
	Heading string `yaml:"heading"`
	Text    string `yaml:"text"`
}

type ruleFile struct {
	Name               string       `yaml:"name"`
	WindowHours        uint32       `yaml:"window_hours"`
	ApprovalThresholds []amountFile `yaml:"approval_thresholds"`
	SecondThresholds   []amountFile `yaml:"second_thresholds"`
}

type amountFile struct {
	Minor    int64  `yaml:"minor"`
	Currency string `yaml:"currency"`
}

const (
	maxSections = 32
	maxText     = 8 << 10
	maxWindow   = 26280
)

// document checks what was written and gives it in use form.
func (f documentFile) document() (*Document, error) {
	var problems []error
	bad := func(format string, args ...any) { problems = append(problems, fmt.Errorf(format, args...)) }
	if err := ident.Token(f.ID); err != nil {
		bad("id: %w", err)
	}
	if f.Version == 0 {
		bad("version: missing")
	}
	if f.Title == "" || len(f.Title) > 128 {
		bad("title: length %d, want 1 to 128", len(f.Title))
	}
	if authorities[f.Authority] == 0 {
		bad("authority: %q, want local or group", f.Authority)
	}
	if f.EffectiveFrom.IsZero() {
		bad("effective_from: missing")
	}
	if f.SupersededBy != 0 && f.SupersededBy <= f.Version {
		bad("superseded_by: version %d is not later", f.SupersededBy)
	}
	if len(f.Topics) == 0 {
		bad("topics: none")
	}
	d := &Document{
		ID: f.ID, Version: f.Version, Title: f.Title, Authority: authorities[f.Authority], EffectiveFrom: f.EffectiveFrom.UTC(),
		SupersededBy: f.SupersededBy, Topics: f.Topics,
	}
	if len(f.Sections) == 0 || len(f.Sections) > maxSections {
		bad("sections: %d, want 1 to %d", len(f.Sections), maxSections)
	}
	for i, s := range f.Sections {
		if s.Number == 0 || i > 0 && s.Number <= f.Sections[i-1].Number || s.Heading == "" || s.Text == "" || len(s.Text) > maxText {
			bad("sections[%d]: want a rising number, a heading and a text of at most %d bytes", i, maxText)
		}
		d.Sections = append(d.Sections, Section{
			Number: s.Number, Heading: s.Heading, Text: s.Text, headingTerms: terms(s.Heading), terms: terms(s.Heading + " " + s.Text),
		})
	}
	if f.Rule != nil {
		rule, err := f.Rule.rule()
		if err != nil {
			bad("rule: %w", err)
		}
		d.Rule = rule
	}
	return d, errors.Join(problems...)
}

// rule checks that a rule can be applied: one threshold a currency, and no
// second threshold below the first.
func (f ruleFile) rule() (*amendsv1.RefundRule, error) {
	if f.Name == "" || f.WindowHours == 0 || f.WindowHours > maxWindow {
		return nil, fmt.Errorf("want a name and window_hours of 1 to %d", maxWindow)
	}
	first, err := thresholds(f.ApprovalThresholds)
	if err != nil {
		return nil, fmt.Errorf("approval_thresholds: %w", err)
	}
	second, err := thresholds(f.SecondThresholds)
	if err != nil {
		return nil, fmt.Errorf("second_thresholds: %w", err)
	}
	for _, s := range second {
		for _, one := range first {
			if c, err := money.Compare(s, one); err == nil && c < 0 {
				return nil, fmt.Errorf("second threshold in %s is below the first", s.GetCurrency())
			}
		}
	}
	return &amendsv1.RefundRule{Name: f.Name, WindowHours: f.WindowHours, ApprovalThresholds: first, SecondThresholds: second}, nil
}

func thresholds(list []amountFile) ([]*amendsv1.Money, error) {
	seen := map[string]bool{}
	var out []*amendsv1.Money
	for _, a := range list {
		m := money.New(a.Minor, a.Currency)
		if err := money.Valid(m); err != nil {
			return nil, err
		}
		if seen[a.Currency] {
			return nil, fmt.Errorf("%s twice", a.Currency)
		}
		seen[a.Currency] = true
		out = append(out, m)
	}
	return out, nil
}
