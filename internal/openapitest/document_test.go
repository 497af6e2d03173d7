package openapitest_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/amends-dev/amends/internal/openapitest"
)

const document = `
paths:
  /v1/things/{id}:
    get:
      responses:
        '200':
          headers: {ETag: {required: true, schema: {type: string, pattern: '^"[0-9]+"$'}}}
          content: {application/json: {schema: {$ref: '#/components/schemas/Thing'}}}
        '204': {description: none}
        '404':
          x-codes: [not_found]
          content: {application/problem+json: {schema: {type: object, properties: {code: {type: string}}}}}
    post:
      responses:
        default: {content: {application/json: {schema: {type: object, oneOf: []}}}}
components:
  schemas:
    Thing:
      type: object
      required: [id]
      properties:
        id: {type: string, minLength: 2, maxLength: 3}
        count: {type: [integer, 'null'], minimum: 1, maximum: 3}
        kinds: {type: array, items: {type: string, enum: [a, b]}}
        at: {type: string, format: date-time}
        where: {type: string, format: uri}
`

func TestCompareFindsEveryDifference(t *testing.T) {
	t.Parallel()
	d, err := openapitest.Parse([]byte(document))
	if err != nil {
		t.Fatal(err)
	}
	get, post := openapitest.Operation{Method: "GET", Path: "/v1/things/{id}"}, openapitest.Operation{Method: "POST", Path: "/v1/things/{id}"}
	for name, c := range map[string]struct {
		op                openapitest.Operation
		status            int
		etag, media, body string
		want              string
	}{
		"good":                {get, 200, `"7"`, "application/json", `{"id":"ab","count":2,"kinds":["a"],"at":"2026-03-12T10:14:00Z"}`, ""},
		"null":                {get, 200, `"7"`, "application/json", `{"id":"ab","count":null}`, ""},
		"no body":             {get, 204, "", "", "", ""},
		"problem":             {get, 404, "", "application/problem+json", `{"code":"not_found"}`, ""},
		"other problem":       {get, 404, "", "application/problem+json", `{"code":"gone"}`, `code "gone"`},
		"other status":        {get, 500, "", "", "", "status 500"},
		"other media":         {get, 200, `"7"`, "text/html", `{"id":"ab"}`, "media type"},
		"no header":           {get, 200, "", "application/json", `{"id":"ab"}`, "header ETag is missing"},
		"odd header":          {get, 200, "7", "application/json", `{"id":"ab"}`, "header ETag"},
		"a body all the same": {get, 204, "", "", "x", "a body"},
		"not JSON":            {get, 200, `"7"`, "application/json", `{"id":`, "not JSON"},
		"trailing":            {get, 200, `"7"`, "application/json", `{"id":"ab"}{}`, "follows"},
		"missing":             {get, 200, `"7"`, "application/json", `{}`, "id is missing"},
		"too short":           {get, 200, `"7"`, "application/json", `{"id":"a"}`, "shorter"},
		"too long":            {get, 200, `"7"`, "application/json", `{"id":"abcd"}`, "longer"},
		"undocumented":        {get, 200, `"7"`, "application/json", `{"id":"ab","x":1}`, "x is not documented"},
		"too small":           {get, 200, `"7"`, "application/json", `{"id":"ab","count":0}`, "less than"},
		"too large":           {get, 200, `"7"`, "application/json", `{"id":"ab","count":4}`, "more than"},
		"fraction":            {get, 200, `"7"`, "application/json", `{"id":"ab","count":1.5}`, "integer"},
		"type":                {get, 200, `"7"`, "application/json", `{"id":7}`, "documented as [string]"},
		"enum":                {get, 200, `"7"`, "application/json", `{"id":"ab","kinds":["c"]}`, "none of"},
		"time":                {get, 200, `"7"`, "application/json", `{"id":"ab","at":"today"}`, "no time"},
		"format":              {get, 200, `"7"`, "application/json", `{"id":"ab","where":"x"}`, "format uri is not checked"},
		"keyword":             {post, 418, "", "application/json", `{}`, `"oneOf", which is not checked`},
	} {
		h := http.Header{}
		if c.etag != "" {
			h.Set("ETag", c.etag)
		}
		h.Set("Content-Type", c.media)
		end, wrong := d.Compare(c.op, openapitest.Answer{Status: c.status, Header: h, Body: c.body})
		if found := strings.Join(wrong, "; "); (c.want == "") != (found == "") || !strings.Contains(found, c.want) {
			t.Errorf("%s: found %q, want %q", name, found, c.want)
		}
		if end.Status != c.status || end.Operation != c.op {
			t.Errorf("%s: ended as %s", name, end)
		}
	}
}

func TestOutcomesListEveryStatusAndCode(t *testing.T) {
	t.Parallel()
	d, err := openapitest.Parse([]byte(document))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, o := range d.Outcomes() {
		got = append(got, o.String())
	}
	if want := "GET /v1/things/{id} 200|GET /v1/things/{id} 204|GET /v1/things/{id} 404 not_found"; strings.Join(got, "|") != want {
		t.Errorf("outcomes %q", got)
	}
}
