package openapitest

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode/utf8"
)

// known are the keywords check looks at, and those that only tell people
// something.
var known = []string{
	"type", "properties", "required", "additionalProperties", "items", "enum", "const", "pattern", "format", "minimum", "maximum", "minLength", "maxLength",
	"description", "default", "contentMediaType", "examples",
}

func decode(text string) (any, error) {
	dec := json.NewDecoder(strings.NewReader(text))
	dec.UseNumber()
	var v any
	if err := dec.Decode(&v); err != nil {
		return nil, fmt.Errorf("not JSON: %w", err)
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("not JSON: something follows it")
	}
	return v, nil
}

// check compares a JSON value with a schema.
func (d Document) check(where string, schema Node, v any) []string {
	schema = d.resolve(schema)
	var wrong []string
	for keyword := range schema {
		if !slices.Contains(known, keyword) {
			wrong = append(wrong, fmt.Sprintf("%s: the schema says %q, which is not checked", where, keyword))
		}
	}
	types := texts(schema["type"])
	if one, ok := schema["type"].(string); ok {
		types = []string{one}
	}
	if !slices.Contains(types, jsonType(v)) {
		return append(wrong, fmt.Sprintf("%s: %s, documented as %v", where, jsonType(v), types))
	}
	switch v := v.(type) {
	case json.Number:
		wrong = append(wrong, number(where, schema, v)...)
	case string:
		wrong = append(wrong, text(where, schema, v)...)
	case []any:
		for i, item := range v {
			wrong = append(wrong, d.check(fmt.Sprintf("%s[%d]", where, i), d.at(schema, "items"), item)...)
		}
	case Node:
		wrong = append(wrong, d.object(where, schema, v)...)
	}
	return wrong
}

func number(where string, schema Node, v json.Number) []string {
	n, err := v.Int64()
	if err != nil {
		return []string{fmt.Sprintf("%s: %s is not an integer", where, v)}
	}
	if low, ok := schema["minimum"].(int); ok && n < int64(low) {
		return []string{fmt.Sprintf("%s: %d is less than %d", where, n, low)}
	}
	if high, ok := schema["maximum"].(int); ok && n > int64(high) {
		return []string{fmt.Sprintf("%s: %d is more than %d", where, n, high)}
	}
	return nil
}

func text(where string, schema Node, v string) []string {
	var wrong []string
	if p, ok := schema["pattern"].(string); ok && !regexp.MustCompile(p).MatchString(v) {
		wrong = append(wrong, fmt.Sprintf("%s: %q does not match %s", where, v, p))
	}
	if least, ok := schema["minLength"].(int); ok && utf8.RuneCountInString(v) < least {
		wrong = append(wrong, fmt.Sprintf("%s: shorter than %d", where, least))
	}
	if most, ok := schema["maxLength"].(int); ok && utf8.RuneCountInString(v) > most {
		wrong = append(wrong, fmt.Sprintf("%s: longer than %d", where, most))
	}
	if one, ok := schema["const"]; ok && v != fmt.Sprint(one) {
		wrong = append(wrong, fmt.Sprintf("%s: %q is not %v", where, v, one))
	}
	if values := texts(schema["enum"]); len(values) > 0 && !slices.Contains(values, v) {
		wrong = append(wrong, fmt.Sprintf("%s: %q is none of %v", where, v, values))
	}
	switch schema["format"] {
	case nil:
	case "date-time":
		if _, err := time.Parse(time.RFC3339, v); err != nil {
			wrong = append(wrong, fmt.Sprintf("%s: %q is no time", where, v))
		}
	default:
		wrong = append(wrong, fmt.Sprintf("%s: the schema's format %v is not checked", where, schema["format"]))
	}
	return wrong
}

func (d Document) object(where string, schema, v Node) []string {
	var wrong []string
	for _, name := range texts(schema["required"]) {
		if _, ok := v[name]; !ok {
			wrong = append(wrong, fmt.Sprintf("%s: %s is missing", where, name))
		}
	}
	properties, described := schema["properties"].(Node)
	if !described {
		return wrong // any object
	}
	for name, value := range v {
		p, ok := properties[name].(Node)
		if !ok {
			wrong = append(wrong, fmt.Sprintf("%s: %s is not documented", where, name))
			continue
		}
		wrong = append(wrong, d.check(where+"."+name, p, value)...)
	}
	return wrong
}

func jsonType(v any) string {
	switch v.(type) {
	case nil:
		return "null"
	case bool:
		return "boolean"
	case json.Number:
		return "integer"
	case string:
		return "string"
	case []any:
		return "array"
	}
	return "object"
}
