// Package masking takes out of a text what the desk must not keep: card
// numbers, security codes, one-time codes and bank accounts. What is stored,
// logged, traced or shown is what Text returns.
//
// It is pure and knows the shapes only. A card number or an IBAN passes its
// checksum; a code or an account needs its word beside it, because an order
// number looks the same. Digits of every script count; characters nobody sees,
// line ends, markup and up to three marks do not part the groups of a card
// number. Behind marks that lists and amounts hold too, a number has to begin
// as issuers' numbers do.
//
// Invariants:
//   - Nothing of a masked number stays, not even its last digits.
//   - Whatever is not masked stays byte for byte, invisible characters
//     included, apart from control characters and invalid UTF-8. Where dropping
//     a control character would join two words, a space parts them.
//   - Masking again changes nothing.
//   - The result is at most three times as long as the text, and for valid
//     UTF-8 at most twice. Time is linear.
//
// Text never fails and never panics. Whoever stores the result checks its
// length.
package masking
