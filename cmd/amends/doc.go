// Command amends is the desk's client for operators, approvers and channels. It
// links no service.
//
// What is signed is computed here from the action record itself and shown
// before it is signed; the console's own text and hash are compared and never
// trusted. Keys and tokens are read from files that only their owner may read,
// and are never printed. A decision is done when the case holds it and it
// counts; the console's word for that is taken, as nothing is signed on it. Exit
// codes: 0 done, 1 refused, not judged in time or gone wrong, 2 not understood;
// of reconcile also 3, records of money disagree, and 4, not everything was
// looked at.
package main
