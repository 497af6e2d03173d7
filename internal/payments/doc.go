// Package payments reads the payments provider: who owns an order, what was
// captured, settled, refunded and disputed. It cannot move money; the client
// that can is sealed inside the refund executor.
//
// What the provider says is evidence and passes through as it is, in the desk's
// types: records that contradict themselves are not errors, and a status this
// version does not know becomes *_UNKNOWN, never a guess. An answer that cannot
// be read, is too large, or speaks of another order than was asked for is not
// evidence: it is ErrUnavailable.
//
// Every call is bounded in time and in the size of its answer. Nothing is
// retried here except by net/http, which repeats a GET on a connection that had
// been closed before the request was read.
package payments
