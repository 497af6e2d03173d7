package sandbox

import "net/http"

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

// BreakJournal makes every further write fail, as a full or lost disk does.
func (s *Server) BreakJournal() error { return s.book.journal.file.Close() }

// Handler is the service without its listener.
func (s *Server) Handler() http.Handler { return s.mux() }
