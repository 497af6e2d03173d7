// Package tools is the tool registry: what a service may look up, within which
// task, and the record of every look-up.
//
// A fact is a tool result with a call id. The record is written here, in code,
// when the call is made; nobody and no model can write one. A call goes through
// only if the tool is in the service's grants (role manifest), in the
// contract's permitted tools, within its lease and its action budget; else it
// is refused with a reason code, and the refusal is recorded too.
//
// Whom and what a call is about (tenant, customer, order) comes from the
// contract's scope and never from the caller's arguments.
//
// Time is the broker's time of the task plus what has passed here since: the
// sender's clock decides nothing.
//
// Failure: a look-up that gave no usable answer is recorded as incomplete or
// failed with its reason and returned as an error; it never reads as an empty
// success.
package tools
