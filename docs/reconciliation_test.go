package docs

import (
	"regexp"
	"slices"
	"strings"
	"testing"
)

// The page lists every code of a finding, and every reason for which a report
// is incomplete.
func TestReconciliationListsItsCodes(t *testing.T) {
	t.Parallel()
	listed := map[string][]string{}
	section := ""
	for line := range strings.Lines(readFile(t, "docs/reconciliation.md")) {
		if name, ok := strings.CutPrefix(line, "## "); ok {
			section = strings.TrimSpace(name)
		}
		if first, _, ok := strings.Cut(strings.TrimPrefix(line, "| "), " | "); ok && strings.HasPrefix(line, "| `") {
			for _, m := range regexp.MustCompile("`([a-z_]+)`").FindAllStringSubmatch(first, -1) {
				listed[section] = append(listed[section], m[1])
			}
		}
	}
	for section, sources := range map[string]map[string]string{
		"Findings": {
			"services/refund-executor/ledger/balance.go": `(?m)^\tCode\w+\s+= "([a-z_]+)"`,
			"internal/casework/tally.go":                 `(?m)^\tCode\w+\s+= "([a-z_]+)"`,
		},
		"Schedule and limits": {"internal/reconcile/report.go": `(?m)^\tReason\w+\s+= "([a-z_]+)"`},
	} {
		var declared []string
		for file, pattern := range sources {
			for _, m := range regexp.MustCompile(pattern).FindAllStringSubmatch(readFile(t, file), -1) {
				declared = append(declared, m[1])
			}
		}
		slices.Sort(declared)
		slices.Sort(listed[section])
		if len(declared) == 0 || !slices.Equal(declared, listed[section]) {
			t.Errorf("%s: declared %q\nlisted %q", section, declared, listed[section])
		}
	}
}
