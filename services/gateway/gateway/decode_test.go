package gateway

import (
	"encoding/json"
	"testing"
	"unicode/utf8"

	"github.com/amends-dev/amends/internal/deskapi"
	"github.com/amends-dev/amends/internal/ident"
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
		if err := json.Unmarshal(body, &other); err != nil || other.Message != p.message || other.CaseID != p.caseID {
			t.Fatalf("read %q and %q; encoding/json has %+v, %v", p.message, p.caseID, other, err)
		}
	})
}
