package gateway

import (
	"encoding/json"
	"reflect"
	"slices"
	"testing"
	"unicode/utf8"

	"github.com/amends-dev/amends/internal/deskapi"
	"github.com/amends-dev/amends/internal/ident"
	"github.com/amends-dev/amends/internal/masking"
	amendsv1 "github.com/amends-dev/amends/proto/amends/v1"
)

func FuzzDecodePost(f *testing.F) {
	for _, s := range []string{
		founding, `{"message":"m","case_id":"req-8472"}`, ` { "message" : "a\u202e\u0000b" } `, `{"message":"a","message":"b"}`,
		`{"message":"\ud800"}`, `{}`, `[`, `{"message":1}`, `{"message":"x"}{}`, "{\"message\":\"\xff\"}", `{"message":"x",}`, `{"case_id":"8472.>","message":"x"}`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		p, problem := decodePost(body)
		if problem != nil {
			if problem.Status != 400 && problem.Status != 413 {
				t.Fatalf("refused with %+v", problem)
			}
			return
		}
		if p.message == "" || len(p.message) > maxMessage || !utf8.ValidString(p.message) {
			t.Fatalf("accepted a message of %d bytes", len(p.message))
		}
		if p.caseID != "" && ident.Token(p.caseID) != nil {
			t.Fatalf("accepted case id %q", p.caseID)
		}
		// What was read is what any other reader of JSON reads.
		var other deskapi.Post
		if err := json.Unmarshal(body, &other); err != nil || masked(other.Message) != p.message || other.CaseID != p.caseID {
			t.Fatalf("read %q and %q; encoding/json has %+v, %v", p.message, p.caseID, other, err)
		}
		// A message is a post that names no case, and a cancel is neither.
		if m, problem := decodeMessage(body); p.caseID == "" && (problem != nil || !reflect.DeepEqual(m, p)) {
			t.Fatalf("a message is read as %+v, %v; a post as %+v", m, problem, p)
		}
		if decodeCancel(body) == nil {
			t.Fatal("a post is read as a cancel")
		}
	})
}

func TestARequestIsToldByItsTextAndCase(t *testing.T) {
	t.Parallel()
	hash := func(body string) string { return requestOf(t, body) }
	base := hash(`{"message":"m1","case_id":"req-1"}`)
	if same := hash(` { "case_id":"req-1", "message":"\u006d1" } `); same != base {
		t.Error("the same request, written otherwise, is another one")
	}
	for _, other := range []string{`{"message":"m1"}`, `{"message":"m1","case_id":"req-2"}`, `{"message":"m1 ","case_id":"req-1"}`, `{"message":"m","case_id":"1req-1"}`} {
		if hash(other) == base {
			t.Errorf("%s is taken for the same request", other)
		}
	}
}

func masked(text string) string {
	out, _ := masking.Text(text)
	return out
}

// What a customer should never have written is masked before anything is
// stored, and flagged so that the reply can warn.
func TestMessagesAreMasked(t *testing.T) {
	t.Parallel()
	p, problem := decodePost([]byte(`{"message":"Order 8472 charged twice on 4111 1111 1111 1111, OTP 493021"}`))
	if problem != nil {
		t.Fatal(problem)
	}
	if p.message != "Order 8472 charged twice on [card], OTP [code]" || !slices.Contains(p.untrusted().GetFlags(), amendsv1.TextFlag_TEXT_FLAG_MASKED) {
		t.Errorf("%q with %v", p.message, p.flags)
	}
	// Nothing that is kept is a function of what was masked: another code is the
	// same request.
	again, problem := decodePost([]byte(`{"message":"Order 8472 charged twice on 5555 5555 5555 4444, OTP 101010"}`))
	if problem != nil || !reflect.DeepEqual(again, p) {
		t.Errorf("with other digits: %+v, %v; want %+v", again, problem, p)
	}
	if _, problem := decodePost([]byte(`{"message":"\u0007\u0008"}`)); problem == nil {
		t.Error("a message of nothing but control characters was accepted")
	}
}
