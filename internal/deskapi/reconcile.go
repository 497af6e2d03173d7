package deskapi

import "time"

// ReconciliationsPath is where staff have a tenant's records of money compared.
const ReconciliationsPath = "/v1/reconciliations"

// ReconciliationPath is where one run is read.
func ReconciliationPath(tenant, run string) string {
	return ReconciliationsPath + "/" + tenant + "/" + run
}

// ReconciliationRequest is the body that asks for a run.
type ReconciliationRequest struct {
	Tenant string `json:"tenant"`
	// DryRun: look and report, and change nothing.
	DryRun bool `json:"dry_run,omitempty"`
}

// ReconciliationAccepted answers it.
type ReconciliationAccepted struct {
	Tenant string `json:"tenant"`
	RunID  string `json:"run_id"`
	// Self is where the run is read.
	Self string `json:"self"`
}

// Statuses of a run.
const (
	RunRunning  = "running"
	RunComplete = "complete"
)

// Reconciliation is one run as far as it has come. It is complete when every
// service that compares has written its report.
type Reconciliation struct {
	Tenant string `json:"tenant"`
	RunID  string `json:"run_id"`
	Status string `json:"status"`
	DryRun bool   `json:"dry_run"`
	// Agrees: it is complete, everything was looked at and nothing disagrees.
	Agrees  bool        `json:"agrees"`
	Reports []RunReport `json:"reports"`
	// Waiting names the services whose report is not there.
	Waiting []string `json:"waiting,omitempty"`
}

// RunReport is what one service compared and found.
type RunReport struct {
	Service    string     `json:"service"`
	StartedAt  *time.Time `json:"started_at,omitempty"`
	FinishedAt *time.Time `json:"finished_at,omitempty"`
	Orders     uint64     `json:"orders"`
	Refunds    uint64     `json:"refunds"`
	Cases      uint64     `json:"cases"`
	// Updated are statuses that moved on and were recorded.
	Updated  uint64    `json:"updated"`
	Findings []Finding `json:"findings"`
	// Omitted findings are more than a report holds.
	Omitted uint64 `json:"omitted,omitempty"`
	// Incomplete says why not everything was looked at.
	Incomplete string `json:"incomplete,omitempty"`
}

// Finding says that records of money disagree.
type Finding struct {
	FindingID      string `json:"finding_id"`
	Code           string `json:"code"`
	OrderID        string `json:"order_id"`
	PaymentID      string `json:"payment_id,omitempty"`
	RefundID       string `json:"refund_id,omitempty"`
	IdempotencyKey string `json:"idempotency_key,omitempty"`
	// CaseID is the case people have it with, or would have but for a dry run.
	CaseID string `json:"case_id"`
	// AboutCaseID is the case whose refund it is about, when one is known.
	AboutCaseID string          `json:"about_case_id,omitempty"`
	Records     []FindingRecord `json:"records"`
	SeenAt      *time.Time      `json:"seen_at,omitempty"`
}

// FindingRecord is one of the records that disagree.
type FindingRecord struct {
	Source string  `json:"source"`
	Kind   string  `json:"kind"`
	ID     string  `json:"id,omitempty"`
	Amount *Amount `json:"amount,omitempty"`
	Status string  `json:"status,omitempty"`
}
