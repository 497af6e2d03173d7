// Package flock keeps a directory or file to one process at a time. The lock
// goes with the process that holds it, however it ends.
package flock
