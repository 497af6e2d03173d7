package console

import (
	"bytes"
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"html/template"
	"net/http"
	"strconv"
	"strings"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/amends-dev/amends/internal/approval"
	"github.com/amends-dev/amends/internal/casework"
	"github.com/amends-dev/amends/internal/deskapi"
	"github.com/amends-dev/amends/internal/display"
	"github.com/amends-dev/amends/internal/edge"
	"github.com/amends-dev/amends/internal/money"
	amendsv1 "github.com/amends-dev/amends/proto/amends/v1"
)

//go:embed page.html
var pageText string

//go:embed page.css
var pageStyle string

var pageTemplate = template.Must(template.New("page").Funcs(template.FuncMap{
	"text":  display.Text,
	"money": money.Format,
	"time":  pageTime,
	"clock": func(t *time.Time) string { return pageTime(timestamppb.New(*t)) },
	"next":  nextMoment,
	"low":   func(prefix string, v interface{ String() string }) string { return enumName(v.String(), prefix) },
	"state": stateName,
	"list":  func(s []string) string { return strings.Join(s, ", ") },
	"style": func() template.CSS { return template.CSS(pageStyle) }, //nolint:gosec // our own file
}).Parse(pageText))

// nextMoment says when something happens to the case by itself.
func nextMoment(rec *amendsv1.CaseRecord) string {
	next, ok := casework.Next(rec)
	if !ok {
		return "nothing by itself"
	}
	return pageTime(timestamppb.New(next))
}

// pagePolicy lets the browser load and run nothing but the page's own style.
var pagePolicy = func() string {
	sum := sha256.Sum256([]byte(pageStyle))
	return "default-src 'none'; style-src 'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) +
		"'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
}()

func pageTime(t *timestamppb.Timestamp) string {
	if t == nil {
		return ""
	}
	return t.AsTime().UTC().Format("2006-01-02 15:04:05.000 UTC")
}

// page handles GET /cases/{tenant}/{case}. The staff token is the password.
func (c *console) page() http.Handler {
	return edge.Handler(func(w http.ResponseWriter, r *http.Request) *deskapi.Problem {
		_, token, _ := r.BasicAuth()
		return c.identify(w, r, token, `Basic realm="amends console", charset="UTF-8"`, c.showPage)
	})
}

func (c *console) showPage(w http.ResponseWriter, r request) *deskapi.Problem {
	rec, problem := c.read(r)
	if problem != nil {
		return problem
	}
	var actionText string
	if rec.GetAction() != nil {
		text, err := approval.ActionText(rec.GetAction())
		if err != nil {
			return c.fault(r, err)
		}
		actionText = text
	}
	var body bytes.Buffer
	if err := pageTemplate.Execute(&body, struct {
		*amendsv1.CaseRecord
		ActionText string
		Held       bool
		Stops      []deskapi.Stop
	}{rec, actionText, casework.Held(rec), c.holding(r, rec)}); err != nil {
		return c.fault(r, err)
	}
	h := w.Header()
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Content-Length", strconv.Itoa(body.Len()))
	h.Set("Content-Security-Policy", pagePolicy)
	h.Set("Referrer-Policy", "no-referrer")
	_, _ = body.WriteTo(w) // the client went away; there is nobody to tell
	return nil
}
