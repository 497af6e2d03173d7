package deskclient

import (
	"bufio"
	"bytes"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/amends-dev/amends/internal/deskapi"
)

// FuzzProblem: whatever a server answers, it comes back as a problem of the
// answer's own status, with a code and a wait that is no nonsense.
func FuzzProblem(f *testing.F) {
	for _, s := range []string{
		`{"type":"t","title":"Conflict","status":409,"code":"case_closed","detail":"d"}`, `{"status":"409"}`, `{"status":409}`, "null", "[]", "<html>", "\xff", "", `{"STATUS":409,"CODE":"x"}`,
	} {
		f.Add(409, s, "7")
	}
	f.Add(503, `{"status":503,"code":"unavailable"}`, "99999999999999999")
	f.Add(429, "{}", "-1")
	f.Fuzz(func(t *testing.T, status int, body, after string) {
		err := problemOf(&http.Response{StatusCode: status, Header: http.Header{"Retry-After": {after}}}, []byte(body))
		p, ok := errors.AsType[*deskapi.Problem](err)
		if !ok || p.Status != status || p.Code == "" || p.RetryAfter < 0 || p.RetryAfter > 24*time.Hour || p.Error() == "" {
			t.Fatalf("%d %q after %q is %+v", status, body, after, p)
		}
	})
}

// FuzzEvents: an event's data is one line of the stream, and all of it.
func FuzzEvents(f *testing.F) {
	for _, s := range []string{"id: 1\nevent: view\ndata: {}\n\n", "data: a\r\n\r\n", ": still here\n\n", "data:x\n\n", "retry: 1000\n\ndata: a\ndata: b\n\n", "data: " + strings.Repeat("x", 20000) + "\n\n", "data: a"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, stream []byte) {
		r := bufio.NewReaderSize(bytes.NewReader(stream), 64)
		for read := 0; ; {
			data, err := nextEvent(r)
			if err != nil {
				return
			}
			if bytes.ContainsAny(data, "\n") || !bytes.Contains(stream[read:], append([]byte("data: "), data...)) {
				t.Fatalf("%q gives the event %q", stream, data)
			}
			read += len(data)
		}
	})
}
