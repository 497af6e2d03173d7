package sandbox

import (
	"context"
	"net/http"
)

// Operation is a row of the route table.
type Operation struct {
	Method, Path string
	Scopes       []Scope
}

// Operations gives the route table to the tests.
func Operations() []Operation {
	var out []Operation
	for _, r := range routes {
		out = append(out, Operation{r.method, r.path, r.scopes})
	}
	return out
}

// Fault is a seam made of two functions.
type Fault struct {
	Arrived, Committed func(http.ResponseWriter, *http.Request) bool
}

func (f Fault) arrived(w http.ResponseWriter, r *http.Request) bool   { return f.Arrived(w, r) }
func (f Fault) committed(w http.ResponseWriter, r *http.Request) bool { return f.Committed(w, r) }

// StartFaulty starts a sandbox with faults at its seam.
func StartFaulty(ctx context.Context, c Config, f Fault) (*Server, error) { return start(ctx, c, f) }

// BreakJournal makes every further write fail, as a full or lost disk does.
func (s *Server) BreakJournal() error { return s.book.journal.file.Close() }

// Handler is the service without its listener.
func (s *Server) Handler() http.Handler { return s.mux() }
