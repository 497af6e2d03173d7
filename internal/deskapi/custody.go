package deskapi

import (
	"encoding/json"
	"net/url"
	"strconv"
	"time"
)

// CustodyPath is where staff see a case that is with people, and where
// custodians hand in what they signed.
func CustodyPath(tenant, caseID string) string {
	return CasesPath + "/" + tenant + "/" + caseID + "/custody"
}

// Parameters of a queue.
const (
	ParamTenant = "tenant"
	ParamQueue  = "queue"
	ParamCursor = "cursor"
	ParamLimit  = "limit"
)

// QueueApproval is the queue of the cases that wait for an approver; the others
// are those of the record.
const QueueApproval = "approval"

// QueuePath is where staff see the cases of a queue.
const QueuePath = "/v1/custody"

// QueueOf gives the path of one page of a queue; a limit of 0 is the server's.
func QueueOf(tenant, queue, cursor string, limit int) string {
	q := url.Values{ParamTenant: {tenant}, ParamQueue: {queue}}
	if cursor != "" {
		q.Set(ParamCursor, cursor)
	}
	if limit > 0 {
		q.Set(ParamLimit, strconv.Itoa(limit))
	}
	return QueuePath + "?" + q.Encode()
}

// Queue is one page of the cases that wait for people, the longest waiting
// first. More pages follow while Next is not empty.
type Queue struct {
	Cases []Queued `json:"cases"`
	Next  string   `json:"next,omitempty"`
}

// Queued is a case in a queue.
type Queued struct {
	Tenant    string    `json:"tenant"`
	CaseID    string    `json:"case_id"`
	OrderID   string    `json:"order_id,omitempty"`
	State     string    `json:"state"`
	Queue     string    `json:"queue"`
	Reason    string    `json:"reason"`
	Custodian string    `json:"custodian,omitempty"`
	Since     time.Time `json:"since"`
	Version   uint64    `json:"version"`
}

// Custody is a case that is with people, and the packet to decide it by. Text
// and hash are there for people to read; whoever signs computes both from
// Packet.
type Custody struct {
	Tenant  string `json:"tenant"`
	CaseID  string `json:"case_id"`
	OrderID string `json:"order_id,omitempty"`
	Version uint64 `json:"version"`
	State   string `json:"state"`
	Queue   string `json:"queue"`
	// Custodian has the case until Until; empty while nobody does.
	Custodian string     `json:"custodian,omitempty"`
	Since     *time.Time `json:"since,omitempty"`
	Until     *time.Time `json:"until,omitempty"`
	// Packet is an amends.v1.CustodyPacket in ProtoJSON.
	Packet       json.RawMessage   `json:"packet"`
	PacketText   string            `json:"packet_text"`
	PacketSHA256 string            `json:"packet_sha256"`
	Evidence     Evidence          `json:"evidence"`
	Transfers    []CustodyTransfer `json:"transfers"`
}

// CustodyTransfer is one change of hands.
type CustodyTransfer struct {
	From         string     `json:"from"`
	To           string     `json:"to"`
	Reason       string     `json:"reason"`
	PacketSHA256 string     `json:"packet_sha256"`
	At           *time.Time `json:"at,omitempty"`
}
