package console

import (
	"crypto/rand"
	"net/http"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/amends-dev/amends/internal/approval"
	"github.com/amends-dev/amends/internal/casework"
	"github.com/amends-dev/amends/internal/custody"
	"github.com/amends-dev/amends/internal/deskapi"
	"github.com/amends-dev/amends/internal/deskclient"
	"github.com/amends-dev/amends/internal/envelope"
	amendsv1 "github.com/amends-dev/amends/proto/amends/v1"
)

func handedOver(version uint64) *amendsv1.CaseRecord {
	r := record(version)
	r.State = amendsv1.CaseState_CASE_STATE_HUMAN_HANDOFF
	r.Custody = &amendsv1.Custody{Queue: casework.QueueHandoff, Reason: "open_dispute", Since: r.GetUpdatedAt(), Events: []*amendsv1.CustodyEvent{{
		From: "desk", To: "handoff", Reason: "open_dispute", PacketSha256: strings.Repeat("ab", 32), At: r.GetUpdatedAt(),
	}}}
	return r
}

func taking(t *testing.T, r *amendsv1.CaseRecord) *amendsv1.CustodyDecision {
	t.Helper()
	key, err := approval.NewKey("sam", "sam-1", rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	d := &amendsv1.CustodyDecision{
		Tenant: r.GetTenant(), CaseId: r.GetCaseId(), Step: amendsv1.CustodyStep_CUSTODY_STEP_TAKE, PacketSha256: casework.PacketSHA256(r),
		SignedAt: timestamppb.New(time.Date(2026, 3, 12, 10, 20, 0, 0, time.UTC)),
	}
	if err := approval.SignCustody(key, d); err != nil {
		t.Fatal(err)
	}
	return d
}

func TestCustodyIsShownAndRelayedAsItIs(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.commit(t, record(5))
	desk, err := deskclient.NewConsole(deskclient.Config{URL: d.url, Token: acmeToken})
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := desk.Custody(t.Context(), "acme-in", "req-8472"); err == nil || !strings.Contains(err.Error(), string(deskapi.CodeNotInCustody)) {
		t.Errorf("a case that is with the desk: %v", err)
	}
	r := handedOver(6)
	d.commit(t, r)
	shown, packet, err := desk.Custody(t.Context(), "acme-in", "req-8472")
	if err != nil || shown.Queue != "handoff" || len(shown.Transfers) != 1 || shown.PacketSHA256 != custody.SHA256(packet) || shown.PacketSHA256 != casework.PacketSHA256(r) {
		t.Fatalf("%+v, %v", shown, err)
	}
	signed := taking(t, r)
	var ids [2]string
	for i := range ids {
		relayed, err := desk.DecideCustody(t.Context(), signed)
		if err != nil {
			t.Fatal(err)
		}
		ids[i] = relayed.MessageID
	}
	stored := d.stored(t)
	if len(stored) != 2 || ids[0] != ids[1] || stored[0].GetMessageId() != ids[0] || stored[0].GetType() != envelope.CustodyDecision {
		t.Fatalf("a retry is not the same message: %v", stored)
	}
	got := new(amendsv1.CustodyDecision)
	if err := proto.Unmarshal(stored[0].GetPayload(), got); err != nil || !proto.Equal(got, signed) {
		t.Errorf("relayed %v, want %v", got, signed)
	}
}

func TestMalformedCustodyDecisionsAreRefused(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	r := handedOver(6)
	d.commit(t, r)
	good := taking(t, r)
	changed := func(f func(*amendsv1.CustodyDecision)) string {
		c := proto.CloneOf(good)
		f(c)
		body, err := protojson.Marshal(c)
		if err != nil {
			t.Fatal(err)
		}
		return string(body)
	}
	for name, c := range map[string]struct {
		body   string
		auth   func(*http.Request)
		status int
	}{
		"no token":         {changed(func(*amendsv1.CustodyDecision) {}), nil, 401},
		"no JSON":          {"take", bearer(acmeToken), 400},
		"too large":        {`{"reason":"` + strings.Repeat("x", maxDecision) + `"}`, bearer(acmeToken), 413},
		"another case":     {changed(func(c *amendsv1.CustodyDecision) { c.CaseId = "req-1" }), bearer(acmeToken), 400},
		"another tenant":   {changed(func(c *amendsv1.CustodyDecision) { c.Tenant = "beta" }), bearer(acmeToken), 400},
		"no step":          {changed(func(c *amendsv1.CustodyDecision) { c.Step = 0 }), bearer(acmeToken), 400},
		"no packet":        {changed(func(c *amendsv1.CustodyDecision) { c.PacketSha256 = "" }), bearer(acmeToken), 400},
		"short signature":  {changed(func(c *amendsv1.CustodyDecision) { c.Signature = c.Signature[:63] }), bearer(acmeToken), 400},
		"text out of step": {changed(func(c *amendsv1.CustodyDecision) { c.Text = "x" }), bearer(acmeToken), 400},
	} {
		a := d.ask(t, http.MethodPost, casePath+"/custody", c.body, c.auth)
		if a.status != c.status || a.code() == "" {
			t.Errorf("%s: %d %s, want %d", name, a.status, a.body, c.status)
		}
	}
	if n := len(d.stored(t)); n != 0 {
		t.Errorf("%d messages stored", n)
	}
}
