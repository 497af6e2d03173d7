package sandbox_test

import (
	"encoding/json"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/amends-dev/amends/internal/sandbox"
	"github.com/amends-dev/amends/internal/sandbox/sandboxtest"
)

func TestParseFault(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]sandbox.Fault{
		"answer_lost":                            {Kind: sandbox.AnswerLost},
		"answer_lost,times=1,payment=pay_8472_b": {Kind: sandbox.AnswerLost, Times: 1, Payment: "pay_8472_b"},
		"delay,for=1m30s,when=after":             {Kind: sandbox.Delay, For: 90 * time.Second, When: "after"},
		"outage,on=orders.read+refunds.list,tenant=acme-in,order=8472": {Kind: sandbox.Outage, On: []string{"orders.read", "refunds.list"}, Tenant: "acme-in", Order: "8472"},
		"error_after,code=502,reference=refund:req-8472:pay_8472_b":    {Kind: sandbox.ErrorAfter, Code: 502, Reference: "refund:req-8472:pay_8472_b"},
		"clock_skew,for=-90s":                   {Kind: sandbox.ClockSkew, For: -90 * time.Second},
		"unknown_enum,record=refund,status=x=y": {Kind: sandbox.UnknownEnum, Record: "refund", Status: "x=y"},
		"webhook_copies,copies=3":               {Kind: sandbox.WebhookCopies, Copies: 3},
		"fails_later,for=2s,status=canceled":    {Kind: sandbox.FailsLater, For: 2 * time.Second, Status: "canceled"},
	} {
		got, err := sandbox.ParseFault(text)
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %+v, %v", text, got, err)
		}
	}
}

// A mistake is named, with what would be right.
func TestBadFaults(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"":                               "unknown fault",
		"answer_lots":                    "want one of answer_lost, delay, ",
		"answer_lost,":                   `"" is not name=value`,
		"answer_lost,times":              "is not name=value",
		"answer_lost,times=":             "is not name=value",
		"answer_lost,times=often":        `times: "often": invalid syntax`,
		"answer_lost,times=-1":           "times: want 0 to",
		"answer_lost,time=1":             `unknown setting "time", want one of on, tenant, `,
		"answer_lost,times=1,times=1":    "times is given twice",
		"answer_lost,for=1s":             "answer_lost has no for",
		"answer_lost,on=webhooks":        "answer_lost strikes on all, reads, writes, ",
		"answer_lost,payment=a b":        "payment",
		"answer_lost,tenant=.":           "tenant",
		"delay":                          "delay needs for, e.g. delay,for=3s",
		"delay,for=soon":                 "for: ",
		"delay,for=-1s":                  "out of range",
		"delay,for=11m":                  "at most 10m0s",
		"delay,for=1s,when=during":       "when: want before or after",
		"error_before,code=404":          "code: want 500 to 599",
		"webhook_copies":                 "webhook_copies needs copies",
		"webhook_copies,copies=101":      "copies: want 1 to 100",
		"webhook_copies,copies=2,on=all": "strikes on webhooks",
		"unknown_enum,record=order":      "record: want capture, refund or dispute",
		"contradictory,reference=r":      "a payment has no reference",
		"clock_skew,for=9000h":           "out of range",
		"keys_forgotten,on=reads":        "strikes on refunds.create",
		"answer_lost,reference=" + strings.Repeat("x", 161): "reference",
	} {
		if x, err := sandbox.ParseFault(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, %v; want %q", text, x, err, want)
		}
	}
}

// What is put over the API is taken whole or not at all, and the same fault has
// one meaning as text and as JSON.
func TestFaultsOverTheAPI(t *testing.T) {
	t.Parallel()
	s := faulty(t, "outage,times=1", "delay,for=1m30s,times=3,payment=none")
	want := s.Faults()
	for name, body := range map[string]string{
		"one is bad":    `{"faults":[{"kind":"outage"},{"kind":"delay"}]}`,
		"unknown name":  `{"faults":[{"kind":"outage","how":"much"}]}`,
		"twice":         `{"faults":[{"kind":"outage","kind":"delay"}]}`,
		"other case":    `{"faults":[{"Kind":"outage"}]}`,
		"bad duration":  `{"faults":[{"kind":"delay","for":"soon"}]}`,
		"comma":         `{"faults":[{"kind":"outage","reference":"a,b"}]}`,
		"number":        `{"faults":[{"kind":"delay","for":3}]}`,
		"not a list":    `{"faults":"outage"}`,
		"too many":      `{"faults":[` + strings.Repeat(`{"kind":"outage"},`, 64) + `{"kind":"outage"}]}`,
		"another place": `{"faults":[{"kind":"outage","on":["refunds.delete"]}]}`,
	} {
		got := send(t, s.URL, request{method: http.MethodPut, path: "/v1/admin/faults", token: sandboxtest.AdminKey, body: body})
		if got.status != http.StatusBadRequest || got.code(t) != "invalid_request" {
			t.Errorf("%s: %d %s", name, got.status, got.body)
		}
	}
	if got := s.Faults(); !reflect.DeepEqual(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	send(t, s.URL, get("/v1/orders/8472"))
	struck(t, s, 1, 0)
	read, err := s.Admin.Faults(t.Context())
	if err != nil || read[1].For != 90*time.Second {
		t.Errorf("%v, %v", read, err)
	}
	// What was read can be put again, and is counted anew.
	if err := s.Admin.SetFaults(t.Context(), read); err != nil {
		t.Fatal(err)
	}
	struck(t, s, 0, 0)
	if err := s.Admin.ClearFaults(t.Context()); err != nil {
		t.Fatal(err)
	}
	struck(t, s)
	if err := s.Admin.SetFaults(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	if _, err := sandbox.Start(t.Context(), sandbox.Config{File: t.TempDir() + "/f", Now: s.Clock.Now, Faults: sandbox.Faults{{Kind: "gremlins"}}}); err == nil {
		t.Error("it starts with a fault that is none")
	}
	if _, err := sandboxtest.Start(t, func(c *sandbox.Config) { c.Faults = sandbox.Faults{{Kind: sandbox.Outage}} }).Admin.Ledger(t.Context()); err != nil {
		t.Errorf("the admin routes fail by a fault: %v", err)
	}
}

// Every kind's example is right, and the document has every kind and place.
func TestFaultKinds(t *testing.T) {
	t.Parallel()
	d := readDocument(t, sandboxtest.Start(t))
	enum := func(path ...string) (out []string) {
		for _, v := range list(d.At(append([]string{"components", "schemas", "Fault", "properties"}, path...)...)["enum"]) {
			out = append(out, v.(string))
		}
		return out
	}
	var kinds []string
	places := map[string]bool{}
	for _, k := range sandbox.FaultKinds() {
		kinds = append(kinds, string(k.Kind))
		for _, on := range append(slices.Clone(k.May), k.On...) {
			places[on] = true
		}
		if x, err := sandbox.ParseFault(k.Example); err != nil || x.Kind != k.Kind {
			t.Errorf("example %s: %v", k.Example, err)
		}
		for _, on := range k.On {
			if !slices.Contains(k.May, on) {
				t.Errorf("%s: %s is not among %v", k.Kind, on, k.May)
			}
		}
	}
	if got := enum("kind"); !slices.Equal(got, kinds) {
		t.Errorf("documented kinds %q, want %q", got, kinds)
	}
	got := enum("on", "items")
	for _, on := range got {
		if !places[on] {
			t.Errorf("%s is documented and no place", on)
		}
	}
	if len(got) != len(places) {
		t.Errorf("documented places %q, want %v", got, places)
	}
}

// Whatever is read as a fault is valid, and reads the same from its text and
// from its JSON.
func FuzzParseFault(f *testing.F) {
	for _, k := range sandbox.FaultKinds() {
		f.Add(k.Example)
	}
	f.Add("outage,on=reads+writes+orders.read,tenant=t,order=o,payment=p,reference=r:1,times=2")
	f.Add("unknown_enum,status=\xff")
	f.Add("delay,for=1e3s,when=,for")
	f.Fuzz(func(t *testing.T, text string) {
		x, err := sandbox.ParseFault(text)
		if err != nil {
			return
		}
		if err := x.Validate(); err != nil {
			t.Fatalf("%q: %v", text, err)
		}
		again, err := sandbox.ParseFault(x.String())
		if err != nil || !reflect.DeepEqual(again, x) {
			t.Fatalf("%q reads as %+v, and its text %q as %+v, %v", text, x, x.String(), again, err)
		}
		data, err := json.Marshal(sandbox.Faults{x})
		if err != nil {
			t.Fatal(err)
		}
		var back sandbox.Faults
		if err := json.Unmarshal(data, &back); err != nil || len(back) != 1 || !reflect.DeepEqual(back[0], x) {
			t.Fatalf("%s reads as %+v, %v", data, back, err)
		}
	})
}
