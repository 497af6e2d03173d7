package docs

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/amends-dev/amends/internal/casework"
	amendsv1 "github.com/amends-dev/amends/proto/amends/v1"
	"github.com/amends-dev/amends/services/gateway/gateway"
)

// The table of states has every state, with what the view of one says is next.
func TestChannelGuideStates(t *testing.T) {
	t.Parallel()
	page := readFile(t, "docs/channel-guide.md")
	for n := range amendsv1.CaseState_name {
		if n == 0 {
			continue
		}
		v := casework.View(&amendsv1.CaseRecord{State: amendsv1.CaseState(n)})
		next := ""
		if v.GetNext() != "" {
			next = "`" + v.GetNext() + "` "
		}
		if row := "| `" + v.GetState() + "` | " + next + "| "; strings.Count(page, row) != 1 {
			t.Errorf("there is no row %q", row)
		}
	}
	for n, name := range amendsv1.ReplyKind_name {
		kind := strings.ToLower(strings.TrimPrefix(name, "REPLY_KIND_"))
		if n != 0 && strings.Count(page, "\n| `"+kind+"` | ") != 1 {
			t.Errorf("there is no row of replies of kind %s", kind)
		}
	}
}

// The table of errors has every code a channel can get, at its status, and
// says to repeat where problems.md does.
func TestChannelGuideErrors(t *testing.T) {
	t.Parallel()
	listed := readProblems(t)
	var named []string
	for _, row := range regexp.MustCompile(`(?m)^\| (\d{3}) \| ([^|]+) \| ([^|]+) \|$`).FindAllStringSubmatch(readFile(t, "docs/channel-guide.md"), -1) {
		status, err := strconv.Atoi(row[1])
		if err != nil {
			t.Fatal(err)
		}
		for _, code := range regexp.MustCompile("`([a-z_]+)`").FindAllStringSubmatch(row[2], -1) {
			named = append(named, code[1])
			if listed[code[1]].status != status {
				t.Errorf("%s has status %d in problems.md, not %d", code[1], listed[code[1]].status, status)
			}
		}
		if again := strings.Contains(row[3], "`Retry-After`"); again != (status == 429 || status == 503) {
			t.Errorf("%d: %s", status, row[3])
		}
	}
	for code, row := range listed {
		if row.api != "staff" && !slices.Contains(named, code) {
			t.Errorf("the table lacks %s", code)
		}
	}
}

// The limits are those of the code.
func TestChannelGuideLimits(t *testing.T) {
	t.Parallel()
	page, rates, limits := readFile(t, "docs/channel-guide.md"), gateway.Defaults().Limits, casework.DefaultLimits()
	rate := func(r gateway.Rate) string { return fmt.Sprintf("%d a second, %d at once", r.PerSecond, r.Burst) }
	for _, row := range []string{
		"posts, messages and withdrawals of a customer | " + rate(rates.CustomerPosts), "reads of a customer | " + rate(rates.CustomerReads),
		"posts, messages and withdrawals of a channel | " + rate(rates.Posts), "reads of a channel | " + rate(rates.Reads),
		fmt.Sprintf("messages to a case | %d", limits.Messages), fmt.Sprintf("cases of a request | %d", casework.MaxLinked),
		fmt.Sprintf("an unanswered question | %.0f hours, then a person takes over", limits.ClarifyDeadline.Hours()),
	} {
		if !strings.Contains(page, "\n| "+row+" |\n") {
			t.Errorf("there is no row %q", row)
		}
	}
	for _, same := range []string{"16384 bytes of UTF-8", "a page of a list | 100 |"} {
		if !strings.Contains(page, same) {
			t.Errorf("the page does not say %q", same)
		}
	}
	api := readFile(t, "services/gateway/gateway/openapi.yaml")
	for _, same := range []string{"up to 16384 bytes of UTF-8", "maximum: 100, default: 20"} {
		if !strings.Contains(api, same) {
			t.Errorf("openapi.yaml does not say %q, which the page rests on", same)
		}
	}
}
