package refunds

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/amends-dev/amends/services/refund-executor/provider"
)

// rawServer accepts connections and lets each misbehave as it likes.
func rawServer(t *testing.T, behave func(net.Conn)) (url string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			wg.Go(func() {
				behave(c)
				_ = c.Close()
			})
		}
	})
	t.Cleanup(func() {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
		wg.Wait()
	})
	return "http://" + l.Addr().String()
}

// takeRequest reads one request whole.
func takeRequest(in *bufio.Reader) error {
	r, err := http.ReadRequest(in)
	if err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, r.Body)
	return err
}

func reset(c net.Conn) {
	_ = c.(*net.TCPConn).SetLinger(0) // the close becomes a reset
}

func TestBrokenConnections(t *testing.T) {
	t.Parallel()
	created := refundAnswer("rf_1", "pay_8472_b", 200000, "INR", "pending")
	after := func(do func(net.Conn)) func(net.Conn) {
		return func(c net.Conn) {
			if takeRequest(bufio.NewReader(c)) == nil {
				do(c)
			}
		}
	}
	write := func(format string, args ...any) func(net.Conn) {
		return after(func(c net.Conn) { _, _ = fmt.Fprintf(c, format, args...) })
	}
	for name, b := range map[string]struct {
		behave func(net.Conn)
		reason string
	}{
		"closed after the request":  {after(func(net.Conn) {}), "connection_lost"},
		"reset after the request":   {after(reset), "connection_lost"},
		"not HTTP":                  {write("220 mail ready\r\n"), "connection_lost"},
		"half a status line":        {write("HTTP/1.1 20"), "connection_lost"},
		"half the headers":          {write("HTTP/1.1 201 Created\r\nContent-Le"), "connection_lost"},
		"headers, no body":          {write("HTTP/1.1 201 Created\r\nContent-Length: %d\r\n\r\n", len(created)), "answer_connection_lost"},
		"half a body":               {write("HTTP/1.1 201 Created\r\nContent-Length: %d\r\n\r\n%s", len(created), created[:50]), "answer_connection_lost"},
		"half a chunk":              {write("HTTP/1.1 201 Created\r\nTransfer-Encoding: chunked\r\n\r\nff\r\n%s", created), "answer_connection_lost"},
		"body ends with connection": {write("HTTP/1.1 201 Created\r\n\r\n%s", created[:50]), "answer_unreadable"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var calls atomic.Int32
			url := rawServer(t, func(c net.Conn) {
				calls.Add(1)
				b.behave(c)
			})
			got := client(t, url, 0).Create(t.Context(), key, body(t), soon())
			expect(t, name, got, unclear, b.reason)
			if n := calls.Load(); n != 1 {
				t.Errorf("%d connections, one call was made", n)
			}
		})
	}
}

func TestNoConnectionIsNoEffect(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	url := "http://" + l.Addr().String()
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	expect(t, "refused", client(t, url, 0).Create(t.Context(), key, body(t), soon()), nothing, "not_sent")

	// A handshake that never ends: connected, yet nothing of the body is sent.
	silent := rawServer(t, func(c net.Conn) { _, _ = io.Copy(io.Discard, c) })
	expect(t, "no TLS", client(t, "https"+silent[len("http"):], 50*time.Millisecond).Create(t.Context(), key, body(t), soon()), nothing, "not_sent")
}

// A connection that breaks while the request is on its way: whether the body
// was handed over is a race, and either answer is proven.
func TestResetAtOnce(t *testing.T) {
	t.Parallel()
	got := client(t, rawServer(t, reset), 0).Create(t.Context(), key, body(t), soon())
	if got.Class == nothing {
		expect(t, "reset at once", got, nothing, "not_sent")
	} else {
		expect(t, "reset at once", got, unclear, "connection_lost")
	}
}

func TestSilenceIsUnknown(t *testing.T) {
	t.Parallel()
	taken := make(chan struct{}, 2)
	silent := func(answer string) func(net.Conn) {
		return func(c net.Conn) {
			in := bufio.NewReader(c)
			if takeRequest(in) == nil {
				_, _ = io.WriteString(c, answer)
				taken <- struct{}{}
				_, _ = io.Copy(io.Discard, in) // until the client gives up
			}
		}
	}
	got := client(t, rawServer(t, silent("")), time.Second).Create(t.Context(), key, body(t), soon())
	expect(t, "no answer", got, unclear, "timeout")
	<-taken

	halfway := "HTTP/1.1 201 Created\r\nContent-Length: 100\r\n\r\n{"
	got = client(t, rawServer(t, silent(halfway)), time.Second).Create(t.Context(), key, body(t), soon())
	expect(t, "answer stops", got, unclear, "answer_timeout")
	<-taken

	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go func() {
		<-taken
		cancel()
	}()
	got = client(t, rawServer(t, silent("")), 0).Create(ctx, key, body(t), soon())
	expect(t, "canceled while waiting", got, unclear, "canceled")
}

// net/http repeats a request with an Idempotency-Key on its own when a kept
// connection breaks. Here it must not: each call is one request.
func TestKeptConnectionBreaksWithoutARepeat(t *testing.T) {
	t.Parallel()
	created := refundAnswer("rf_1", "pay_8472_b", 200000, "INR", "pending")
	var requests atomic.Int32
	url := rawServer(t, func(c net.Conn) {
		in := bufio.NewReader(c)
		for n := 0; takeRequest(in) == nil; n++ {
			requests.Add(1)
			if n == 1 {
				return // the second request on a connection gets no answer
			}
			_, _ = fmt.Fprintf(c, "HTTP/1.1 201 Created\r\nContent-Length: %d\r\n\r\n%s", len(created), created)
		}
	})
	c := client(t, url, 0)
	expect(t, "first", c.Create(t.Context(), key, body(t), soon()), acknowledged, "")
	expect(t, "second", c.Create(t.Context(), key, body(t), soon()), unclear, "connection_lost")
	if n := requests.Load(); n != 2 {
		t.Errorf("%d requests for two calls", n)
	}
}

// The proof behind NO_EFFECT: of a reader and a withdrawal exactly one wins,
// and after a withdrawal nothing can be read.
func TestBodyIsSentOrWithdrawn(t *testing.T) {
	t.Parallel()
	for range 200 {
		o := newOnce([]byte("body"), func() bool { return false })
		var wg sync.WaitGroup
		var read []byte
		var err error
		var withdrawn bool
		wg.Go(func() { read, err = io.ReadAll(o) })
		wg.Go(func() { withdrawn = o.withdraw() })
		wg.Wait()
		if withdrawn != errors.Is(err, errWithdrawn) || withdrawn == (string(read) == "body") {
			t.Fatalf("withdrawn %t, read %q, %v", withdrawn, read, err)
		}
	}
}

// A process that stands still between the permission to call and the sending
// sends nothing: the clock is read again when the body is asked for.
func TestWhatIsTooLateIsNotSentMONEY2(t *testing.T) {
	t.Parallel()
	var requests atomic.Int32
	url := rawServer(t, func(c net.Conn) {
		if takeRequest(bufio.NewReader(c)) == nil {
			requests.Add(1)
		}
	})
	now, before := time.Unix(1000, 0), time.Unix(1001, 0)
	for name, clock := range map[string]func() time.Time{
		"already":         func() time.Time { return before },
		"while it stands": advancing(now, before),
	} {
		c, err := New(Config{URL: url, Key: "k", Timeout: 2 * time.Second, Now: clock})
		if err != nil {
			t.Fatal(err)
		}
		if name == "while it stands" && !clock().Before(before) {
			t.Error("the call would not have been allowed")
		}
		expect(t, name, c.Create(t.Context(), key, body(t), before), nothing, provider.ReasonWithdrawn)
		c.Close()
	}
	if n := requests.Load(); n != 0 {
		t.Errorf("%d requests", n)
	}
}

// advancing gives a clock that shows one moment once and then another.
func advancing(first, then time.Time) func() time.Time {
	var reads atomic.Int32
	return func() time.Time {
		if reads.Add(1) == 1 {
			return first
		}
		return then
	}
}
