// Package taskwork runs a specialist: it takes the service's tasks from the
// bus, checks the contract of each, lets the engine work and answers the
// orchestrator.
//
// Guarantees:
//   - Every task message that could be read is answered once: with the engine's
//     result, or with a task.error that has a reason code. The answer's message
//     id follows from the task's message id, so a task that is delivered or
//     sent twice is answered twice with one id, and the receiver applies one.
//   - The engine never sees a task that is not its service's, is of another
//     slice, speaks of another tenant or customer than its envelope, grants
//     effects, or whose lease had ended when it was stored.
//   - Tenant, case, task, attempt, key and trace of an answer are the task's own;
//     an engine cannot choose them.
//
// Failure: an engine's error becomes a task.error; when the process is stopping
// the message goes back instead. A contract that is refused is answered and
// dead-lettered, because it can never succeed. An answer that could not be
// published makes the bus deliver the task again.
package taskwork
