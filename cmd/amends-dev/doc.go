// Command amends-dev runs the embedded desk: the whole of Amends in one
// process, for a first look, for development and for load.
//
//	amends-dev demo     the founding request, both endings, checked
//	amends-dev up       a desk to play with; prints what to type
//	amends-dev bench    closed-loop load with a signed approval per case
//	amends-dev sandbox  the payments sandbox alone, and faults of one that runs
//
// `amends-dev completion SHELL` completes these in bash, zsh and fish.
package main
