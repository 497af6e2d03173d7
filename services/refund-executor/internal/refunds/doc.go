// Package refunds is the one client that can move money: it creates refunds at
// the payments provider. It is internal to the refund executor, so no other
// service can be built with it. Adapter joins it with the reading client to
// a provider.Provider on one credential.
//
// A call ends in exactly one class, and a class is claimed only when it is
// proven:
//
//	ACKNOWLEDGED  2xx that names a refund of exactly what was asked
//	REFUSED       a definite 4xx: the provider said no, and will say it again
//	NO_EFFECT     the request's body was never handed to the network, be it
//	              that its time was over (withdrawn), or the provider turned
//	              it away unread (401, 403, 425, 429)
//	UNKNOWN       anything else: a refund may exist
//
// UNKNOWN is always a safe answer, for the caller settles it with the same key
// and the same bytes. ACKNOWLEDGED says that a refund exists, not that it
// succeeded: the status goes with it and may be failed.
//
// One call of Create sends at most one request. net/http would repeat a request
// that carries an Idempotency-Key by itself when a kept connection breaks; the
// executor must decide about every call (stop switch, age of the intent), so the
// body can be read only once and net/http cannot repeat it. The first read of
// the body looks at the clock once more, so a process that stood still between
// the permission to call and the sending sends nothing. Redirects are not
// followed: the key and the credential go to one address.
package refunds
