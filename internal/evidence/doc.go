// Package evidence gives canonical text forms and hashes of what was found out
// about a case, so that an action, a draft or an approval can name exactly the
// evidence it rests on.
//
// The package is pure. Two pieces of evidence that differ in a fact a decision
// reads never have one hash; call ids and look-up times are not part of it, so
// the same facts looked up again hash alike.
package evidence
