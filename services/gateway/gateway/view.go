package gateway

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"strconv"

	"google.golang.org/protobuf/proto"

	"github.com/amends-dev/amends/internal/deskapi"
	"github.com/amends-dev/amends/internal/edge"
	"github.com/amends-dev/amends/internal/ident"
	amendsv1 "github.com/amends-dev/amends/proto/amends/v1"
)

// snapshot is a view and what customers are shown of it.
type snapshot struct {
	view *amendsv1.CaseView
	json []byte
}

func decodeView(data []byte) (*snapshot, error) {
	view := new(amendsv1.CaseView)
	if err := proto.Unmarshal(data, view); err != nil {
		return nil, fmt.Errorf("decode a view: %w", err)
	}
	body, err := json.Marshal(customerView(view))
	if err != nil {
		return nil, fmt.Errorf("encode a view: %w", err)
	}
	return &snapshot{view: view, json: body}, nil
}

// customerView names every field a customer sees; tenant, customer and body
// hash are not among them.
func customerView(v *amendsv1.CaseView) deskapi.View {
	out := deskapi.View{
		CaseID: v.GetCaseId(), RequestID: v.GetRequestId(), Version: v.GetVersion(), State: v.GetState(), OrderID: v.GetOrderId(),
		OpenedAt: deskapi.TimeOf(v.GetOpenedAt()), UpdatedAt: deskapi.TimeOf(v.GetUpdatedAt()),
		NextAt: deskapi.TimeOf(v.GetNextAt()), Next: v.GetNext(), Closed: v.GetClosed(), ContinuedBy: v.GetContinuedByCaseId(), TraceID: v.GetTraceId(),
		Timeline: make([]deskapi.ViewEntry, 0, len(v.GetTimeline())),
		Replies:  make([]deskapi.ViewReply, 0, len(v.GetReplies())),
	}
	for _, e := range v.GetTimeline() {
		out.Timeline = append(out.Timeline, deskapi.ViewEntry{Version: e.GetVersion(), State: e.GetState(), At: deskapi.TimeOf(e.GetAt())})
	}
	for _, r := range v.GetReplies() {
		out.Replies = append(out.Replies, deskapi.ViewReply{Kind: r.GetKind(), Text: r.GetText(), SentAt: deskapi.TimeOf(r.GetSentAt()), Version: r.GetVersion()})
	}
	return out
}

// unknownCase answers for a case that does not exist and for one of somebody
// else.
var unknownCase = deskapi.NewProblem(http.StatusNotFound, deskapi.CodeNotFound, "no such case")

// showCase handles GET /v1/cases/{id}.
func (g *gateway) showCase(w http.ResponseWriter, r *http.Request, c caller) *deskapi.Problem {
	s, problem := g.own(r, c)
	if problem != nil {
		return problem
	}
	tag := `"` + strconv.FormatUint(s.view.GetVersion(), 10) + `"`
	w.Header().Set("ETag", tag)
	if r.Header.Get("If-None-Match") == tag {
		w.WriteHeader(http.StatusNotModified)
		return nil
	}
	edge.WriteBody(w, http.StatusOK, s.json)
	return nil
}

// own gives the view of the request's case. Somebody else's case is waited for
// as if it did not exist.
func (g *gateway) own(r *http.Request, c caller) (*snapshot, *deskapi.Problem) {
	caseID := r.PathValue("id")
	if ident.Token(caseID) != nil {
		return nil, unknownCase
	}
	s, err := g.views.await(r.Context(), c.tenant, caseID, func(v *amendsv1.CaseView) bool { return v.GetCustomerId() == c.customer })
	if err != nil {
		return nil, g.unread(r, c, caseID, err)
	}
	return s, nil
}

// unread answers for a view that could not be had.
func (g *gateway) unread(r *http.Request, c caller, caseID string, err error) *deskapi.Problem {
	if isMissing(err) {
		return unknownCase
	}
	g.log.LogAttrs(r.Context(), slog.LevelWarn, "view not readable", slog.String("tenant", c.tenant), slog.String("case_id", caseID),
		slog.String("request_id", edge.RequestID(r.Context())), slog.Any("error", err))
	return unavailable
}
