package webhook_test

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/amends-dev/amends/internal/webhook"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var (
	now    = time.Unix(1773310440, 0)
	oldKey = bytes.Repeat([]byte{7}, 32)
	newKey = bytes.Repeat([]byte{9}, 32)
)

func secrets(t testing.TB, keys ...[]byte) webhook.Secrets {
	t.Helper()
	texts := make([]string, len(keys))
	for i, k := range keys {
		texts[i] = webhook.FormatSecret(k)
	}
	s, err := webhook.ParseSecrets(texts...)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// The example of the standard's own libraries.
func TestTheStandardsVector(t *testing.T) {
	t.Parallel()
	s, err := webhook.ParseSecrets("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")
	if err != nil {
		t.Fatal(err)
	}
	h, err := s.Sign("msg_p5jXN8AQM9LWM0D4loKWxJek", time.Unix(1614265330, 0), []byte(`{"test": 2432232314}`))
	if err != nil || h.Get(webhook.HeaderSignature) != "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=" {
		t.Errorf("%v, %v", h, err)
	}
}

func TestParseSecrets(t *testing.T) {
	t.Parallel()
	good := webhook.FormatSecret(oldKey)
	for name, texts := range map[string][]string{
		"none": {}, "empty": {""}, "no prefix": {strings.TrimPrefix(good, "whsec_")}, "not base64": {"whsec_!!!"},
		"short": {webhook.FormatSecret(oldKey[:23])}, "long": {webhook.FormatSecret(bytes.Repeat([]byte{1}, 65))},
		"one bad": {good, "whsec_x"}, "too many": {good, good, good, good, good}, "line end": {good + "\n"},
	} {
		_, err := webhook.ParseSecrets(texts...)
		if err == nil {
			t.Errorf("%s: accepted", name)
		} else if strings.Contains(err.Error(), "CQkJ") || strings.Contains(err.Error(), "!!!") {
			t.Errorf("%s: the error quotes a secret: %v", name, err)
		}
	}
}

// While secrets rotate, both sides of the change are understood.
func TestRotation(t *testing.T) {
	t.Parallel()
	body := []byte(`{"type":"x"}`)
	before, during, after := secrets(t, oldKey), secrets(t, newKey, oldKey), secrets(t, newKey)
	sign := func(s webhook.Secrets) http.Header {
		h, err := s.Sign("msg_1", now, body)
		if err != nil {
			t.Fatal(err)
		}
		return h
	}
	for _, c := range []struct {
		name   string
		sender webhook.Secrets
		taker  webhook.Secrets
		ok     bool
	}{
		{"sender first", during, before, true},
		{"sender done", during, after, true},
		{"receiver first", before, during, true},
		{"both", during, during, true},
		{"old by new", before, after, false},
		{"new by old", after, before, false},
	} {
		id, err := c.taker.Verify(sign(c.sender), body, now)
		if c.ok != (err == nil) || c.ok && id != "msg_1" || !c.ok && !errors.Is(err, webhook.ErrSignature) {
			t.Errorf("%s: %q, %v", c.name, id, err)
		}
	}
}

// B74: the timestamp is needed, signed, and bound both ways.
func TestVerifyRefusesB74(t *testing.T) {
	t.Parallel()
	body := []byte(`{"type":"refund.failed"}`)
	s := secrets(t, oldKey)
	for _, c := range []struct {
		name   string
		change func(http.Header)
		at     time.Duration
		body   string
		want   error
	}{
		{name: "as sent"},
		{name: "five minutes old", at: webhook.Tolerance},
		{name: "five minutes early", at: -webhook.Tolerance},
		{name: "older", at: webhook.Tolerance + time.Second, want: webhook.ErrTimestamp},
		{name: "earlier", at: -webhook.Tolerance - time.Second, want: webhook.ErrTimestamp},
		{name: "timestamp stripped", change: func(h http.Header) { h.Del(webhook.HeaderTimestamp) }, want: webhook.ErrHeaders},
		{name: "timestamp empty", change: func(h http.Header) { h.Set(webhook.HeaderTimestamp, "") }, want: webhook.ErrHeaders},
		{name: "timestamp swapped", change: func(h http.Header) { h.Set(webhook.HeaderTimestamp, strconv.FormatInt(now.Unix()+1, 10)) }, want: webhook.ErrSignature},
		{name: "timestamp twice", change: func(h http.Header) { h.Add(webhook.HeaderTimestamp, h.Get(webhook.HeaderTimestamp)) }, want: webhook.ErrHeaders},
		{name: "timestamp padded", change: func(h http.Header) { h.Set(webhook.HeaderTimestamp, "0"+h.Get(webhook.HeaderTimestamp)) }, want: webhook.ErrHeaders},
		{name: "timestamp signed", change: func(h http.Header) { h.Set(webhook.HeaderTimestamp, "+"+h.Get(webhook.HeaderTimestamp)) }, want: webhook.ErrHeaders},
		{name: "timestamp of a float", change: func(h http.Header) { h.Set(webhook.HeaderTimestamp, h.Get(webhook.HeaderTimestamp)+".0") }, want: webhook.ErrHeaders},
		{name: "id stripped", change: func(h http.Header) { h.Del(webhook.HeaderID) }, want: webhook.ErrHeaders},
		{name: "id swapped", change: func(h http.Header) { h.Set(webhook.HeaderID, "msg_2") }, want: webhook.ErrSignature},
		{name: "signature stripped", change: func(h http.Header) { h.Del(webhook.HeaderSignature) }, want: webhook.ErrHeaders},
		{name: "signature of another version", change: func(h http.Header) {
			h.Set(webhook.HeaderSignature, "v2"+strings.TrimPrefix(h.Get(webhook.HeaderSignature), "v1"))
		}, want: webhook.ErrSignature},
		{name: "a wrong one before the right one", change: func(h http.Header) {
			h.Set(webhook.HeaderSignature, "v1,AAAA v1 "+h.Get(webhook.HeaderSignature))
		}},
		{name: "signatures without end", change: func(h http.Header) {
			h.Set(webhook.HeaderSignature, strings.Repeat("v1,AAAA ", 200)+h.Get(webhook.HeaderSignature))
		}, want: webhook.ErrHeaders},
		{name: "another body", body: `{"type":"refund.failed"} `, want: webhook.ErrSignature},
	} {
		h, err := s.Sign("msg_1", now, body)
		if err != nil {
			t.Fatal(err)
		}
		if c.change != nil {
			c.change(h)
		}
		sent := body
		if c.body != "" {
			sent = []byte(c.body)
		}
		if _, err := s.Verify(h, sent, now.Add(c.at)); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", c.name, err, c.want)
		}
	}
	if _, err := (webhook.Secrets{}).Verify(http.Header{}, nil, now); err == nil {
		t.Error("no secret verifies something")
	}
	for _, id := range []string{"", "a.1", "a b", "a\n", "é", strings.Repeat("x", 129)} {
		if _, err := s.Sign(id, now, body); err == nil {
			t.Errorf("signed with the id %q", id)
		}
	}
}

// FuzzVerify: what verifies carries the HMAC of exactly this id, timestamp and
// body under the secret, and its timestamp is near (B74).
func FuzzVerify(f *testing.F) {
	s := secrets(f, oldKey)
	good, err := s.Sign("msg_1", now, []byte("{}"))
	if err != nil {
		f.Fatal(err)
	}
	stamp, signature := good.Get(webhook.HeaderTimestamp), good.Get(webhook.HeaderSignature)
	f.Add("msg_1", stamp, signature, []byte("{}"))
	f.Add("msg_1", stamp, "v1,AAAA "+signature, []byte("{}"))
	f.Add("msg_1", " "+stamp, signature, []byte("{}"))
	f.Add("msg_1."+stamp, stamp, signature, []byte("{}"))
	f.Add("", "", "", []byte(nil))
	f.Add("msg_1", "9223372036854775807", "v1,", []byte("{}"))
	f.Fuzz(func(t *testing.T, id, stamp, signature string, body []byte) {
		got, err := s.Verify(http.Header{
			webhook.HeaderID: {id}, webhook.HeaderTimestamp: {stamp}, webhook.HeaderSignature: {signature},
		}, body, now)
		if err != nil {
			if got != "" {
				t.Errorf("refused with the id %q", got)
			}
			return
		}
		mac := hmac.New(sha256.New, oldKey)
		mac.Write([]byte(id + "." + stamp + "."))
		mac.Write(body)
		if !strings.Contains(signature, "v1,"+base64.StdEncoding.EncodeToString(mac.Sum(nil))) || got != id {
			t.Errorf("verified %q %q %q", id, stamp, signature)
		}
		seconds, err := strconv.ParseInt(stamp, 10, 64)
		if off := seconds - now.Unix(); err != nil || off > 300 || off < -300 {
			t.Errorf("the timestamp %q is not near", stamp)
		}
	})
}

func TestDelay(t *testing.T) {
	t.Parallel()
	steps := webhook.Schedule()
	if len(steps)+1 != webhook.Attempts() {
		t.Errorf("%d delays, %d attempts", len(steps), webhook.Attempts())
	}
	spread := map[time.Duration]bool{}
	for i, step := range steps {
		d, ok := webhook.Delay("msg_1", i+1)
		again, _ := webhook.Delay("msg_1", i+1)
		if !ok || d < step || d >= step+step/5 || d != again {
			t.Errorf("after failure %d: %s, again %s; want %s and up to a fifth", i+1, d, again, step)
		}
		other, _ := webhook.Delay("msg_2", i+1)
		spread[d-other] = true
	}
	if len(spread) < len(steps) {
		t.Error("webhooks that fail together are tried together")
	}
	for _, n := range []int{-1, 0, webhook.Attempts(), 1000} {
		if d, ok := webhook.Delay("msg_1", n); ok || d != 0 {
			t.Errorf("after failure %d: %s", n, d)
		}
	}
	for _, c := range []struct{ d, asked, want time.Duration }{
		{5 * time.Second, 0, 5 * time.Second},
		{5 * time.Second, time.Minute, time.Minute},
		{time.Hour, time.Minute, time.Hour},
		{5 * time.Second, 1000 * time.Hour, 24 * time.Hour},
	} {
		if got := webhook.Later(c.d, c.asked); got != c.want {
			t.Errorf("Later(%s, %s) = %s, want %s", c.d, c.asked, got, c.want)
		}
	}
}
