package allinone

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"github.com/amends-dev/amends/internal/approval"
	"github.com/amends-dev/amends/internal/sandbox"
	"github.com/amends-dev/amends/internal/webhook"
)

// Names of the trial world: the founding request's own.
const (
	Tenant   = "acme-in"
	Customer = "cust_5519"
	Channel  = "web"
	// Approver and SecondApprover sign with keys of their own.
	Approver       = "maya"
	SecondApprover = "ravi"
	// StaffMember signs in at the console and has a custodian's key.
	StaffMember = "sam"
)

// Trial are the credentials of the trial world.
type Trial struct {
	// ChannelToken posts for Customer and may name its cases; AnyToken posts
	// for the customer it names.
	ChannelToken, AnyToken string
	StaffToken             string
	// WebhookSecret verifies the webhooks of Channel, ProviderSecret those of
	// the provider.
	WebhookSecret, ProviderSecret string
	// GuestTokens post for the customers they name, one for each guest.
	GuestTokens map[Guest]string
	// Keys are the signing keys of approvers and custodian, KeyFiles where they
	// lie.
	Keys     map[string]approval.Key25519
	KeyFiles map[string]string
}

// files are the desk's secrets and keys, one file each, 0600.
type files struct {
	dir   string
	made  map[string]string
	trial Trial
	// tenants are those staff and approvers are entitled for.
	tenants []string
	limits  []approval.Limit
}

// secretNames are the random tokens a desk has.
var secretNames = []string{
	"channel-web", "channel-any", "staff-sam", "payments-verify-owner", "payments-read-investigator",
	"payments-read-verifier", "payments-refund-write", "payments-admin",
}

// webhookSecretNames are the keys that webhooks are signed with.
var webhookSecretNames = []string{"webhook-web", "webhook-payments"}

// trialLimits are what a trial approver may approve at once.
var trialLimits = []approval.Limit{{Currency: "INR", Minor: 100_000_000}, {Currency: "JPY", Minor: 1_000_000}}

func openFiles(o Options) (*files, error) {
	dir := o.Dir
	f := &files{
		dir: dir, made: map[string]string{}, tenants: []string{Tenant}, limits: o.ApproverLimits,
		trial: Trial{Keys: map[string]approval.Key25519{}, KeyFiles: map[string]string{}, GuestTokens: map[Guest]string{}},
	}
	if f.limits == nil {
		f.limits = trialLimits
	}
	for _, sub := range []string{"broker", "seeds", "secrets", "approvers", "sandbox"} {
		if err := os.MkdirAll(filepath.Join(dir, sub), 0o700); err != nil {
			return nil, fmt.Errorf("desk directory: %w", err)
		}
	}
	key := func() ([]byte, error) {
		raw := make([]byte, 32)
		_, _ = rand.Read(raw) // never fails
		return []byte(webhook.FormatSecret(raw)), nil
	}
	if err := errors.Join(f.make(secretNames, trialToken), f.make(webhookSecretNames, key)); err != nil {
		return nil, err
	}
	f.trial.WebhookSecret, f.trial.ProviderSecret = f.secret("webhook-web"), f.secret("webhook-payments")
	f.trial.ChannelToken, f.trial.AnyToken, f.trial.StaffToken = f.secret("channel-web"), f.secret("channel-any"), f.secret("staff-sam")
	for i, g := range o.Guests {
		token, err := keep(f.secretFile("channel-guest-"+strconv.Itoa(i)), trialToken)
		if err != nil {
			return nil, fmt.Errorf("secret of guest %s: %w", g.Channel, err)
		}
		f.trial.GuestTokens[g] = string(token)
		if !slices.Contains(f.tenants, g.Tenant) {
			f.tenants = append(f.tenants, g.Tenant)
		}
	}
	if err := f.approvers(); err != nil {
		return nil, err
	}
	return f, nil
}

// make finds secrets in their files, or makes them.
func (f *files) make(names []string, create func() ([]byte, error)) error {
	for _, name := range names {
		value, err := keep(f.secretFile(name), create)
		if err != nil {
			return fmt.Errorf("secret %s: %w", name, err)
		}
		f.made[name] = string(value)
	}
	return nil
}
func trialToken() ([]byte, error) { return []byte("trial-" + rand.Text()), nil }

// approvers makes the keys of the trial's approvers and custodian and the
// registry that lists them.
func (f *files) approvers() error {
	var people []approval.Approver
	for _, who := range []string{Approver, SecondApprover, StaffMember} {
		file := filepath.Join(f.dir, "approvers", who+".pem")
		text, err := keep(file, func() ([]byte, error) {
			k, err := approval.NewKey(who, who+"-1", rand.Reader)
			if err != nil {
				return nil, err
			}
			return k.Marshal()
		})
		if err != nil {
			return fmt.Errorf("approver %s: %w", who, err)
		}
		k, err := approval.ParseKey(text)
		if err != nil {
			return fmt.Errorf("approver %s: %w", who, err)
		}
		f.trial.Keys[who], f.trial.KeyFiles[who] = k, file
		role := approval.RoleApprover
		if who == StaffMember {
			role = approval.RoleCustodian
		}
		people = append(people, approval.Approver{
			ID: who, Roles: []string{role}, Tenants: f.tenants, Limits: f.limits,
			Keys: []approval.PublicKey{k.PublicEntry(time.Unix(0, 0))},
		})
	}
	_, err := keep(f.registry(), func() ([]byte, error) {
		r, err := approval.NewRegistry("trial-1", people...)
		if err != nil {
			return nil, err
		}
		return r.Marshal()
	})
	return err
}

func (f *files) registry() string              { return filepath.Join(f.dir, "approvers", "registry.yaml") }
func (f *files) secretFile(name string) string { return filepath.Join(f.dir, "secrets", name) }
func (f *files) secret(name string) string     { return f.made[name] }
func (f *files) hash(name string) string       { return sha(f.made[name]) }
func (f *files) sandboxKeys() (k []sandbox.Key) {
	for name, scope := range map[string]sandbox.Scope{
		"payments-verify-owner": sandbox.ScopeVerifyOwner, "payments-read-investigator": sandbox.ScopeRead, "payments-read-verifier": sandbox.ScopeRead,
		"payments-refund-write": sandbox.ScopeRefundWrite, "payments-admin": sandbox.ScopeAdmin,
	} {
		k = append(k, sandbox.Key{Name: name, Scope: scope, SHA256: sandbox.HashKey(f.secret(name))})
	}
	return k
}

// keep gives a file's content, and makes the file first when it is not there.
func keep(path string, create func() ([]byte, error)) ([]byte, error) {
	data, err := os.ReadFile(path) //nolint:gosec // a file of the desk's own directory
	if err == nil || !errors.Is(err, os.ErrNotExist) {
		return data, err
	}
	if data, err = create(); err != nil {
		return nil, err
	}
	return data, os.WriteFile(path, data, 0o600)
}

func sha(token string) string {
	sum := sha256.Sum256([]byte(token))
	return hex.EncodeToString(sum[:])
}
