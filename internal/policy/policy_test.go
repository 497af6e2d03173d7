package policy_test

import (
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/amends-dev/amends/internal/envelope"
	"github.com/amends-dev/amends/internal/policy"
)

var march = time.Date(2026, 3, 12, 10, 14, 0, 0, time.UTC)

func embedded(t testing.TB) *policy.Corpus {
	t.Helper()
	c, err := policy.Embedded()
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestCurrentVersionIsFound(t *testing.T) {
	t.Parallel()
	c := embedded(t)
	if c.Version() != policy.EmbeddedVersion {
		t.Errorf("version %s, want %s", c.Version(), policy.EmbeddedVersion)
	}
	f := c.Search("duplicate_charge_refund", march)
	p, r := f.Passage, f.Rule
	if p.GetCitation() != "POL-REF-004 v4 section 2" || p.GetSuperseded() || !strings.Contains(p.GetQuote().GetText(), "30 days") {
		t.Errorf("passage %v", p)
	}
	if r.GetName() != "duplicate_capture" || r.GetWindowHours() != 720 || r.GetApprovalThresholds()[0].GetMinor() != 100000 || r.GetSecondThresholds()[0].GetMinor() != 5000000 {
		t.Errorf("rule %v", r)
	}
	if len(f.Superseded) != 1 || f.Superseded[0].GetVersion() != 3 || !f.Superseded[0].GetSuperseded() || len(f.Conflicts) != 0 {
		t.Errorf("superseded %v, conflicts %v", f.Superseded, f.Conflicts)
	}
	for _, m := range []proto.Message{p, r, f.Superseded[0]} {
		if err := envelope.Validate(m); err != nil {
			t.Error(err)
		}
	}
}

func TestPolicyIsReadAsOfAMoment(t *testing.T) {
	t.Parallel()
	c := embedded(t)
	f := c.Search("duplicate_charge_refund", time.Date(2025, 12, 31, 23, 59, 59, 0, time.UTC))
	if f.Passage.GetVersion() != 3 || f.Passage.GetSuperseded() || f.Rule.GetWindowHours() != 336 {
		t.Errorf("before v4: %v", f.Passage)
	}
	if f := c.Search("duplicate_charge_refund", time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)); f.Passage.GetVersion() != 4 {
		t.Errorf("at the start of v4: %v", f.Passage)
	}
	if f := c.Search("duplicate_charge_refund", time.Date(2024, 1, 1, 0, 0, 0, 0, time.UTC)); f.Passage != nil || f.Rule != nil {
		t.Errorf("before any version: %v", f.Passage)
	}
}

func TestSearchTellsTopicsApart(t *testing.T) {
	t.Parallel()
	c := embedded(t)
	for topic, want := range map[string]string{
		"duplicate_charge_refund": "POL-REF-004",
		"refund_status":           "POL-REF-007",
		"refund_request_other":    "POL-GDW-001",
		"unrecognised_charge":     "POL-FRD-003",
		"shipping delay":          "POL-SHP-002",
		"charged twice":           "POL-REF-004",
		"cancel_request":          "",
		"quantum gravity":         "",
		"":                        "",
	} {
		if got := c.Search(topic, march).Passage.GetDocumentId(); got != want {
			t.Errorf("%q: %q, want %q", topic, got, want)
		}
	}
}

const (
	head  = "version: test/1\n"
	first = `
id: POL-A
version: 1
title: Duplicate charges
authority: group
effective_from: 2025-01-01T00:00:00Z
topics: [duplicate_charge_refund]
rule: {name: duplicate_capture, window_hours: 720, approval_thresholds: [{minor: 100000, currency: INR}], second_thresholds: []}
sections: [{number: 1, heading: Duplicate charge, text: A duplicate charge is refunded within 30 days.}]
`
)

func corpus(t *testing.T, docs ...string) (*policy.Corpus, error) {
	t.Helper()
	dir := fstest.MapFS{"corpus.yaml": {Data: []byte(head)}}
	for i, d := range docs {
		dir["doc"+string(rune('a'+i))+".yaml"] = &fstest.MapFile{Data: []byte(d)}
	}
	return policy.Load(dir)
}

func change(from, to string) string {
	if !strings.Contains(first, from) {
		panic(from)
	}
	return strings.Replace(first, from, to, 1)
}

func TestConflictsAndAuthority(t *testing.T) {
	t.Parallel()
	other := strings.Replace(change("id: POL-A", "id: POL-B"), "window_hours: 720", "window_hours: 336", 1)
	for name, c := range map[string]struct {
		docs      []string
		document  string
		conflicts int
	}{
		"equal authority, other rule": {[]string{first, other}, "POL-A", 1},
		"equal authority, same rule":  {[]string{first, change("id: POL-A", "id: POL-B")}, "POL-A", 0},
		"lower authority":             {[]string{first, strings.Replace(other, "authority: group", "authority: local", 1)}, "POL-A", 0},
		"higher authority":            {[]string{change("authority: group", "authority: local"), other}, "POL-B", 0},
		"not yet in force":            {[]string{first, strings.Replace(other, "2025-01-01", "2027-01-01", 1)}, "POL-A", 0},
		"two versions claim to be current": {
			[]string{first, strings.Replace(change("version: 1", "version: 2"), "window_hours: 720", "window_hours: 336", 1)}, "POL-A", 1,
		},
		"superseded": {
			[]string{change("version: 1", "version: 1\nsuperseded_by: 2"), strings.Replace(change("version: 1", "version: 2"), "window_hours: 720", "window_hours: 336", 1)}, "POL-A", 0,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := corpus(t, c.docs...)
			if err != nil {
				t.Fatal(err)
			}
			f := got.Search("duplicate_charge_refund", march)
			if f.Passage.GetDocumentId() != c.document || len(f.Conflicts) != c.conflicts {
				t.Errorf("passage %s, %d conflicts; want %s, %d", f.Passage.GetCitation(), len(f.Conflicts), c.document, c.conflicts)
			}
		})
	}
}

func TestLoadIsStrict(t *testing.T) {
	t.Parallel()
	for name, docs := range map[string][]string{
		"unknown key":            {change("title:", "titel: x\ntitle:")},
		"two documents":          {first + "---\n" + first},
		"no documents":           {},
		"same version twice":     {first, first},
		"bad id":                 {change("POL-A", "POL.A")},
		"no version":             {change("version: 1", "version: 0")},
		"no authority":           {change("authority: group", "authority: king")},
		"no date":                {change("effective_from: 2025-01-01T00:00:00Z\n", "")},
		"no topics":              {change("topics: [duplicate_charge_refund]", "topics: []")},
		"no sections":            {strings.Split(first, "sections:")[0] + "sections: []"},
		"superseded by nothing":  {change("version: 1", "version: 1\nsuperseded_by: 2")},
		"superseded by itself":   {change("version: 1", "version: 1\nsuperseded_by: 1")},
		"unknown currency":       {change("currency: INR", "currency: ZZZ")},
		"negative threshold":     {change("minor: 100000", "minor: -1")},
		"no window":              {change("window_hours: 720", "window_hours: 0")},
		"second below the first": {change("second_thresholds: []", "second_thresholds: [{minor: 1, currency: INR}]")},
		"not yaml":               {"\t:"},
		"too large":              {first + "# " + strings.Repeat("x", 70<<10)},
	} {
		if _, err := corpus(t, docs...); err == nil {
			t.Errorf("%s: loaded", name)
		}
	}
	if _, err := policy.Load(fstest.MapFS{"a.yaml": {Data: []byte(first)}}); err == nil {
		t.Error("a corpus without a version was loaded")
	}
	if _, err := corpus(t, first); err != nil {
		t.Error(err)
	}
}

func BenchmarkSearch(b *testing.B) {
	c := embedded(b)
	b.ReportAllocs()
	for b.Loop() {
		c.Search("duplicate_charge_refund", march)
	}
}
