package main

import (
	"errors"
	"fmt"
	"os"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/amends-dev/amends/internal/approval"
	"github.com/amends-dev/amends/internal/ident"
)

// approverCmd is `amends approver`.
type approverCmd struct {
	New approverNewCmd `cmd:"" help:"Make a key file and print its entry for the approver registry."`
}

// approverNewCmd is `amends approver new`.
type approverNewCmd struct {
	ID    string `name:"id" required:"" help:"Approver id."`
	KeyID string `name:"key-id" required:"" help:"Id of the key among the approver's keys."`
	Out   string `required:"" type:"path" placeholder:"FILE" help:"Where to write the key; must not exist."`
	output
}

// registryEntry is an approver with the new key. Roles, tenants and limits are
// left for whoever keeps the registry: nobody grants them to themselves.
type registryEntry struct {
	ID      string        `yaml:"id" json:"id"`
	Roles   []string      `yaml:"roles" json:"roles"`
	Tenants []string      `yaml:"tenants" json:"tenants"`
	Limits  []string      `yaml:"limits" json:"limits"`
	Keys    []registryKey `yaml:"keys" json:"keys"`
}

type registryKey struct {
	ID        string    `yaml:"id" json:"id"`
	Public    string    `yaml:"public" json:"public"`
	NotBefore time.Time `yaml:"not_before" json:"not_before"`
}

// AfterApply checks the ids.
func (c *approverNewCmd) AfterApply() error { return ident.Tokens("--id", c.ID, "--key-id", c.KeyID) }

// Run makes the key.
func (c *approverNewCmd) Run(t *terminal) error {
	key, err := approval.NewKey(c.ID, c.KeyID, t.entropy)
	if err != nil {
		return err
	}
	data, err := key.Marshal()
	if err != nil {
		return err
	}
	if err := writeNew(c.Out, data); err != nil {
		return fmt.Errorf("write the key: %w", err)
	}
	public := key.PublicEntry(t.now())
	entry := registryEntry{
		ID: c.ID, Roles: []string{}, Tenants: []string{}, Limits: []string{},
		Keys: []registryKey{{ID: public.ID, Public: public.Public, NotBefore: public.NotBefore}},
	}
	if c.JSON {
		return t.writeJSON(entry)
	}
	text, err := yaml.Marshal([]registryEntry{entry})
	if err != nil {
		return fmt.Errorf("encode the registry entry: %w", err)
	}
	_, err = t.out.Write(text)
	return err
}

// writeNew writes a file that must not exist yet and that only its owner may
// read, and sees it on disk.
func writeNew(path string, data []byte) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	return errors.Join(err, f.Sync(), f.Close())
}
