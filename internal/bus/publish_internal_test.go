package bus

import (
	"errors"
	"testing"
)

// The short cut reads exactly what the general decoder reads, and leaves the
// rest to it (B42: both conflict codes).
func TestAcknowledged(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]uint64{
		`{"stream":"CASES", "seq":42}`:                  42,
		`{"stream":"CASES","seq":7}`:                    7,
		`{"stream":"CASES", "seq":1,"duplicate":true}`:  1,
		`{"stream":"CASES", "domain":"d", "seq":9}`:     9,
		`{"seq":3,"stream":"CASES"}`:                    3,
		`{"stream":"CASES", "seq":9223372036854775807}`: 9223372036854775807,
	} {
		if got, err := acknowledged([]byte(text)); err != nil || got != want {
			t.Errorf("%s gives %d, %v; want %d", text, got, err, want)
		}
	}
	for text, want := range map[string]error{
		`{"error":{"code":400,"err_code":10071,"description":"wrong last sequence: 3"},"stream":"CASES","seq":0}`: ErrConflict,
		`{"error":{"code":400,"err_code":10164,"description":"transient"},"stream":"CASES","seq":0}`:              ErrConflict,
		`{"stream":"", "seq":1}`:    ErrUncertain,
		`{"stream":"CASES", "seq":`: ErrUncertain,
		`{}`:                        ErrUncertain,
		``:                          ErrUncertain,
		`+OK`:                       ErrUncertain,
	} {
		if _, err := acknowledged([]byte(text)); !errors.Is(err, want) {
			t.Errorf("%s gives %v, want %v", text, err, want)
		}
	}
}
