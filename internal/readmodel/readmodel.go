package readmodel

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
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
	Tenant     string `json:"tenant"`
	CaseID     string `json:"case_id"`
	RequestID  string `json:"request_id"`
	CustomerID string `json:"customer_id"`
	OrderID    string `json:"order_id,omitempty"`
	State      string `json:"state"`
	// Queue is where people find the case while it is with them.
	Queue     string    `json:"queue,omitempty"`
	Version   uint64    `json:"version"`
	Closed    bool      `json:"closed"`
	OpenedAt  time.Time `json:"opened_at"`
	UpdatedAt time.Time `json:"updated_at"`
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
func (m *Model) waitingKey(tenant, state string) string {
	return m.prefix + tenant + ":waiting:" + state
}
func (m *Model) markerKey() string { return m.prefix + "marker" }

// put writes cases and their places in the lists, each unless the same or
// a newer version is there. Of each there are four keys and three values; one
// without an order has its customer's list twice, and one that waits for nobody
// its own key. A case that has changed its order stays in the list of the old
// one and is left out when that is read; the list in which it waited it leaves.
var put = redis.NewScript(`
for i = 1, #KEYS, 4 do
  local v = (i - 1) / 4 * 3 + 1
  local have = redis.call('HGET', KEYS[i], 'v')
  if not have or tonumber(have) < tonumber(ARGV[v]) then
    local waited = redis.call('HGET', KEYS[i], 'w')
    redis.call('HSET', KEYS[i], 'v', ARGV[v], 'e', ARGV[v+1], 'w', KEYS[i+3])
    redis.call('ZADD', KEYS[i+1], 0, ARGV[v+2])
    if KEYS[i+2] ~= KEYS[i+1] then redis.call('ZADD', KEYS[i+2], 0, ARGV[v+2]) end
    if waited and waited ~= KEYS[i+3] and waited ~= KEYS[i] then redis.call('ZREM', waited, ARGV[v+2]) end
    if KEYS[i+3] ~= KEYS[i] then redis.call('ZADD', KEYS[i+3], 0, ARGV[v+2]) end
  end
end
return 1
`)

// waits is the state in whose list of waiting cases an entry is: its own, but for
// what people have by the queue of reconciliation.
func (e Entry) waits() string {
	if e.State == "HUMAN_HANDOFF" && e.Queue == "reconciliation" {
		return "RECONCILING"
	}
	return e.State
}

// People are the states in which a case waits for staff.
var People = []string{"AWAITING_APPROVAL", "HUMAN_HANDOFF", "RECONCILING"}

// MaxPut bounds the cases of one Put.
const MaxPut = 128

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

// Put takes in cases at their versions, up to MaxPut; an older version than is
// known changes nothing.
func (m *Model) Put(ctx context.Context, entries ...Entry) error {
	if len(entries) > MaxPut {
		return fmt.Errorf("put %d cases: at most %d", len(entries), MaxPut)
	}
	keys, values := make([]string, 0, 4*len(entries)), make([]any, 0, 3*len(entries))
	for _, e := range entries {
		if err := e.Check(); err != nil {
			return fmt.Errorf("put a case: %w", err)
		}
		data, err := json.Marshal(e)
		if err != nil {
			return fmt.Errorf("put a case: encode: %w", err)
		}
		customer := m.customerKey(e.Tenant, e.CustomerID)
		order := customer
		if e.OrderID != "" {
			order = m.orderKey(e.Tenant, e.OrderID)
		}
		one := m.caseKey(e.Tenant, e.CaseID)
		waiting := one
		if slices.Contains(People, e.State) {
			waiting = m.waitingKey(e.Tenant, e.waits())
		}
		keys = append(keys, one, customer, order, waiting)
		values = append(values, e.Version, data, placeOf(e))
	}
	if err := put.Run(ctx, m.redis, keys, values...).Err(); err != nil {
		return fmt.Errorf("put cases: %w", err)
	}
	return nil
}
