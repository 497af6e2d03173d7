// Package docs holds the documents of the project. Its tests keep them true
// where a machine can tell: links resolve, the index is complete, the make
// targets that are named exist, and examples do what the pages say.
package docs
