package approval_test

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/amends-dev/amends/internal/approval"
	"github.com/amends-dev/amends/internal/ident"
)

// Bug B02: a refund's key is a function of its case and payment and of nothing
// else, and no two refunds have one key. That two processes, attempts and
// deliveries send the same is shown by the crash tests, on the wire.
func TestKeyIsAFunctionOfCaseAndPaymentB02(t *testing.T) {
	t.Parallel()
	token := rapid.StringMatching(`[A-Za-z0-9_-]{1,12}`).Filter(func(s string) bool { return ident.Token(s) == nil })
	rapid.Check(t, func(rt *rapid.T) {
		one := [2]string{token.Draw(rt, "case"), token.Draw(rt, "payment")}
		two := [2]string{token.Draw(rt, "another case"), token.Draw(rt, "another payment")}
		if approval.Key(one[0], one[1]) != approval.Key(one[0], one[1]) {
			rt.Fatal("one refund has two keys")
		}
		if same := approval.Key(one[0], one[1]) == approval.Key(two[0], two[1]); same != (one == two) {
			rt.Fatalf("%q and %q share a key: %t", one, two, same)
		}
	})
}
