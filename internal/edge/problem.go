package edge

import (
	"encoding/json"
	"math"
	"net/http"
	"strconv"

	"github.com/amends-dev/amends/internal/deskapi"
)

// WriteProblem answers with a problem document. Two equal problems give equal
// bytes.
func WriteProblem(w http.ResponseWriter, p *deskapi.Problem) {
	body, err := json.Marshal(p)
	if err != nil { // strings and a number always encode
		http.Error(w, p.Title, p.Status)
		return
	}
	h := w.Header()
	h.Set("Content-Type", deskapi.ProblemType)
	h.Set("Content-Length", strconv.Itoa(len(body)))
	if p.RetryAfter > 0 {
		h.Set("Retry-After", strconv.Itoa(int(math.Ceil(p.RetryAfter.Seconds()))))
	}
	w.WriteHeader(p.Status)
	_, _ = w.Write(body) // the client went away; there is nobody to tell
}

// WriteJSON answers with v. An encoding error is a fault of this program.
func WriteJSON(w http.ResponseWriter, status int, v any) {
	body, err := json.Marshal(v)
	if err != nil {
		WriteProblem(w, deskapi.NewProblem(http.StatusInternalServerError, deskapi.CodeInternal, ""))
		return
	}
	WriteBody(w, status, body)
}

// WriteBody answers with JSON that is encoded already.
func WriteBody(w http.ResponseWriter, status int, body []byte) {
	h := w.Header()
	h.Set("Content-Type", "application/json")
	h.Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(status)
	_, _ = w.Write(body) // the client went away; there is nobody to tell
}

// Handler is a handler that answers or says what went wrong.
type Handler func(w http.ResponseWriter, r *http.Request) *deskapi.Problem

// ServeHTTP writes the problem, if any.
func (h Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if p := h(w, r); p != nil {
		WriteProblem(w, p)
	}
}

// NotFound answers a path that does not exist.
var NotFound = Handler(func(http.ResponseWriter, *http.Request) *deskapi.Problem {
	return deskapi.NewProblem(http.StatusNotFound, deskapi.CodeNotFound, "")
})

// MethodNotAllowed answers a known path under another method.
func MethodNotAllowed(allow string) Handler {
	return func(w http.ResponseWriter, _ *http.Request) *deskapi.Problem {
		w.Header().Set("Allow", allow)
		return deskapi.NewProblem(http.StatusMethodNotAllowed, deskapi.CodeMethod, "")
	}
}
