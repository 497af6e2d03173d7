// Package paymenttools makes the look-ups of package payments tools: each call
// goes through the session's checks and is recorded with its call id.
//
// What the provider does not know is an incomplete look-up, what it did not
// answer is a failed one; both come back as errors that keep their cause
// (payments.ErrNotFound, ErrUnavailable and so on).
package paymenttools
