package e2e_test

import (
	"io"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"testing"
	"unicode"

	"github.com/amends-dev/amends/internal/allinone"
	"github.com/amends-dev/amends/internal/deskclient"
	amendsv1 "github.com/amends-dev/amends/proto/amends/v1"
)

// page gives the console's page of a case, as an approver's browser gets it.
func (w *world) page(id string) string {
	w.t.Helper()
	req, err := http.NewRequestWithContext(w.ctx, http.MethodGet, w.ConsoleURL+"/cases/"+allinone.Tenant+"/"+id, nil)
	if err != nil {
		w.t.Fatal(err)
	}
	req.SetBasicAuth("sam", w.Trial.StaffToken)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		w.t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK {
		w.t.Fatalf("page of %s: %s, %v", id, resp.Status, err)
	}
	return string(body)
}

// concealed gives what in a text is not seen or reorders it.
func concealed(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.Is(unicode.Cf, r) || unicode.IsControl(r) && r != '\n' && r != '\t' {
			return r
		}
		return -1
	}, text)
}

// Bug B72 and case M12: what a person cannot see is escaped on the page that is
// approved from, flagged in the record, and in no reply and no log. Where it
// hides an order's number the customer is asked; no number is guessed.
func TestHiddenTextB72(t *testing.T) {
	t.Parallel()
	var log logLines
	w := start(t, allinone.Options{Log: slog.NewJSONHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug})})
	w.orders(2, true)
	for i, c := range []struct{ message, state string }{
		{"Order 8472 was charged twice. \u202edneirf\u202c \u200bplease\u2060 refund it.", "AWAITING_APPROVAL"},
		{"charged twice on order \u202e3748\u202c dneirf please refund", "AWAITING_CUSTOMER"},
	} {
		id := caseID(i)
		if _, err := w.gateway.Post(w.ctx, deskclient.Post{Key: id, CaseID: id, Message: c.message}); err != nil {
			t.Fatal(err)
		}
		w.until(id, 0, in(c.state))
		rec := w.record(i, 1)
		text := rec.GetMessages()[0].GetText()
		if text.GetText() != c.message || len(text.GetFlags()) != 1 || text.GetFlags()[0] != amendsv1.TextFlag_TEXT_FLAG_BIDI_OR_INVISIBLE {
			t.Errorf("%s holds %q with %v", id, text.GetText(), text.GetFlags())
		}
		if page := w.page(id); concealed(page) != "" || !strings.Contains(page, `\u202e`) || !strings.Contains(page, "bidi_or_invisible") {
			t.Errorf("the page of %s shows %q, %d times escaped", id, concealed(page), strings.Count(page, `\u202e`))
		}
		if (rec.GetTriage().GetOrderId() == "") != (i == 1) {
			t.Errorf("%s is about order %q", id, rec.GetTriage().GetOrderId())
		}
	}
	if _, err := w.finish(0, closed); err != nil {
		t.Fatal(err)
	}
	for i := range 2 {
		for _, r := range w.record(i, 1).GetReplies() {
			if concealed(r.GetText()) != "" || strings.Contains(r.GetText(), "dneirf") {
				t.Errorf("a reply says %q", r.GetText())
			}
		}
		if len(w.record(i, 1).GetReplies()) == 0 {
			t.Errorf("%s was not answered", caseID(i))
		}
	}
	if said := log.String(); said == "" || concealed(said) != "" || strings.Contains(said, `\u202e`) || strings.Contains(said, "dneirf") {
		t.Error("what the customer wrote is in the log")
	}
}

type logLines struct {
	mu  sync.Mutex
	buf strings.Builder
}

func (l *logLines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(p)
}

func (l *logLines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.String()
}
