package tools

import (
	"fmt"
	"time"

	"github.com/amends-dev/amends/internal/roles"
	amendsv1 "github.com/amends-dev/amends/proto/amends/v1"
)

// Registry holds what one service may call.
type Registry struct {
	service roles.Service
	prefix  string
	grants  map[string]spec
	now     func() time.Time
}

// New gives the registry of a service, from the manifest's grants. now is the
// local clock; only differences of it count.
func New(m roles.Manifest, s roles.Service, now func() time.Time) (*Registry, error) {
	role, ok := m.Role(s)
	if !ok {
		return nil, fmt.Errorf("tool registry: the manifest has no service %q", s)
	}
	r := &Registry{service: s, prefix: role.CallPrefix, grants: make(map[string]spec, len(role.Tools)), now: now}
	for _, name := range role.Tools {
		tool, ok := specs[name]
		if !ok {
			return nil, fmt.Errorf("tool registry: tool %q of %s has no schema", name, s)
		}
		r.grants[name] = tool
	}
	if len(r.grants) > 0 && r.prefix == "" {
		return nil, fmt.Errorf("tool registry: %s has tools and no call prefix", s)
	}
	return r, nil
}

// Open begins the calls of one attempt of a task. suffix names the case in
// call ids (ident.Suffix); at is the broker's time of the task's message.
func (r *Registry) Open(c *amendsv1.TaskContract, suffix string, attempt uint32, at time.Time) *Session {
	return &Session{registry: r, contract: c, suffix: suffix, attempt: attempt, at: at, opened: r.now()}
}
