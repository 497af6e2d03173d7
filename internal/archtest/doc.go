// Package archtest holds the architecture as tests: who may import whom, who
// links the code that moves money, where I/O and clocks are allowed, and what
// every package and file owes its reader.
//
// The rules look at the packages of this module as the go command lists them
// and at their syntax. Each rule is also run on a planted violation, so a rule
// that finds nothing is known to look.
package archtest
