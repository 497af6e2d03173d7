// Package openapitest compares what a server answers with the OpenAPI document
// it serves: status, headers, media type, body, and the code of a problem.
//
// It knows as much of JSON Schema as our documents use, and a keyword it does
// not know is a finding, so that nothing in a document goes unchecked. Members
// of an answer that the document does not name are findings too, though
// clients must accept them.
package openapitest
