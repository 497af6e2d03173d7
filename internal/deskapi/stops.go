package deskapi

import "time"

// StopsPath is where staff see the emergency stop, set it and release it.
const StopsPath = "/v1/stops"

// ScopeAll is the scope of the switch that stops every tenant.
const ScopeAll = "all"

// MaxStopReason bounds the reason of a switch, in characters.
const MaxStopReason = 256

// StopRequest is the body that sets a switch or releases it.
type StopRequest struct {
	// Scope is a tenant, or ScopeAll.
	Scope string `json:"scope"`
	// Stopped must be there: true stops, false resumes.
	Stopped *bool  `json:"stopped"`
	Reason  string `json:"reason"`
	// Sequence is that of the switch the caller saw; the request counts only
	// while it is the last. Resuming needs it; a stop without one counts over
	// whatever there is.
	Sequence *uint64 `json:"sequence,omitempty"`
}

// Stop is one switch of the emergency stop.
type Stop struct {
	Scope   string `json:"scope"`
	Stopped bool   `json:"stopped"`
	// By, Reason and At say who touched it last and why; absent when nobody
	// ever did.
	By     string     `json:"by,omitempty"`
	Reason string     `json:"reason,omitempty"`
	At     *time.Time `json:"at,omitempty"`
	// Sequence counts up with every change of any switch; 0 when nobody ever
	// touched this one.
	Sequence uint64 `json:"sequence"`
	// Unreadable: what is stored is no switch. It counts as a stop.
	Unreadable bool `json:"unreadable,omitempty"`
}

// Stops are the switches a staff member may see.
type Stops struct {
	Stops []Stop `json:"stops"`
}

// StopChanged answers a change of a switch.
type StopChanged struct {
	Stop
	// Replaced is the switch as it was before.
	Replaced *Stop `json:"replaced,omitempty"`
	// Audited: the audit log holds who did it and why. A stop goes on without.
	Audited bool `json:"audited"`
}
