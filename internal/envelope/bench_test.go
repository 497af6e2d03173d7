package envelope_test

import (
	"testing"

	"github.com/amends-dev/amends/internal/envelope"
)

func BenchmarkSealOpen(b *testing.B) {
	ty := lookup(b, envelope.PaymentEvidence)
	env, payload := header(ty), samples(b, ty)[0]
	subj := on(env)
	b.ReportAllocs()
	for b.Loop() {
		if _, _, err := envelope.Open(seal(b, env, payload), subj, received); err != nil {
			b.Fatal(err)
		}
	}
}
