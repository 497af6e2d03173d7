package deskclient

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"

	"google.golang.org/protobuf/encoding/protojson"

	"github.com/amends-dev/amends/internal/deskapi"
	amendsv1 "github.com/amends-dev/amends/proto/amends/v1"
)

// Console is a staff member's client.
type Console struct{ api api }

// NewConsole gives a client of the console.
func NewConsole(cfg Config) (*Console, error) {
	a, err := newAPI(cfg)
	if err != nil {
		return nil, fmt.Errorf("console: %w", err)
	}
	return &Console{api: a}, nil
}

// Record gives a case as staff see it, of minVersion or later.
func (c *Console) Record(ctx context.Context, tenant, caseID string, minVersion uint64) (deskapi.Record, error) {
	var out deskapi.Record
	err := c.api.call(ctx, http.MethodGet, deskapi.RecordPath(tenant, caseID, minVersion), nil, nil, &out)
	return out, err
}

// Action gives the action a case proposes, of minVersion or later, and its
// record decoded. Text and hash in the answer are the console's word; a signer
// computes them from the record.
func (c *Console) Action(ctx context.Context, tenant, caseID string, minVersion uint64) (deskapi.Action, *amendsv1.ActionRecord, error) {
	var out deskapi.Action
	if err := c.api.call(ctx, http.MethodGet, deskapi.ActionPath(tenant, caseID, minVersion), nil, nil, &out); err != nil {
		return out, nil, err
	}
	record := new(amendsv1.ActionRecord)
	if err := protojson.Unmarshal(out.Action, record); err != nil {
		return out, nil, fmt.Errorf("decode the action of %s: %w", caseID, err)
	}
	return out, record, nil
}

// Stops gives the switches of the emergency stop that the caller may see.
func (c *Console) Stops(ctx context.Context) (deskapi.Stops, error) {
	var out deskapi.Stops
	err := c.api.call(ctx, http.MethodGet, deskapi.StopsPath, nil, nil, &out)
	return out, err
}

// ChangeStop sets a switch of the emergency stop or releases it.
func (c *Console) ChangeStop(ctx context.Context, r deskapi.StopRequest) (deskapi.StopChanged, error) {
	var out deskapi.StopChanged
	body, err := json.Marshal(r)
	if err != nil {
		return out, fmt.Errorf("encode a change of the stop: %w", err)
	}
	err = c.api.call(ctx, http.MethodPost, deskapi.StopsPath, nil, body, &out)
	return out, err
}

// Queue gives a page of the cases of a tenant that wait for staff in a queue, the
// longest waiting first; a limit of 0 takes the console's.
func (c *Console) Queue(ctx context.Context, tenant, queue, cursor string, limit int) (deskapi.Queue, error) {
	var out deskapi.Queue
	err := c.api.call(ctx, http.MethodGet, deskapi.QueueOf(tenant, queue, cursor, limit), nil, nil, &out)
	return out, err
}

// Custody gives a case that is with people, and its packet decoded. Text and
// hash in the answer are the console's word; a signer computes them from the
// packet.
func (c *Console) Custody(ctx context.Context, tenant, caseID string) (deskapi.Custody, *amendsv1.CustodyPacket, error) {
	var out deskapi.Custody
	if err := c.api.call(ctx, http.MethodGet, deskapi.CustodyPath(tenant, caseID), nil, nil, &out); err != nil {
		return out, nil, err
	}
	packet := new(amendsv1.CustodyPacket)
	if err := protojson.Unmarshal(out.Packet, packet); err != nil {
		return out, nil, fmt.Errorf("decode the packet of %s: %w", caseID, err)
	}
	return out, packet, nil
}

// DecideCustody hands in what a custodian signed. The same again is the same
// message.
func (c *Console) DecideCustody(ctx context.Context, d *amendsv1.CustodyDecision) (deskapi.Relayed, error) {
	var out deskapi.Relayed
	body, err := protojson.Marshal(d)
	if err != nil {
		return out, fmt.Errorf("encode a custody decision: %w", err)
	}
	err = c.api.call(ctx, http.MethodPost, deskapi.CustodyPath(d.GetTenant(), d.GetCaseId()), nil, body, &out)
	return out, err
}

// Decide hands in a signed decision. The same decision again is the same
// message.
func (c *Console) Decide(ctx context.Context, d *amendsv1.SignedDecision) (deskapi.Relayed, error) {
	var out deskapi.Relayed
	body, err := protojson.Marshal(d)
	if err != nil {
		return out, fmt.Errorf("encode a decision: %w", err)
	}
	err = c.api.call(ctx, http.MethodPost, deskapi.DecisionsPath(d.GetTenant(), d.GetCaseId()), nil, body, &out)
	return out, err
}

// Reconcile asks for a run that compares a tenant's records of money.
func (c *Console) Reconcile(ctx context.Context, r deskapi.ReconciliationRequest) (deskapi.ReconciliationAccepted, error) {
	var out deskapi.ReconciliationAccepted
	body, err := json.Marshal(r)
	if err != nil {
		return out, fmt.Errorf("encode a request to reconcile: %w", err)
	}
	err = c.api.call(ctx, http.MethodPost, deskapi.ReconciliationsPath, nil, body, &out)
	return out, err
}

// Reconciliation gives a run as far as it has come.
func (c *Console) Reconciliation(ctx context.Context, tenant, run string) (deskapi.Reconciliation, error) {
	var out deskapi.Reconciliation
	err := c.api.call(ctx, http.MethodGet, deskapi.ReconciliationPath(tenant, run), nil, nil, &out)
	return out, err
}
