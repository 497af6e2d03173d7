package identity

import (
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/rsa"
	"testing"
)

// FuzzKeySet: whatever an issuer publishes, only public keys of a good size are
// taken from it.
func FuzzKeySet(f *testing.F) {
	for _, s := range []string{
		`{"keys":[{"kty":"oct","k":"AAAA","kid":"a"}]}`, `{"keys":[{"kty":"OKP","crv":"Ed25519","x":"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"}]}`,
		`{"keys":[{"kty":"RSA","n":"AQAB","e":"AQAB"}]}`, `{"keys":null}`, `[]`, `{"keys":[null,1,"x"]}`, `{"keys":[{"kty":"EC","crv":"P-256","x":"AA","y":"AA"}]}`,
		`{"keys":[{"kty":"OKP","crv":"Ed25519","x":"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo","d":"nWGxne_9WmC6hEr0kuwsxERJxWl7MmkZcDusAxyuf2A"}]}`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, set []byte) {
		keys, err := usable(set)
		if (err == nil) != (len(keys) > 0) || len(keys) > maxKeys {
			t.Fatalf("%d keys, %v", len(keys), err)
		}
		for _, k := range keys {
			switch key := k.Key.(type) {
			case *rsa.PublicKey:
				if key.N.BitLen() < minRSA {
					t.Fatalf("an RSA key of %d bits", key.N.BitLen())
				}
			case *ecdsa.PublicKey, ed25519.PublicKey:
			default:
				t.Fatalf("a key of type %T", key)
			}
			if !k.Valid() || !k.IsPublic() || k.Use != "" && k.Use != "sig" {
				t.Fatalf("took %+v", k)
			}
		}
	})
}
