// Package taskworktest runs one specialist against the real embedded broker:
// the specialist on its own credential, the test as the orchestrator that
// assigns tasks and takes the results.
//
// Nothing is mocked: subjects, permissions and schemas are the broker's and the
// envelope's own. Every wait is bounded and fails the test; a specialist that
// ends with an error fails it too.
package taskworktest
