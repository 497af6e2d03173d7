package docs

import (
	"io/fs"
	"maps"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// statuses are the names the code calls them by.
var statuses = map[string]int{
	"StatusBadRequest": 400, "StatusUnauthorized": 401, "StatusForbidden": 403, "StatusNotFound": 404, "StatusMethodNotAllowed": 405,
	"StatusConflict": 409, "StatusGone": 410, "StatusRequestEntityTooLarge": 413, "StatusUnprocessableEntity": 422, "StatusTooManyRequests": 429,
	"StatusInternalServerError": 500, "StatusBadGateway": 502, "StatusServiceUnavailable": 503,
}

// problemRow is a row of problems.md: status and API.
type problemRow struct {
	status int
	api    string
}

func readProblems(t *testing.T) map[string]problemRow {
	t.Helper()
	out := map[string]problemRow{}
	for _, m := range regexp.MustCompile("(?m)^\\| `([a-z_]+)` \\| (\\d{3}) \\| (both|channels|staff) \\| [^|]+ \\| [^|]+ \\|$").FindAllStringSubmatch(readFile(t, "docs/problems.md"), -1) {
		if _, twice := out[m[1]]; twice {
			t.Errorf("problems.md lists %s twice", m[1])
		}
		status, err := strconv.Atoi(m[2])
		if err != nil {
			t.Fatal(err)
		}
		out[m[1]] = problemRow{status, m[3]}
	}
	return out
}

func readFile(t *testing.T, name string) string {
	t.Helper()
	data, err := fs.ReadFile(os.DirFS(".."), name)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// The page lists every code there is, and the code gives each with the status
// the page says, at the API the page says.
func TestProblemsAreListed(t *testing.T) {
	t.Parallel()
	listed := readProblems(t)
	named := map[string]string{} // by the constant's name
	for _, m := range regexp.MustCompile(`(Code\w+)\s+Code = "(\w+)"`).FindAllStringSubmatch(readFile(t, "internal/deskapi/problem.go"), -1) {
		named[m[1]] = m[2]
	}
	if declared := slices.Sorted(maps.Values(named)); !slices.Equal(declared, slices.Sorted(maps.Keys(listed))) {
		t.Errorf("declared %q\nlisted   %q", declared, slices.Sorted(maps.Keys(listed)))
	}
	used := regexp.MustCompile(`NewProblem\(http\.(Status\w+), (?:deskapi\.)?(Code\w+)`)
	for _, where := range []struct{ dir, api string }{{"services/gateway", "channels"}, {"services/console", "staff"}, {"internal/edge", ""}} {
		found := 0
		err := fs.WalkDir(os.DirFS(".."), where.dir, func(name string, _ fs.DirEntry, err error) error {
			if err != nil || !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") {
				return err
			}
			for _, m := range used.FindAllStringSubmatch(readFile(t, name), -1) {
				found++
				row := listed[named[m[2]]]
				if row.status != statuses[m[1]] || row.api != "both" && row.api != where.api {
					t.Errorf("%s answers %s with %s; problems.md says %d, %s", name, named[m[2]], m[1], row.status, row.api)
				}
			}
			return nil
		})
		if err != nil || found == 0 {
			t.Errorf("%s: %d problems found, %v", where.dir, found, err)
		}
	}
}

// The channels' API document and the page list the same codes.
func TestOpenAPIListsTheChannelsProblems(t *testing.T) {
	t.Parallel()
	_, rest, _ := strings.Cut(readFile(t, "services/gateway/gateway/openapi.yaml"), "        code:\n          type: string\n          enum:\n")
	var documented, listed []string
	for line := range strings.Lines(rest) {
		code, ok := strings.CutPrefix(strings.TrimSpace(line), "- ")
		if !ok {
			break
		}
		documented = append(documented, code)
	}
	for code, row := range readProblems(t) {
		if row.api != "staff" {
			listed = append(listed, code)
		}
	}
	slices.Sort(documented)
	slices.Sort(listed)
	if !slices.Equal(documented, listed) {
		t.Errorf("openapi.yaml %q\nproblems.md  %q", documented, listed)
	}
}
