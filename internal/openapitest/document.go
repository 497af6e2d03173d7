package openapitest

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Node is a part of a document.
type Node = map[string]any

// Document is an API document.
type Document struct{ root Node }

// Parse reads a document, which may be YAML or JSON.
func Parse(text []byte) (Document, error) {
	var d Document
	if err := yaml.Unmarshal(text, &d.root); err != nil {
		return d, fmt.Errorf("read the API document: %w", err)
	}
	return d, nil
}

// At follows names through the document, and references on the way; nil where
// there is nothing.
func (d Document) At(path ...string) Node { return d.at(d.root, path...) }

func (d Document) at(n Node, path ...string) Node {
	for _, name := range path {
		next, _ := d.resolve(n)[name].(Node)
		n = next
	}
	return d.resolve(n)
}

// resolve follows a reference; what stands beside it is for readers.
func (d Document) resolve(n Node) Node {
	ref, ok := n["$ref"].(string)
	if !ok {
		return n
	}
	return d.At(strings.Split(strings.TrimPrefix(ref, "#/"), "/")...)
}

// Operation is one method of one path, e.g. GET /v1/cases/{id}.
type Operation struct{ Method, Path string }

func (o Operation) String() string { return o.Method + " " + o.Path }

// Operations lists what is documented, in order.
func (d Document) Operations() []Operation {
	var out []Operation
	for path := range d.At("paths") {
		for _, method := range []string{"get", "put", "post", "delete", "patch"} {
			if d.At("paths", path, method) != nil {
				out = append(out, Operation{strings.ToUpper(method), path})
			}
		}
	}
	slices.SortFunc(out, func(a, b Operation) int { return strings.Compare(a.String(), b.String()) })
	return out
}

// Operation gives an operation's part of the document.
func (d Document) Operation(o Operation) Node {
	return d.At("paths", o.Path, strings.ToLower(o.Method))
}

// Outcome is a way an operation may end: a status, and for a problem its code.
type Outcome struct {
	Operation
	Status int
	Code   string
}

func (o Outcome) String() string {
	return strings.TrimSpace(fmt.Sprint(o.Operation, " ", o.Status, " ", o.Code))
}

// Outcomes lists the documented ways every operation may end. The codes of
// a problem are those its response names in x-codes.
func (d Document) Outcomes() []Outcome {
	var out []Outcome
	for _, op := range d.Operations() {
		responses := d.at(d.Operation(op), "responses")
		for _, status := range slices.Sorted(maps.Keys(responses)) {
			n, err := strconv.Atoi(status)
			if err != nil {
				continue // default
			}
			codes := texts(d.at(responses, status)["x-codes"])
			for _, code := range codes {
				out = append(out, Outcome{op, n, code})
			}
			if len(codes) == 0 {
				out = append(out, Outcome{op, n, ""})
			}
		}
	}
	return out
}

// Answer is what a server said.
type Answer struct {
	Status int
	Header http.Header
	Body   string
}

// Compare gives what of an answer is not as documented, and how the operation
// ended.
func (d Document) Compare(op Operation, a Answer) (Outcome, []string) {
	end := Outcome{Operation: op, Status: a.Status}
	responses := d.at(d.Operation(op), "responses")
	response := d.at(responses, strconv.Itoa(a.Status))
	if response == nil && a.Status >= http.StatusBadRequest {
		response = d.at(responses, "default")
	}
	if response == nil {
		return end, []string{fmt.Sprintf("%s: status %d is not documented", op, a.Status)}
	}
	where := fmt.Sprintf("%s %d", op, a.Status)
	wrong := d.headers(where, d.at(response, "headers"), a.Header)
	content := d.at(response, "content")
	if content == nil {
		if a.Body != "" {
			wrong = append(wrong, where+": a body is not documented")
		}
		return end, wrong
	}
	media := a.Header.Get("Content-Type")
	if d.at(content, media) == nil {
		return end, append(wrong, fmt.Sprintf("%s: media type %q is not documented", where, media))
	}
	if media == "text/event-stream" {
		return end, append(wrong, d.events(where, d.at(content, media, "x-event-data"), a.Body)...)
	}
	v, err := decode(a.Body)
	if err != nil {
		return end, append(wrong, fmt.Sprintf("%s: %v", where, err))
	}
	wrong = append(wrong, d.check(where, d.at(content, media, "schema"), v)...)
	if codes := texts(response["x-codes"]); len(codes) > 0 {
		problem, _ := v.(Node)
		end.Code, _ = problem["code"].(string)
		if !slices.Contains(codes, end.Code) {
			wrong = append(wrong, fmt.Sprintf("%s: code %q, documented %v", where, end.Code, codes))
		}
	}
	return end, wrong
}

// told are the headers that say something to a client of ours; others are the
// server's.
var told = []string{"Retry-After", "ETag", "Location", "Allow", "WWW-Authenticate", "X-Request-Id"}

func (d Document) headers(where string, documented Node, got http.Header) []string {
	var wrong []string
	for name := range documented {
		h := d.at(documented, name)
		value := got.Get(name)
		if value == "" {
			if h["required"] == true {
				wrong = append(wrong, where+": header "+name+" is missing")
			}
			continue
		}
		v := any(value)
		if d.at(h, "schema")["type"] == "integer" {
			n, err := decode(value)
			if err != nil {
				wrong = append(wrong, fmt.Sprintf("%s: header %s: %v", where, name, err))
				continue
			}
			v = n
		}
		wrong = append(wrong, d.check(where+": header "+name, d.at(h, "schema"), v)...)
	}
	for _, name := range told {
		if got.Get(name) != "" && documented != nil && documented[name] == nil {
			wrong = append(wrong, where+": header "+name+" is not documented")
		}
	}
	return wrong
}

// events checks the data of every event of a stream.
func (d Document) events(where string, schema Node, body string) []string {
	var wrong []string
	for line := range strings.Lines(body) {
		data, ok := strings.CutPrefix(strings.TrimSpace(line), "data: ")
		if !ok {
			continue
		}
		v, err := decode(data)
		if err != nil {
			wrong = append(wrong, fmt.Sprintf("%s: event: %v", where, err))
			continue
		}
		wrong = append(wrong, d.check(where+": event", schema, v)...)
	}
	return wrong
}

// texts gives a list of strings of the document.
func texts(v any) []string {
	list, _ := v.([]any)
	out := make([]string, 0, len(list))
	for _, item := range list {
		out = append(out, fmt.Sprint(item))
	}
	return out
}
