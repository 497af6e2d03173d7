package readmodel

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/amends-dev/amends/internal/ident"
)

var (
	// ErrNotReady: not every stored view has been put yet.
	ErrNotReady = errors.New("the read model is not ready")
	// ErrCursor marks a cursor this package did not give out.
	ErrCursor = errors.New("not a cursor of a list")
)

// Entry is what lists show of a case at one version.
type Entry struct {
	Tenant     string    `json:"tenant"`
	CaseID     string    `json:"case_id"`
	RequestID  string    `json:"request_id"`
	CustomerID string    `json:"customer_id"`
	OrderID    string    `json:"order_id,omitempty"`
	State      string    `json:"state"`
	Version    uint64    `json:"version"`
	Closed     bool      `json:"closed"`
	OpenedAt   time.Time `json:"opened_at"`
	UpdatedAt  time.Time `json:"updated_at"`
}

// Model is the read model of all tenants on one Redis. It is safe for concurrent
// use.
type Model struct {
	redis  redis.UniversalClient
	prefix string
}

// New gives the model whose keys begin with prefix.
func New(r redis.UniversalClient, prefix string) *Model {
	return &Model{redis: r, prefix: "{" + prefix + "}:"}
}

func (m *Model) caseKey(tenant, id string) string { return m.prefix + tenant + ":case:" + id }
func (m *Model) customerKey(tenant, id string) string {
	return m.prefix + tenant + ":customer:" + id
}
func (m *Model) orderKey(tenant, id string) string { return m.prefix + tenant + ":order:" + id }
func (m *Model) markerKey() string                 { return m.prefix + "marker" }

// put writes a case and its places in the lists, unless the same or a newer
// version is there. A case that has changed its order stays in the list of the
// old one and is left out when that is read.
var put = redis.NewScript(`
local have = redis.call('HGET', KEYS[1], 'v')
if have and tonumber(have) >= tonumber(ARGV[1]) then return 0 end
redis.call('HSET', KEYS[1], 'v', ARGV[1], 'e', ARGV[2])
redis.call('ZADD', KEYS[2], 0, ARGV[3])
if KEYS[3] then redis.call('ZADD', KEYS[3], 0, ARGV[3]) end
return 1
`)

// Check says what keeps an entry out of the model.
func (e Entry) Check() error {
	if err := ident.Tokens("tenant", e.Tenant, "case_id", e.CaseID, "customer_id", e.CustomerID); err != nil {
		return err
	}
	if e.OrderID == "" {
		return nil
	}
	return ident.Tokens("order_id", e.OrderID)
}

// Put takes in a case at a version; an older one than is known changes nothing.
func (m *Model) Put(ctx context.Context, e Entry) error {
	if err := e.Check(); err != nil {
		return fmt.Errorf("put a case: %w", err)
	}
	keys := []string{m.caseKey(e.Tenant, e.CaseID), m.customerKey(e.Tenant, e.CustomerID)}
	if e.OrderID != "" {
		keys = append(keys, m.orderKey(e.Tenant, e.OrderID))
	}
	data, err := json.Marshal(e)
	if err != nil {
		return fmt.Errorf("put a case: encode: %w", err)
	}
	if err := put.Run(ctx, m.redis, keys, e.Version, data, placeOf(e)).Err(); err != nil {
		return fmt.Errorf("put a case: %w", err)
	}
	return nil
}
