// Package provider says what the refund executor needs of a payments provider,
// so that one can be replaced by another without touching how money is moved.
// The adapters stay sealed: the one that speaks to the real provider is in
// internal/refunds, the one in memory is for tests and simulations. All of them
// pass the suite in providertest.
//
// What a provider is asked for is little on purpose: the whole order in one
// answer, one refund, and the making of one refund under a key. What the suite
// holds it to:
//
//   - One key makes at most one refund while the provider knows the key. The
//     same key with other bytes is REFUSED with ReasonKeyReused, never a second
//     refund.
//   - Amounts are integers in the currency's minor unit, however many digits
//     that has; nothing scales them.
//   - A status the desk does not know is UNKNOWN and passes through; a refund
//     that exists is acknowledged with its status, and only succeeded says that
//     money moved.
//   - A reading of an order is complete: every refund on it, whoever made it,
//     with the reference it was made under. Absence is proven by it.
//   - A call that has not left the process at notAfter never leaves it.
//
// An adapter for a provider that works with payment intents reads the charges
// of an order's intents as its captures, maps an intent that waits for the
// customer to requires_action, follows the provider's cursors until a listing is
// complete or answers ErrUnavailable, and keeps our reference in the refund's
// metadata. Its keys should be restricted: one that reads, one that also makes
// refunds, none that does more.
package provider
