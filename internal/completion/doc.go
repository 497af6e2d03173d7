// Package completion completes command lines of kong's commands in bash, zsh
// and fish: verbs, flags, values of enumerations, files.
//
// A command embeds Commands in its command line. `amends completion bash` prints
// a script; at each completion the script runs the command itself with the
// words typed so far, so it never falls behind the command. What is completed is
// the model of the command line alone: no file is read, nothing is called.
//
// A line that is not understood completes to nothing.
package completion
