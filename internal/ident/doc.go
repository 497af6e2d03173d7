// Package ident makes and checks the identifiers that travel as subject tokens
// and message ids.
//
// Tenant, case, order and customer ids come from outside. They become tokens
// of broker subjects, so none may hold a dot, a wildcard, white space or a
// control character: a value is checked with Token before any subject or key is
// built from it.
//
// Message ids have the form of UUID version 7. A message that follows from
// a record derives its id from the record (Derive), so the same message sent
// twice has the same id and a receiver recognises the repeat.
package ident
