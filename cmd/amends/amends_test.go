package main

import (
	"bytes"
	"crypto/rand"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/amends-dev/amends/internal/approval"
	"github.com/amends-dev/amends/internal/deskapi"
	"github.com/amends-dev/amends/internal/edge"
	"github.com/amends-dev/amends/internal/money"
	amendsv1 "github.com/amends-dev/amends/proto/amends/v1"
)

var now = time.Date(2026, 3, 12, 10, 20, 0, 0, time.UTC)

func action() *amendsv1.ActionRecord {
	return &amendsv1.ActionRecord{
		Tenant: "acme-in", CaseId: "req-8472", OrderId: "8472", CaseVersion: 5, Proposal: 1,
		Refunds: []*amendsv1.ActionRefund{{
			PaymentId: "pay_8472_b", Amount: money.New(200000, "INR"), Kind: "duplicate_capture",
			IdempotencyKey: approval.Key("req-8472", "pay_8472_b"),
		}},
		EvidenceSha256: strings.Repeat("ab", 32),
		Created:        timestamppb.New(now.Add(-5 * time.Minute)), Expires: timestamppb.New(now.Add(25 * time.Minute)),
	}
}

// fakeConsole answers like the console, and can lie.
type fakeConsole struct {
	action *amendsv1.ActionRecord
	change func(*deskapi.Action)
	// busy is how many decisions are turned away first.
	busy int
	// looks answers each look at the record in turn, the last for ever.
	looks []look

	mu       sync.Mutex
	received []*amendsv1.SignedDecision
	asked    []string // the versions looks asked for
}

func (c *fakeConsole) serve(t *testing.T) string {
	t.Helper()
	mux := http.NewServeMux()
	mux.Handle("GET /v1/cases/acme-in/req-8472/action", edge.Handler(func(w http.ResponseWriter, r *http.Request) *deskapi.Problem {
		if edge.Bearer(r) != "staff-token" {
			return deskapi.NewProblem(401, deskapi.CodeUnauthenticated, "")
		}
		text, err1 := approval.ActionText(action())
		sum, err2 := approval.ActionSHA256(action())
		body, err3 := protojson.Marshal(c.action)
		if err1 != nil || err2 != nil || err3 != nil {
			t.Error(err1, err2, err3)
		}
		total := deskapi.Amount{Minor: 200000, Currency: "INR"}
		out := deskapi.Action{
			Tenant: "acme-in", CaseID: "req-8472", Version: 5, State: stateAwaitingApproval, Action: body, ActionText: text, ActionSHA256: sum,
			ApproversNeeded: 1, NextApprovalID: "apr-8472-1",
			Evidence: deskapi.Evidence{
				Complete: true, Reason: "duplicate_settled_capture", OrderTotal: &total, PolicyCitation: "POL-REF-004 v4", PolicyQuote: "a \x1b[2J\u202equote",
				Captures: []deskapi.Capture{{PaymentID: "pay_8472_b", Amount: total, Status: "settled"}}, CallIDs: []string{"call-8472-p1"},
			},
		}
		if c.change != nil {
			c.change(&out)
		}
		edge.WriteJSON(w, 200, out)
		return nil
	}))
	mux.Handle("GET /v1/cases/acme-in/req-8472", edge.Handler(c.showRecord))
	mux.Handle("POST /v1/cases/acme-in/req-8472/decisions", edge.Handler(func(w http.ResponseWriter, r *http.Request) *deskapi.Problem {
		body, err := io.ReadAll(r.Body)
		d := new(amendsv1.SignedDecision)
		if err != nil || protojson.Unmarshal(body, d) != nil {
			return deskapi.NewProblem(400, deskapi.CodeDecisionMalformed, "")
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		c.received = append(c.received, d)
		if len(c.received) <= c.busy {
			return deskapi.NewProblem(503, deskapi.CodeUnavailable, "").After(time.Millisecond)
		}
		edge.WriteJSON(w, 202, deskapi.Relayed{ApprovalID: d.GetApprovalId(), MessageID: "m-1"})
		return nil
	}))
	s := httptest.NewServer(mux)
	t.Cleanup(s.Close)
	return s.URL
}

// files gives a directory with a key of maya and a token.
func files(t *testing.T) (dir string, key approval.Key25519) {
	t.Helper()
	dir = t.TempDir()
	key, err := approval.NewKey("maya", "maya-1", rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	data, err := key.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, "maya.key"), data, 0o600)
	write(t, filepath.Join(dir, "token"), []byte("staff-token\n"), 0o600)
	return dir, key
}

func write(t *testing.T, path string, data []byte, mode os.FileMode) {
	t.Helper()
	if err := os.WriteFile(path, data, mode); err != nil {
		t.Fatal(err)
	}
}

type result struct {
	code     int
	out, err string
}

// amends runs a command; a nil answer means that nobody is at the terminal.
func amends(t *testing.T, answer *string, args ...string) result {
	t.Helper()
	var out, errOut bytes.Buffer
	term := &terminal{in: strings.NewReader(""), out: &out, err: &errOut, now: func() time.Time { return now }, entropy: rand.Reader}
	if answer != nil {
		term.in, term.interactive = strings.NewReader(*answer), true
	}
	code := run(t.Context(), args, term)
	return result{code, out.String(), errOut.String()}
}

func decideArgs(verb, dir, url string, more ...string) []string {
	return append([]string{
		verb, "req-8472", "--tenant", "acme-in", "--console", url,
		"--key", filepath.Join(dir, "maya.key"), "--token-file", filepath.Join(dir, "token"),
	}, more...)
}

func registryOf(t *testing.T, key approval.Key25519) *approval.Registry {
	t.Helper()
	r, err := approval.NewRegistry("1", approval.Approver{
		ID: "maya", Roles: []string{approval.RoleApprover}, Tenants: []string{"acme-in"},
		Limits: []approval.Limit{{Currency: "INR", Minor: 5000000}}, Keys: []approval.PublicKey{key.PublicEntry(now.Add(-time.Hour))},
	})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestApproveSignsExactlyWhatItShows(t *testing.T) {
	t.Parallel()
	dir, key := files(t)
	c := &fakeConsole{action: action(), busy: 2, looks: judged(6, "REFUND_REQUESTED", "")}
	yes := "y\n"
	got := amends(t, &yes, decideArgs("approve", dir, c.serve(t))...)
	if got.code != exitDone || !strings.HasSuffix(got.out, "[y/N] approved as apr-8472-1 (v6, REFUND_REQUESTED)\n") {
		t.Fatalf("%+v", got)
	}
	if len(c.received) != 3 || !bytes.Equal(c.received[0].GetSignature(), c.received[2].GetSignature()) {
		t.Fatalf("a retry was not the same decision: %v", c.received)
	}
	d := c.received[0]
	if err := approval.Check(registryOf(t, key), action(), d, now); err != nil || d.GetVerdict() != amendsv1.Verdict_VERDICT_APPROVE || d.GetApprovalId() != "apr-8472-1" {
		t.Errorf("decision %v: %v", d, err)
	}
	text, err := approval.DecisionText(d)
	if err != nil {
		t.Fatal(err)
	}
	actionText, err := approval.ActionText(action())
	if err != nil {
		t.Fatal(err)
	}
	for _, signed := range strings.Split(text+actionText, "\n") {
		if !strings.Contains(got.out, signed) {
			t.Errorf("signed, but not shown: %q", signed)
		}
	}
	for _, want := range []string{"₹2,000.00", "capture pay_8472_b", "POL-REF-004 v4", d.GetActionSha256(), `\u202equote`} {
		if !strings.Contains(got.out, want) {
			t.Errorf("not shown: %q", want)
		}
	}
	if strings.ContainsAny(got.out, "\x1b\u202e") {
		t.Error("what the console sent reached the terminal as it was (B72)")
	}
}

func TestDenyNeedsAReasonAndSignsIt(t *testing.T) {
	t.Parallel()
	dir, key := files(t)
	c := &fakeConsole{action: action(), looks: judged(6, "DECLINED", "")}
	url := c.serve(t)
	if got := amends(t, nil, decideArgs("deny", dir, url, "--yes")...); got.code != exitUsage {
		t.Errorf("without a reason: %+v", got)
	}
	got := amends(t, nil, decideArgs("deny", dir, url, "--yes", "--json", "--reason", "not a duplicate")...)
	var out decided
	if err := json.Unmarshal([]byte(got.out), &out); err != nil || got.code != exitDone {
		t.Fatalf("%+v", got)
	}
	if len(c.received) != 1 || c.received[0].GetReason() != "not a duplicate" || out.Verdict != "deny" || out.ApprovalID != "apr-8472-1" || out.ActionSHA256 != c.received[0].GetActionSha256() ||
		!out.Recorded || out.Refused != "" || out.Version != 6 || out.State != "DECLINED" || out.Unjudged {
		t.Errorf("%+v, %v", out, c.received)
	}
	if err := approval.Check(registryOf(t, key), action(), c.received[0], now); err != nil {
		t.Error(err)
	}
}

// The console is not trusted with what is signed.
func TestNothingIsSignedWhen(t *testing.T) {
	t.Parallel()
	yes, no := "y\n", "n\n"
	for name, c := range map[string]struct {
		answer *string
		action func(*amendsv1.ActionRecord)
		change func(*deskapi.Action)
		want   string
	}{
		"the amount is another": {&yes, func(a *amendsv1.ActionRecord) { a.Refunds[0].Amount.Minor = 2000000 }, nil, "another text or hash"},
		"the hash is another":   {&yes, nil, func(a *deskapi.Action) { a.ActionSHA256 = strings.Repeat("0", 64) }, "another text or hash"},
		"the text is another":   {&yes, nil, func(a *deskapi.Action) { a.ActionText += "x" }, "another text or hash"},
		"it is another case": {&yes, func(a *amendsv1.ActionRecord) {
			a.CaseId = "req-1"
			a.Refunds[0].IdempotencyKey = approval.Key("req-1", "pay_8472_b")
		}, nil, "another case"},
		"it is another tenant":        {&yes, func(a *amendsv1.ActionRecord) { a.Tenant = "beta" }, nil, "another case"},
		"the record is not whole":     {&yes, func(a *amendsv1.ActionRecord) { a.EvidenceSha256 = "" }, nil, "evidence hash"},
		"the id does not fit":         {&yes, nil, func(a *deskapi.Action) { a.NextApprovalID = "apr-8472-9" }, "approval id"},
		"nothing is awaited":          {&yes, nil, func(a *deskapi.Action) { a.State = "REFUND_REQUESTED" }, "awaits no approval"},
		"it expired":                  {&yes, func(a *amendsv1.ActionRecord) { a.Expires = timestamppb.New(now) }, func(a *deskapi.Action) { reform(a) }, "expired"},
		"the person says no":          {&no, nil, nil, "you said no"},
		"the person says nothing":     {new(string), nil, nil, "you said no"},
		"nobody is there to be asked": {nil, nil, nil, "nobody is there"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir, _ := files(t)
			fake := &fakeConsole{action: action(), change: c.change}
			if c.action != nil {
				c.action(fake.action)
			}
			got := amends(t, c.answer, decideArgs("approve", dir, fake.serve(t))...)
			if got.code != exitFailed || !strings.Contains(got.err, "not signed") || !strings.Contains(got.err, c.want) {
				t.Errorf("%+v, want %q", got, c.want)
			}
			if len(fake.received) != 0 {
				t.Error("a decision was handed in")
			}
		})
	}
}

// reform gives an action the text and hash of the record it carries.
func reform(a *deskapi.Action) {
	rec := new(amendsv1.ActionRecord)
	if protojson.Unmarshal(a.Action, rec) != nil {
		return
	}
	a.ActionText, _ = approval.ActionText(rec)
	a.ActionSHA256, _ = approval.ActionSHA256(rec)
}

func TestFilesThatOthersMayReadAreRefused(t *testing.T) {
	t.Parallel()
	c := &fakeConsole{action: action()}
	url := c.serve(t)
	for _, name := range []string{"maya.key", "token"} {
		dir, _ := files(t)
		if err := os.Chmod(filepath.Join(dir, name), 0o644); err != nil {
			t.Fatal(err)
		}
		if got := amends(t, nil, decideArgs("approve", dir, url, "--yes")...); got.code != exitFailed || !strings.Contains(got.err, "may be read by others") {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

func TestRefusalsAreToldToMachines(t *testing.T) {
	t.Parallel()
	dir, _ := files(t)
	write(t, filepath.Join(dir, "token"), []byte("other"), 0o600)
	c := &fakeConsole{action: action()}
	got := amends(t, nil, decideArgs("approve", dir, c.serve(t), "--yes", "--json")...)
	var out struct{ Error, Code string }
	if err := json.Unmarshal([]byte(got.err), &out); err != nil || got.code != exitFailed || out.Code != string(deskapi.CodeUnauthenticated) || got.out != "" {
		t.Errorf("%+v", got)
	}
}

func TestApproverNewMakesAKeyOnce(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "maya.key")
	got := amends(t, nil, "approver", "new", "--id", "maya", "--key-id", "maya-1", "--out", path)
	if got.code != exitDone {
		t.Fatalf("%+v", got)
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	key, err := approval.ParseKey(data)
	if err != nil {
		t.Fatal(err)
	}
	registry, err := approval.ParseRegistry([]byte("version: \"1\"\napprovers:\n" + got.out))
	if err != nil {
		t.Fatalf("the printed entry is no registry entry: %v\n%s", err, got.out)
	}
	a := registry.Approvers[0]
	if a.ID != "maya" || len(a.Roles)+len(a.Tenants)+len(a.Limits) != 0 || a.Keys[0].ID != "maya-1" || a.Keys[0].Public != key.PublicEntry(now).Public || !a.Keys[0].NotBefore.Equal(now) {
		t.Errorf("entry %+v", a)
	}
	if strings.Contains(got.out, "PRIVATE") {
		t.Error("the private key was printed")
	}
	again := amends(t, nil, "approver", "new", "--id", "maya", "--key-id", "maya-2", "--out", path)
	if after, err := os.ReadFile(path); again.code != exitFailed || err != nil || !bytes.Equal(after, data) {
		t.Errorf("a key file was written over: %+v", again)
	}
	if bad := amends(t, nil, "approver", "new", "--id", "ma ya", "--key-id", "k", "--out", path+"2"); bad.code != exitUsage {
		t.Errorf("bad id: %+v", bad)
	}
}
