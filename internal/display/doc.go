// Package display makes text from outside safe to show to a person: what would
// move the cursor, reorder the line or not be seen at all is shown as an
// escape. Nothing is dropped, so what was sent can be told from what is shown.
//
// Escaping for HTML is the template's business and comes on top.
package display
