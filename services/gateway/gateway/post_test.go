package gateway

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/amends-dev/amends/internal/bus"
	"github.com/amends-dev/amends/internal/deskapi"
	"github.com/amends-dev/amends/internal/envelope"
	"github.com/amends-dev/amends/internal/ident"
	"github.com/amends-dev/amends/internal/roles"
	amendsv1 "github.com/amends-dev/amends/proto/amends/v1"
)

// LOSS-1: one post is one case, whoever sends it how often to which gateway,
// and whatever Redis forgets meanwhile.
func TestSamePostFiftyTimesIsOneCaseLOSS1(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.recordPosts(t)
	urls := []string{d.gateway(t), d.gateway(t)}
	answers := make([]answer, 50)
	var all sync.WaitGroup
	for i := range answers {
		all.Go(func() {
			switch i {
			case len(answers) / 2:
				d.redis.FlushAll()
			case len(answers) * 3 / 4:
				d.redis.Close()
				if err := d.redis.Restart(); err != nil {
					t.Error(err)
				}
			}
			answers[i] = ask(t, http.MethodPost, urls[i%2]+"/v1/cases", webKey, founding, "Idempotency-Key", "k-1")
		})
	}
	all.Wait()
	for _, a := range answers {
		if a.status != http.StatusAccepted || a.body != answers[0].body || a.header.Get("Location") != answers[0].header.Get("Location") {
			t.Fatalf("answer %d %s %s, want %s", a.status, a.body, a.header.Get("Location"), answers[0].body)
		}
	}
	if got := d.stored(t); len(got) != 1 {
		t.Fatalf("%d messages stored, want 1", len(got))
	}
}

func TestAcceptedPostIsStoredWithWhatTheCredentialSays(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	url := d.gateway(t)
	const traceID = "7f3a91aaaaaaaaaaaaaaaaaaaaaaaaaa"
	a := ask(t, http.MethodPost, url+"/v1/cases", webKey, founding, "Idempotency-Key", "k-1",
		"traceparent", "00-"+traceID+"-00f067aa0ba902b7-01", deskapi.HeaderCustomer, "cust_evil", deskapi.HeaderRequestID, "rq-1")
	if a.status != http.StatusAccepted {
		t.Fatalf("%d %s", a.status, a.body)
	}
	caseID := ident.Case("acme-in", "web", "/v1/cases", "k-1")
	want := `{"case_id":"` + caseID + `","request_id":"` + caseID + `","state":"RECEIVED","links":{"self":"/v1/cases/` + caseID + `","events":"/v1/cases/` + caseID + `/events"}}`
	if a.body != want || a.header.Get("Location") != "/v1/cases/"+caseID || a.header.Get(deskapi.HeaderRequestID) != "rq-1" {
		t.Errorf("answer %s with %v\nwant %s", a.body, a.header, want)
	}
	stored := d.stored(t)
	if len(stored) != 1 {
		t.Fatalf("%d messages stored, want 1", len(stored))
	}
	env := stored[0]
	if env.GetTenant() != "acme-in" || env.GetCaseId() != caseID || env.GetRequestId() != caseID || env.GetCustomerId() != "cust_5519" ||
		env.GetSender() != "gateway" || env.GetRecipient() != "orchestrator" || env.GetType() != envelope.CaseOpened ||
		env.GetTraceId() != traceID || env.GetMessageId() != messageID("acme-in", caseID) {
		t.Errorf("envelope %v", env)
	}
	opened := new(amendsv1.CaseOpened)
	if err := proto.Unmarshal(env.GetPayload(), opened); err != nil {
		t.Fatal(err)
	}
	var body deskapi.Post
	if err := json.Unmarshal([]byte(founding), &body); err != nil {
		t.Fatal(err)
	}
	if opened.GetChannel() != "web" || opened.GetMessage().GetText() != body.Message || opened.GetMessage().GetOrigin() != amendsv1.TextOrigin_TEXT_ORIGIN_CUSTOMER ||
		opened.GetBodySha256() != requestHash(body.Message, "") || opened.GetPostedBy() != "key-"+hashOf(webKey)[:16] {
		t.Errorf("payload %v", opened)
	}
	if strings.Contains(env.String(), webKey) {
		t.Error("the API key was stored")
	}
}

func TestPostWithoutATraceBeginsOne(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	ask(t, http.MethodPost, d.gateway(t)+"/v1/cases", webKey, founding, "Idempotency-Key", "k-1")
	stored := d.stored(t)
	if len(stored) != 1 || len(stored[0].GetTraceId()) != 32 || stored[0].GetTraceId() == strings.Repeat("0", 32) {
		t.Errorf("stored %v", stored)
	}
}

func TestAnotherRequestUnderTheSameKeyIsRefused(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.recordPosts(t)
	url := d.gateway(t) + "/v1/cases"
	for _, c := range []struct{ key, body, customer string }{
		{webKey, founding, ""}, {appKey, founding, "cust_1"}, {demoKey, `{"message":"m","case_id":"req-8472"}`, ""},
	} {
		if a := ask(t, http.MethodPost, url, c.key, c.body, "Idempotency-Key", "k-1", deskapi.HeaderCustomer, c.customer); a.status != http.StatusAccepted {
			t.Fatalf("first post: %d %s", a.status, a.body)
		}
	}
	for name, c := range map[string]struct{ key, body, customer string }{
		"another message":       {webKey, `{"message":"something else"}`, ""},
		"the same, and a space": {webKey, strings.Replace(founding, "Order", "Order ", 1), ""},
		"another customer":      {appKey, founding, "cust_2"},
		"same channel, other":   {otherKey, founding, ""},
		"named id, other body":  {demoKey, `{"message":"n","case_id":"req-8472"}`, ""},
	} {
		a := ask(t, http.MethodPost, url, c.key, c.body, "Idempotency-Key", "k-1", deskapi.HeaderCustomer, c.customer)
		if p := a.problem(t); a.status != http.StatusConflict || p.Code != deskapi.CodeKeyReused {
			t.Errorf("%s: %d %+v", name, a.status, p)
		}
	}
	if got := d.stored(t); len(got) != 3 {
		t.Errorf("%d messages stored, want 3", len(got))
	}
}

// Bug B63: a key counts within its tenant, channel and endpoint, and a refused
// request does not use it up.
func TestKeysAreScopedAndRefusalsDoNotUseThemUpB63(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.recordPosts(t)
	url := d.gateway(t) + "/v1/cases"
	d.publish(t, view("req-8472", 5, "AWAITING_CUSTOMER"))
	for _, c := range []struct {
		path, body string
		status     int
	}{
		{"", `{"message":`, 400},
		{"", `{"message":"m","case_id":"req-1"}`, 403},
		{"", `{"message":"` + strings.Repeat("x", maxBody) + `"}`, 413},
		{"/req-8472/messages", `[]`, 400},
		{"/req-8472/cancel", `{"message":"m"}`, 400},
		{"/req-none/messages", later, 404},
	} {
		if a := ask(t, http.MethodPost, url+c.path, webKey, c.body, "Idempotency-Key", "k-1"); a.status != c.status {
			t.Fatalf("%s: %d %s", c.path, a.status, a.body)
		}
	}
	ids := map[string]bool{}
	for _, key := range []string{webKey, betaKey, demoKey} {
		a := ask(t, http.MethodPost, url, key, founding, "Idempotency-Key", "k-1")
		var got deskapi.Accepted
		if err := json.Unmarshal([]byte(a.body), &got); err != nil || a.status != http.StatusAccepted {
			t.Fatalf("%s: %d %s", key, a.status, a.body)
		}
		ids[got.CaseID] = true
	}
	for _, endpoint := range []struct{ path, body string }{{"/req-8472/messages", later}, {"/req-8472/cancel", ""}} {
		ids[accepted(t, ask(t, http.MethodPost, url+endpoint.path, webKey, endpoint.body, "Idempotency-Key", "k-1")).MessageID] = true
	}
	if len(ids) != 5 || len(d.stored(t)) != 5 {
		t.Errorf("ids %v, want five, each stored once", ids)
	}
}

func TestAcceptedPostThatCannotBeComparedYetIsNotConfirmed(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	url := d.gateway(t) + "/v1/cases"
	if a := ask(t, http.MethodPost, url, webKey, founding, "Idempotency-Key", "k-1"); a.status != http.StatusAccepted {
		t.Fatalf("%d %s", a.status, a.body)
	}
	a := ask(t, http.MethodPost, url, webKey, `{"message":"another"}`, "Idempotency-Key", "k-1")
	if p := a.problem(t); a.status != http.StatusServiceUnavailable || p.Code != deskapi.CodeNotConfirmed || a.header.Get("Retry-After") == "" {
		t.Errorf("%d %+v %v", a.status, p, a.header)
	}
}

func TestRefusedPosts(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	url := d.gateway(t) + "/v1/cases"
	key := []string{"Idempotency-Key", "k-1"}
	for name, c := range map[string]struct {
		token, body string
		header      []string
		status      int
		code        deskapi.Code
	}{
		"no token":            {"", founding, key, 401, deskapi.CodeUnauthenticated},
		"wrong token":         {"nope", founding, key, 401, deskapi.CodeUnauthenticated},
		"hash as token":       {hashOf(webKey), founding, key, 401, deskapi.CodeUnauthenticated},
		"no key":              {webKey, founding, nil, 400, deskapi.CodeKeyMissing},
		"key with a space":    {webKey, founding, []string{"Idempotency-Key", "a b"}, 400, deskapi.CodeKeyInvalid},
		"key not ASCII":       {webKey, founding, []string{"Idempotency-Key", "ké"}, 400, deskapi.CodeKeyInvalid},
		"key of 129":          {webKey, founding, []string{"Idempotency-Key", strings.Repeat("k", 129)}, 400, deskapi.CodeKeyInvalid},
		"two keys":            {webKey, founding, []string{"Idempotency-Key", "a", "Idempotency-Key", "b"}, 400, deskapi.CodeKeyInvalid},
		"empty body":          {webKey, "", key, 400, deskapi.CodeBodyInvalid},
		"not JSON":            {webKey, "message=x", key, 400, deskapi.CodeBodyInvalid},
		"array":               {webKey, `["message"]`, key, 400, deskapi.CodeBodyInvalid},
		"null":                {webKey, `null`, key, 400, deskapi.CodeBodyInvalid},
		"cut off":             {webKey, founding[:40], key, 400, deskapi.CodeBodyInvalid},
		"unknown member":      {webKey, `{"message":"m","order":"8472"}`, key, 400, deskapi.CodeBodyInvalid},
		"tenant in the body":  {webKey, `{"message":"m","tenant":"beta"}`, key, 400, deskapi.CodeBodyInvalid},
		"other case":          {webKey, `{"Message":"m"}`, key, 400, deskapi.CodeBodyInvalid},
		"member twice":        {webKey, `{"message":"a","message":"b"}`, key, 400, deskapi.CodeBodyInvalid},
		"number":              {webKey, `{"message":8472}`, key, 400, deskapi.CodeBodyInvalid},
		"null message":        {webKey, `{"message":null}`, key, 400, deskapi.CodeBodyInvalid},
		"object message":      {webKey, `{"message":{"text":"m"}}`, key, 400, deskapi.CodeBodyInvalid},
		"blank message":       {webKey, `{"message":" \n\t"}`, key, 400, deskapi.CodeBodyInvalid},
		"trailing":            {webKey, founding + founding, key, 400, deskapi.CodeBodyInvalid},
		"not UTF-8":           {webKey, "{\"message\":\"\xff\"}", key, 400, deskapi.CodeBodyInvalid},
		"message too large":   {webKey, `{"message":"` + strings.Repeat("x", maxMessage+1) + `"}`, key, 413, deskapi.CodeBodyTooLarge},
		"body too large":      {webKey, `{"message":"` + strings.Repeat("x", maxBody) + `"}`, key, 413, deskapi.CodeBodyTooLarge},
		"names a case":        {webKey, `{"message":"m","case_id":"req-1"}`, key, 403, deskapi.CodeCaseIDNotAllowed},
		"case id B55":         {demoKey, `{"message":"m","case_id":"8472.>"}`, key, 400, deskapi.CodeBodyInvalid},
		"empty case id":       {demoKey, `{"message":"m","case_id":""}`, key, 400, deskapi.CodeBodyInvalid},
		"customer missing":    {appKey, founding, key, 400, deskapi.CodeCustomerMissing},
		"customer with a dot": {appKey, founding, append([]string{deskapi.HeaderCustomer, "a.b"}, key...), 400, deskapi.CodeCustomerMissing},
	} {
		t.Run(name, func(t *testing.T) {
			a := ask(t, http.MethodPost, url, c.token, c.body, c.header...)
			if p := a.problem(t); a.status != c.status || p.Code != c.code {
				t.Errorf("%d %+v, want %d %s", a.status, p, c.status, c.code)
			}
			if (c.status == 401) != (a.header.Get("WWW-Authenticate") != "") || a.header.Get(deskapi.HeaderRequestID) == "" {
				t.Errorf("header %v", a.header)
			}
		})
	}
	if got := d.stored(t); len(got) != 0 {
		t.Errorf("%d messages stored", len(got))
	}
}

func TestLargestMessageIsAccepted(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	url := d.gateway(t) + "/v1/cases"
	for key, body := range map[string]string{
		"plain":   `{"message":"` + strings.Repeat("x", maxMessage) + `"}`,
		"escaped": `{"message":"` + strings.Repeat(`\u0041`, maxMessage) + `"}`,
	} {
		if a := ask(t, http.MethodPost, url, webKey, body, "Idempotency-Key", key); a.status != http.StatusAccepted {
			t.Errorf("%s: %d %s", key, a.status, a.body)
		}
	}
}

// flaky is the real broker whose acknowledgements get lost.
type flaky struct {
	broker
	// lose is how many sends get no acknowledgement; stored says whether they
	// are stored all the same.
	lose   int
	stored bool
}

func (f *flaky) Send(ctx context.Context, subj string, env *amendsv1.Envelope, payload proto.Message, opts ...bus.PublishOption) (uint64, error) {
	if f.lose == 0 {
		return f.broker.Send(ctx, subj, env, payload, opts...)
	}
	f.lose--
	if f.stored {
		if _, err := f.broker.Send(ctx, subj, env, payload, opts...); err != nil {
			return 0, err
		}
	}
	return 0, bus.ErrUncertain
}

func TestLostAcknowledgement(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		flaky  flaky
		status int
		want   int
	}{
		"stored":        {flaky{lose: 1, stored: true}, http.StatusAccepted, 1},
		"not stored":    {flaky{lose: 1}, http.StatusAccepted, 1},
		"twice":         {flaky{lose: 2}, http.StatusServiceUnavailable, 0},
		"twice, stored": {flaky{lose: 2, stored: true}, http.StatusAccepted, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := newDesk(t)
			d.recordPosts(t)
			f := c.flaky
			f.broker = d.broker.Connect(roles.Gateway)
			_, h := d.handler(t.Context(), t, &f)
			a := call(t, h, http.MethodPost, "/v1/cases", webKey, founding, "Idempotency-Key", "k-1")
			if a.status != c.status || (a.status == 503) != (a.header.Get("Retry-After") != "") {
				t.Errorf("%d %s %v, want %d", a.status, a.body, a.header, c.status)
			}
			if got := d.stored(t); len(got) != c.want {
				t.Errorf("%d messages stored, want %d", len(got), c.want)
			}
		})
	}
}

// Without a broker a post is refused in bounded time and accepted afterwards.
func TestPostWithoutABroker(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	url := d.gateway(t) + "/v1/cases"
	d.broker.Stop()
	start := time.Now()
	a := ask(t, http.MethodPost, url, webKey, founding, "Idempotency-Key", "k-1")
	if p := a.problem(t); a.status != http.StatusServiceUnavailable || p.Code != deskapi.CodeUnavailable || a.header.Get("Retry-After") == "" {
		t.Errorf("%d %+v", a.status, p)
	}
	if took := time.Since(start); took > 10*time.Second {
		t.Errorf("took %s", took)
	}
	d.broker.Start()
	for try := 0; a.status == http.StatusServiceUnavailable && try < 10; try++ {
		a = ask(t, http.MethodPost, url, webKey, founding, "Idempotency-Key", "k-1")
	}
	if a.status != http.StatusAccepted || len(d.stored(t)) != 1 {
		t.Errorf("afterwards: %d %s", a.status, a.body)
	}
}

func TestMessageIDIsThatOfTheCase(t *testing.T) {
	t.Parallel()
	if messageID("t", "c") != messageID("t", "c") || messageID("t", "c") == messageID("u", "c") || messageID("t", "c") == messageID("t", "d") {
		t.Error("message ids do not follow the case")
	}
	if later := ident.Derive(time.Unix(1, 0), "x"); messageID("t", "c") >= later {
		t.Error("an opening message does not come first")
	}
}
