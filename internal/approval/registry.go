package approval

import (
	"bytes"
	"crypto/ed25519"
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/amends-dev/amends/internal/ident"
	"github.com/amends-dev/amends/internal/money"
	"github.com/amends-dev/amends/internal/subject"
	amendsv1 "github.com/amends-dev/amends/proto/amends/v1"
)

// RoleApprover is the role an approver needs.
const RoleApprover = "refund-approver"

// Registry lists who may approve what, and with which keys. The executor reads
// it from a file of its own; no service can change it over the bus.
type Registry struct {
	Version   string     `yaml:"version"`
	Approvers []Approver `yaml:"approvers"`
}

// Approver is a person with one or more keys.
type Approver struct {
	ID      string   `yaml:"id"`
	Roles   []string `yaml:"roles"`
	Tenants []string `yaml:"tenants"`
	// Limits bound the total of one action per currency, inclusive. A currency
	// that is not listed may not be approved by this person.
	Limits []Limit     `yaml:"limits"`
	Keys   []PublicKey `yaml:"keys"`
}

// Limit is an amount in minor units of a currency.
type Limit struct {
	Currency string `yaml:"currency"`
	Minor    int64  `yaml:"minor"`
}

// PublicKey is one Ed25519 key and the time it is valid: from NotBefore up to,
// not including, NotAfter. Two valid keys of one person overlap in a rotation.
type PublicKey struct {
	ID        string    `yaml:"id"`
	Public    string    `yaml:"public"`
	NotBefore time.Time `yaml:"not_before"`
	NotAfter  time.Time `yaml:"not_after"`
	Revoked   bool      `yaml:"revoked"`

	public ed25519.PublicKey
}

// ParseRegistry reads and checks a registry; unknown keys are refused.
func ParseRegistry(data []byte) (*Registry, error) {
	dec := yaml.NewDecoder(bytes.NewReader(data))
	dec.KnownFields(true)
	var r Registry
	if err := dec.Decode(&r); err != nil {
		return nil, fmt.Errorf("approver registry: %w", err)
	}
	if err := r.check(); err != nil {
		return nil, fmt.Errorf("approver registry: %w", err)
	}
	return &r, nil
}

// NewRegistry makes a registry of approvers and checks it.
func NewRegistry(version string, approvers ...Approver) (*Registry, error) {
	r := &Registry{Version: version, Approvers: approvers}
	if err := r.check(); err != nil {
		return nil, fmt.Errorf("approver registry: %w", err)
	}
	return r, nil
}

// Marshal gives the registry's file form.
func (r *Registry) Marshal() ([]byte, error) {
	data, err := yaml.Marshal(r)
	if err != nil {
		return nil, fmt.Errorf("encode approver registry: %w", err)
	}
	return data, nil
}

func (r *Registry) check() error {
	if r.Version == "" {
		return errors.New("version is missing")
	}
	ids, owners := map[string]bool{}, map[string]string{}
	for i := range r.Approvers {
		a := &r.Approvers[i]
		if err := ident.Token(a.ID); err != nil {
			return fmt.Errorf("approver %q: %w", a.ID, err)
		}
		if ids[a.ID] {
			return fmt.Errorf("approver %s is listed twice", a.ID)
		}
		ids[a.ID] = true
		for _, t := range a.Tenants {
			if err := subject.CheckTenant("tenants", t); err != nil {
				return fmt.Errorf("approver %s: %w", a.ID, err)
			}
		}
		for _, l := range a.Limits {
			if err := money.Valid(money.New(l.Minor, l.Currency)); err != nil {
				return fmt.Errorf("approver %s: limit: %w", a.ID, err)
			}
		}
		keys := map[string]bool{}
		for j := range a.Keys {
			k := &a.Keys[j]
			raw, err := base64.StdEncoding.DecodeString(k.Public)
			if err != nil || len(raw) != ed25519.PublicKeySize {
				return fmt.Errorf("approver %s: key %q is not an Ed25519 public key in base64", a.ID, k.ID)
			}
			if err := ident.Token(k.ID); err != nil {
				return fmt.Errorf("approver %s: key %q: %w", a.ID, k.ID, err)
			}
			if keys[k.ID] { // which of them a signature names would be a guess
				return fmt.Errorf("approver %s: key %s is listed twice", a.ID, k.ID)
			}
			if owner, ok := owners[string(raw)]; ok && owner != a.ID { // one person would count as two
				return fmt.Errorf("approver %s: key %s is also a key of %s", a.ID, k.ID, owner)
			}
			k.public, keys[k.ID], owners[string(raw)] = raw, true, a.ID
		}
	}
	return nil
}

func (r *Registry) find(approver, key string) (Approver, PublicKey, error) {
	for _, a := range r.Approvers {
		if a.ID != approver {
			continue
		}
		for _, k := range a.Keys {
			if k.ID == key {
				return a, k, nil
			}
		}
		return Approver{}, PublicKey{}, refuse(ReasonUnknownKey, "key %q of %s", key, approver)
	}
	return Approver{}, PublicKey{}, refuse(ReasonUnknownApprover, "approver %q", approver)
}

// verify checks that a text was signed with a valid key of somebody listed.
func (r *Registry) verify(person, keyID, text string, signature []byte, at time.Time) (Approver, error) {
	who, key, err := r.find(person, keyID)
	if err != nil {
		return Approver{}, err
	}
	if !key.validAt(at) {
		return Approver{}, refuse(ReasonKeyRetired, "key %s is not valid at %s", keyID, at.UTC().Format(time.RFC3339))
	}
	if len(signature) != ed25519.SignatureSize || !ed25519.Verify(key.public, []byte(text), signature) {
		return Approver{}, refuse(ReasonSignature, "signature does not match")
	}
	return who, nil
}

func (k PublicKey) validAt(at time.Time) bool {
	return !k.Revoked && !at.Before(k.NotBefore) && (k.NotAfter.IsZero() || at.Before(k.NotAfter))
}

func (a Approver) may(action *amendsv1.ActionRecord) error {
	if !slices.Contains(a.Roles, RoleApprover) {
		return refuse(ReasonRole, "%s is not a %s", a.ID, RoleApprover)
	}
	if !slices.Contains(a.Tenants, action.GetTenant()) {
		return refuse(ReasonTenant, "%s may not approve for %s", a.ID, action.GetTenant())
	}
	total, err := Total(action)
	if err != nil {
		return refuse(ReasonMalformed, "%w", err)
	}
	for _, l := range a.Limits {
		if l.Currency == total.GetCurrency() && total.GetMinor() <= l.Minor {
			return nil
		}
	}
	return refuse(ReasonLimit, "%d %s is above the limit of %s", total.GetMinor(), total.GetCurrency(), a.ID)
}
