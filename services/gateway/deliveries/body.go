package deliveries

import (
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	"github.com/amends-dev/amends/internal/deskapi"
	"github.com/amends-dev/amends/internal/ident"
	amendsv1 "github.com/amends-dev/amends/proto/amends/v1"
)

// ID is the webhook id of a reply: a function of tenant, case and version.
func ID(tenant, caseID string, version uint64) string {
	return "msg_" + ident.Derive(time.Unix(0, 0), "webhook", tenant, caseID, strconv.FormatUint(version, 10))
}

// body is what is sent of a reply: what its customer may see, and the same
// bytes in every attempt, whatever became of the case since.
func body(v *amendsv1.CaseView, r *amendsv1.ViewReply) ([]byte, error) {
	state := ""
	for _, e := range v.GetTimeline() {
		if e.GetVersion() <= r.GetVersion() {
			state = e.GetState()
		}
	}
	out, err := json.Marshal(deskapi.Webhook{
		Type: deskapi.WebhookReply, Timestamp: deskapi.TimeOf(r.GetSentAt()),
		Data: deskapi.WebhookData{
			CaseID: v.GetCaseId(), RequestID: v.GetRequestId(), State: state,
			Reply: deskapi.ViewReply{Kind: r.GetKind(), Text: r.GetText(), SentAt: deskapi.TimeOf(r.GetSentAt()), Version: r.GetVersion()},
		},
	})
	if err != nil {
		return nil, fmt.Errorf("encode a webhook: %w", err)
	}
	return out, nil
}

// replyOf gives the reply that a version of the case sent, or nil.
func replyOf(v *amendsv1.CaseView, version uint64) *amendsv1.ViewReply {
	for _, r := range v.GetReplies() {
		if r.GetVersion() == version {
			return r
		}
	}
	return nil
}
