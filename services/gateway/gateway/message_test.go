package gateway

import (
	"encoding/json"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/amends-dev/amends/internal/deskapi"
	"github.com/amends-dev/amends/internal/envelope"
	"github.com/amends-dev/amends/internal/roles"
	"github.com/amends-dev/amends/internal/subject"
	amendsv1 "github.com/amends-dev/amends/proto/amends/v1"
)

const later = `{"message":"It is order 8472 \u202e"}`

func accepted(t *testing.T, a answer) deskapi.AcceptedMessage {
	t.Helper()
	var got deskapi.AcceptedMessage
	if err := json.Unmarshal([]byte(a.body), &got); err != nil || a.status != http.StatusAccepted {
		t.Fatalf("%d %s", a.status, a.body)
	}
	return got
}

func TestMessageAndCancelAreStoredWithWhatTheCredentialSays(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	url := d.gateway(t) + "/v1/cases/req-8472"
	v := view("req-8472", 5, "AWAITING_CUSTOMER")
	v.RequestId = "req-parent"
	d.publish(t, v)
	d.recordPosts(t)
	parent := "00-" + strings.Repeat("ab", 16) + "-" + strings.Repeat("cd", 8) + "-01"
	said := accepted(t, ask(t, http.MethodPost, url+"/messages", appKey, later, "Idempotency-Key", "k-1", deskapi.HeaderCustomer, "cust_5519", "Traceparent", parent))
	withdrawn := accepted(t, ask(t, http.MethodPost, url+"/cancel", webKey, "", "Idempotency-Key", "k-1"))
	links := deskapi.Links{Self: "/v1/cases/req-8472", Events: "/v1/cases/req-8472/events"}
	if said.CaseID != "req-8472" || said.Links != links || withdrawn.CaseID != "req-8472" || withdrawn.Links != links || said.MessageID == withdrawn.MessageID {
		t.Errorf("answers %+v, %+v", said, withdrawn)
	}
	got := d.stored(t)
	if len(got) != 2 {
		t.Fatalf("%d messages stored, want 2", len(got))
	}
	for i, want := range []string{envelope.CaseMessage, envelope.CaseCancel} {
		e := got[i]
		if e.GetType() != want || e.GetTenant() != "acme-in" || e.GetCustomerId() != "cust_5519" || e.GetCaseId() != "req-8472" || e.GetRequestId() != "req-parent" ||
			e.GetSender() != string(roles.Gateway) || e.GetRecipient() != string(roles.Orchestrator) || len(e.GetTraceId()) != 32 {
			t.Errorf("envelope %v", e)
		}
	}
	if got[0].GetMessageId() != said.MessageID || got[1].GetMessageId() != withdrawn.MessageID || got[0].GetTraceId() != strings.Repeat("ab", 16) {
		t.Errorf("ids or trace differ: %v", got)
	}
	var m amendsv1.CustomerMessage
	if err := proto.Unmarshal(got[0].GetPayload(), &m); err != nil {
		t.Fatal(err)
	}
	if m.GetChannel() != "app" || m.GetBodySha256() != requestHash("It is order 8472 \u202e", "") || m.GetPostedBy() != "key-"+hashOf(appKey)[:16] || m.GetMessage().GetText() != "It is order 8472 \u202e" ||
		m.GetMessage().GetTrust() != amendsv1.TextTrust_TEXT_TRUST_UNTRUSTED || m.GetMessage().GetOrigin() != amendsv1.TextOrigin_TEXT_ORIGIN_CUSTOMER ||
		m.GetMessage().GetInstructionAuthority() != amendsv1.InstructionAuthority_INSTRUCTION_AUTHORITY_NONE {
		t.Errorf("message %v", &m)
	}
	var c amendsv1.CaseCancel
	if err := proto.Unmarshal(got[1].GetPayload(), &c); err != nil || c.GetChannel() != "web" || c.GetPostedBy() != "key-"+hashOf(webKey)[:16] {
		t.Errorf("cancel %v, %v", &c, err)
	}
}

// LOSS-1: a retry is the same message, over whichever gateway and at whatever
// version of the case; another key, channel or kind of request is another one,
// and another text under a used key is refused.
func TestARetryIsTheSameMessageLOSS1(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.recordPosts(t)
	urls := []string{d.gateway(t), d.gateway(t)}
	d.publish(t, view("req-8472", 5, "AWAITING_CUSTOMER"))
	send := func(i int, path, token, body, key string) string {
		a := ask(t, http.MethodPost, urls[i%2]+"/v1/cases/req-8472/"+path, token, body, "Idempotency-Key", key)
		return accepted(t, a).MessageID
	}
	first, withdrawal := send(0, "messages", webKey, later, "k-1"), send(0, "cancel", webKey, "", "k-1")
	d.redis.FlushAll()
	if id := send(1, "messages", webKey, later, "k-1"); id != first {
		t.Errorf("the other gateway: message %s, want %s", id, first)
	}
	for i := range urls {
		a := ask(t, http.MethodPost, urls[i]+"/v1/cases/req-8472/messages", webKey, `{"message":"something else"}`, "Idempotency-Key", "k-1")
		if p := a.problem(t); a.status != http.StatusConflict || p.Code != deskapi.CodeKeyReused {
			t.Errorf("another body: %d %s", a.status, a.body)
		}
	}
	if id := send(1, "cancel", webKey, " {} ", "k-1"); id != withdrawal {
		t.Errorf("cancel %s, want %s", id, withdrawal)
	}
	ids := map[string]bool{first: true, withdrawal: true}
	for _, id := range []string{send(0, "messages", webKey, later, "k-2"), send(0, "messages", demoKey, later, "k-1"), send(0, "cancel", webKey, "", "k-2")} {
		if ids[id] {
			t.Errorf("message id %s is used twice", id)
		}
		ids[id] = true
	}
	for _, e := range d.stored(t) {
		if !ids[e.GetMessageId()] {
			t.Errorf("message %s was stored and not answered", e.GetMessageId())
		}
	}
}

// LOSS-1: of two texts that race under one key one is taken. Whoever sent that
// one hears 202, and nobody else does.
func TestTwoTextsRaceUnderOneKeyLOSS1(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.recordPosts(t)
	urls := []string{d.gateway(t), d.gateway(t)}
	d.publish(t, view("req-8472", 5, "AWAITING_CUSTOMER"))
	bodies := []string{later, `{"message":"It is order 8473"}`}
	answers := make([]answer, 20)
	var all sync.WaitGroup
	for i := range answers {
		all.Go(func() {
			answers[i] = ask(t, http.MethodPost, urls[i/2%2]+"/v1/cases/req-8472/messages", webKey, bodies[i%2], "Idempotency-Key", "k-1")
		})
	}
	all.Wait()
	s, err := newViews(d.broker.Connect(roles.Gateway), quiet()).stored(t.Context(), subject.View("acme-in", "req-8472"))
	if err != nil || len(s.view.GetMessages()) != 1 {
		t.Fatalf("the case met %v, %v", s, err)
	}
	for i, a := range answers {
		won := requestOf(t, bodies[i%2]) == s.view.GetMessages()[0].GetBodySha256()
		switch {
		case won && accepted(t, a).MessageID != s.view.GetMessages()[0].GetMessageId():
			t.Errorf("%d: the text that was taken is answered %s", i, a.body)
		case !won && (a.status != http.StatusConflict || a.problem(t).Code != deskapi.CodeKeyReused):
			t.Errorf("%d: the text that was not taken is answered %d %s", i, a.status, a.body)
		}
	}
}

// A message that no record has met is stored and not confirmed; the same request
// again tells, whatever the case made of it.
func TestAMessageIsConfirmedByTheRecord(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	url := d.gateway(t) + "/v1/cases/req-8472/messages"
	d.publish(t, view("req-8472", 9, "VERIFIED_CLOSED"))
	a := ask(t, http.MethodPost, url, webKey, later, "Idempotency-Key", "k-1")
	if p := a.problem(t); a.status != http.StatusServiceUnavailable || p.Code != deskapi.CodeNotConfirmed || a.header.Get("Retry-After") == "" {
		t.Fatalf("%d %s", a.status, a.body)
	}
	if n := len(d.stored(t)); n != 1 {
		t.Fatalf("%d messages stored", n)
	}
	d.recordPosts(t)
	first := accepted(t, ask(t, http.MethodPost, url, webKey, later, "Idempotency-Key", "k-1"))
	stored := d.stored(t)
	// From here the view tells, and nothing is stored again.
	for range 3 {
		if again := accepted(t, ask(t, http.MethodPost, url, webKey, later, "Idempotency-Key", "k-1")); again != first {
			t.Errorf("%+v, want %+v", again, first)
		}
	}
	if got := d.stored(t); len(got) != len(stored) || got[0].GetMessageId() != first.MessageID {
		t.Errorf("stored %v", got)
	}
}

func TestALostAcknowledgementIsTheSameMessage(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		flaky  flaky
		status int
	}{
		"stored":     {flaky{lose: 1, stored: true}, http.StatusAccepted},
		"not stored": {flaky{lose: 1}, http.StatusAccepted},
		"twice":      {flaky{lose: 2}, http.StatusServiceUnavailable},
	} {
		for _, path := range []string{"messages", "cancel"} {
			t.Run(name+" "+path, func(t *testing.T) {
				t.Parallel()
				d := newDesk(t)
				d.recordPosts(t)
				d.publish(t, view("req-8472", 5, "AWAITING_CUSTOMER"))
				f := c.flaky
				f.broker = d.broker.Connect(roles.Gateway)
				_, h := d.handler(t.Context(), t, &f)
				body := later
				if path == "cancel" {
					body = "{}"
				}
				a := call(t, h, http.MethodPost, "/v1/cases/req-8472/"+path, webKey, body, "Idempotency-Key", "k-1")
				if a.status != c.status || (a.status == 503) != (a.header.Get("Retry-After") != "") {
					t.Errorf("%d %s %v, want %d", a.status, a.body, a.header, c.status)
				}
				ids := map[string]bool{}
				for _, e := range d.stored(t) {
					ids[e.GetMessageId()] = true
				}
				if want := map[int]int{202: 1, 503: 0}[c.status]; len(ids) != want {
					t.Errorf("%d different messages stored, want %d", len(ids), want)
				}
			})
		}
	}
}

func TestAClosedCaseTakesMessagesAndNoCancel(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.recordPosts(t)
	url := d.gateway(t) + "/v1/cases/req-8472"
	d.publish(t, view("req-8472", 9, "VERIFIED_CLOSED"))
	a := ask(t, http.MethodPost, url+"/cancel", webKey, "{}", "Idempotency-Key", "k-1")
	if p := a.problem(t); a.status != http.StatusConflict || p.Code != deskapi.CodeCaseClosed || !strings.Contains(p.Detail, "VERIFIED_CLOSED") {
		t.Errorf("%d %+v", a.status, p)
	}
	accepted(t, ask(t, http.MethodPost, url+"/messages", webKey, later, "Idempotency-Key", "k-1"))
	if got := d.stored(t); len(got) != 1 || got[0].GetType() != envelope.CaseMessage {
		t.Errorf("stored %v", got)
	}
}

// TENANT-1: nothing is said on a case of another customer or tenant, and the
// answer is the one GET gives for a case that does not exist.
func TestForeignCasesTakeNothingTENANT1(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	url := d.gateway(t)
	d.publish(t, view("req-8472", 5, "AWAITING_APPROVAL"))
	d.publish(t, view("req-8473", 9, "VERIFIED_CLOSED"))
	want := ask(t, http.MethodGet, url+"/v1/cases/req-none", webKey, "")
	var all sync.WaitGroup
	for _, key := range []string{otherKey, betaKey} {
		for _, id := range []string{"req-8472", "req-8473", "req-none"} {
			for path, body := range map[string]string{"messages": later, "cancel": ""} {
				all.Go(func() {
					start := time.Now()
					a := ask(t, http.MethodPost, url+"/v1/cases/"+id+"/"+path, key, body, "Idempotency-Key", "k-1")
					if a.status != http.StatusNotFound || a.body != want.body || len(a.header) != len(want.header) {
						t.Errorf("%s %s/%s: %d %s %v", key, id, path, a.status, a.body, a.header)
					}
					if took := time.Since(start); took < viewWait {
						t.Errorf("%s %s/%s was answered after %s, before an unknown case is", key, id, path, took)
					}
				})
			}
		}
	}
	all.Wait()
	if a := ask(t, http.MethodPost, url+"/v1/cases/8472.%3E/cancel", webKey, "", "Idempotency-Key", "k-1"); a.status != http.StatusNotFound || a.body != want.body {
		t.Errorf("B55: %d %s", a.status, a.body)
	}
	if got := d.stored(t); len(got) != 0 {
		t.Errorf("%d messages stored", len(got))
	}
}

func TestRefusedMessagesAndCancels(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	url := d.gateway(t) + "/v1/cases/req-8472/"
	d.publish(t, view("req-8472", 5, "AWAITING_CUSTOMER"))
	key := []string{"Idempotency-Key", "k-1"}
	for name, c := range map[string]struct {
		path, token, body string
		header            []string
		status            int
		code              deskapi.Code
	}{
		"no token":           {"messages", "", later, key, 401, deskapi.CodeUnauthenticated},
		"no key":             {"messages", webKey, later, nil, 400, deskapi.CodeKeyMissing},
		"key with a space":   {"messages", webKey, later, []string{"Idempotency-Key", "a b"}, 400, deskapi.CodeKeyInvalid},
		"customer missing":   {"messages", appKey, later, key, 400, deskapi.CodeCustomerMissing},
		"empty body":         {"messages", webKey, "", key, 400, deskapi.CodeBodyInvalid},
		"blank message":      {"messages", webKey, `{"message":" "}`, key, 400, deskapi.CodeBodyInvalid},
		"unknown member":     {"messages", webKey, `{"message":"m","case_id":"req-1"}`, key, 400, deskapi.CodeBodyInvalid},
		"member twice":       {"messages", webKey, `{"message":"a","message":"b"}`, key, 400, deskapi.CodeBodyInvalid},
		"number":             {"messages", webKey, `{"message":8472}`, key, 400, deskapi.CodeBodyInvalid},
		"trailing":           {"messages", webKey, later + later, key, 400, deskapi.CodeBodyInvalid},
		"not UTF-8":          {"messages", webKey, "{\"message\":\"\xff\"}", key, 400, deskapi.CodeBodyInvalid},
		"message too large":  {"messages", webKey, `{"message":"` + strings.Repeat("x", maxMessage+1) + `"}`, key, 413, deskapi.CodeBodyTooLarge},
		"body too large":     {"messages", webKey, `{"message":"` + strings.Repeat("x", maxBody) + `"}`, key, 413, deskapi.CodeBodyTooLarge},
		"cancel, no token":   {"cancel", "", "", key, 401, deskapi.CodeUnauthenticated},
		"cancel, no key":     {"cancel", webKey, "", nil, 400, deskapi.CodeKeyMissing},
		"cancel with words":  {"cancel", webKey, `{"message":"m"}`, key, 400, deskapi.CodeBodyInvalid},
		"cancel, no object":  {"cancel", webKey, `null`, key, 400, deskapi.CodeBodyInvalid},
		"cancel twice":       {"cancel", webKey, `{}{}`, key, 400, deskapi.CodeBodyInvalid},
		"cancel, cut off":    {"cancel", webKey, `{`, key, 400, deskapi.CodeBodyInvalid},
		"cancel with spaces": {"cancel", webKey, strings.Repeat(" ", maxBody+1), key, 413, deskapi.CodeBodyTooLarge},
	} {
		a := ask(t, http.MethodPost, url+c.path, c.token, c.body, c.header...)
		if p := a.problem(t); a.status != c.status || p.Code != c.code {
			t.Errorf("%s: %d %+v, want %d %s", name, a.status, p, c.status, c.code)
		}
	}
	for _, path := range []string{"messages", "cancel"} {
		if a := ask(t, http.MethodGet, url+path, webKey, ""); a.status != http.StatusMethodNotAllowed || a.header.Get("Allow") != "POST" {
			t.Errorf("GET %s: %d, Allow %q", path, a.status, a.header.Get("Allow"))
		}
	}
	if got := d.stored(t); len(got) != 0 {
		t.Errorf("%d messages stored", len(got))
	}
}

// A message right after the 202 of its case waits for the view; messages and
// cancels are under the posts' limit; a broker that is away is told as such.
func TestMessagesKeepThePostsRules(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.recordPosts(t)
	url := d.gatewayWith(t, func(c *Config) { c.Limits.Posts = Rate{1, 1} }) + "/v1/cases/req-8472"
	got := make(chan answer, 1)
	go func() {
		got <- ask(t, http.MethodPost, url+"/messages", webKey, later, "Idempotency-Key", "k-1")
	}()
	d.publish(t, view("req-8472", 1, "RECEIVED"))
	accepted(t, <-got)
	_, h := d.handler(t.Context(), t, d.broker.Connect(roles.Gateway))
	d.broker.Stop()
	a := call(t, h, http.MethodPost, "/v1/cases/req-8472/cancel", webKey, "", "Idempotency-Key", "k-1")
	if p := a.problem(t); a.status != http.StatusServiceUnavailable || p.Code != deskapi.CodeUnavailable || a.header.Get("Retry-After") == "" {
		t.Errorf("without a broker: %d %+v", a.status, p)
	}
	limited := false
	for range 5 {
		a := ask(t, http.MethodPost, url+"/cancel", webKey, "x", "Idempotency-Key", "k-1")
		limited = limited || a.status == http.StatusTooManyRequests && a.header.Get("Retry-After") != ""
	}
	if !limited {
		t.Error("no cancel was over the limit")
	}
}
