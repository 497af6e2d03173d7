package identity_test

import (
	"encoding/base64"
	"encoding/json"
	"strings"
	"testing"

	"github.com/go-jose/go-jose/v4"

	"github.com/amends-dev/amends/internal/identity"
)

// FuzzPeek: what a token seems to say is what the library reads from it.
func FuzzPeek(f *testing.F) {
	head := encode(claims{"alg": "RS256"})
	for _, c := range []string{
		`{"iss":"https://login.example","aud":"desk"}`, `{"iss":"a","iss":"b","aud":["x","desk"]}`, `{"ISS":"a"}`, `{"iss":null}`, `{"iss":7}`,
		`{"iss":"\u202ea","aud":[null]}`, `null`, `[]`, `{"iss":"a"}x`, `{"iss":"a","aud":{}}`, "{\"iss\":\"\xff\"}",
	} {
		f.Add(head, c, "c2ln")
	}
	f.Add(head+"\n", `{"iss":"a"}`, "")
	f.Add(encode(claims{"alg": 1}), `{"iss":"a"}`, ".")
	f.Fuzz(func(t *testing.T, head, payload, signature string) {
		for _, token := range []string{head + "." + encodeText(payload) + "." + signature, payload} {
			c, ok := identity.Peek(token)
			if !ok {
				continue
			}
			if c.Issuer == "" || len(token) > identity.MaxToken || strings.Count(token, ".") != 2 {
				t.Fatalf("%q says %+v", token, c)
			}
			jws, err := jose.ParseSignedCompact(token, []jose.SignatureAlgorithm{jose.RS256})
			if err != nil {
				continue // the verifier will say so
			}
			var other map[string]any
			if err := json.Unmarshal(jws.UnsafePayloadWithoutVerification(), &other); err != nil || other["iss"] != c.Issuer {
				t.Fatalf("%q says %q here and %v there, %v", token, c.Issuer, other["iss"], err)
			}
			for _, a := range c.Audience {
				if !c.Holds("aud", a) {
					t.Fatalf("audience %q of %q is not among its claims", a, token)
				}
			}
		}
	})
}

func encodeText(s string) string { return base64.RawURLEncoding.EncodeToString([]byte(s)) }
