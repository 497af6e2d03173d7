// Package effectstoretest is the suite that every store of effect records
// passes.
package effectstoretest
