package broker

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/nats-io/nkeys"

	"github.com/amends-dev/amends/internal/bus"
	"github.com/amends-dev/amends/internal/roles"
)

// Provisioner and Operator are the identities in the streams' account beside
// which no other exists. The operator can do everything there; it exists only
// where Options ask for it.
const (
	Provisioner roles.Service = "provision"
	Operator    roles.Service = "operator"
)

// ProvisionGrants are the API calls of the provisioner.
var ProvisionGrants = []string{
	"$JS.API.INFO",
	"$JS.API.STREAM.CREATE.*", "$JS.API.STREAM.UPDATE.*", "$JS.API.STREAM.INFO.*", "$JS.API.STREAM.NAMES",
	"$JS.API.CONSUMER.CREATE.*.>", "$JS.API.CONSUMER.INFO.*.*", "$JS.API.CONSUMER.NAMES.*",
}

// Settings are what the manifest does not say about a broker.
type Settings struct {
	Name string
	Host string
	// Port 0 takes a free one.
	Port     int
	StoreDir string
	// SyncAlways puts a synced stream's message on disk before it is
	// acknowledged. Without it that takes up to two minutes.
	SyncAlways bool
	// Keys are the public NKEYs of every service, of the provisioner, and of
	// the operator if there is to be one.
	Keys map[roles.Service]string
}

// Render gives the configuration text of a nats-server for the manifest.
func Render(m roles.Manifest, s Settings) (string, error) {
	if err := Check(m); err != nil {
		return "", fmt.Errorf("render the broker configuration: %w", err)
	}
	if err := s.check(m); err != nil {
		return "", fmt.Errorf("render the broker configuration: %w", err)
	}
	port := s.Port
	if port == 0 {
		port = -1
	}
	sync := "2m" // quoted: bare, the m is read as a million
	if s.SyncAlways {
		sync = "always"
	}
	var w writer
	w.line("server_name: %q", s.Name)
	w.line("listen: %q", fmt.Sprintf("%s:%d", s.Host, port))
	w.line("max_payload: 1MB")
	w.line("no_sublist_cache: true") // subjects end in a case: a cache of matches would only miss
	w.block("jetstream", func() {
		w.line("store_dir: %q", s.StoreDir)
		w.line("sync_interval: %q", sync)
	})
	w.block("accounts", func() {
		w.block("JS", func() {
			w.line("jetstream: enabled")
			w.list("users", func() {
				w.user(s.Keys[Provisioner], ProvisionGrants, []string{bus.InboxPrefix(Provisioner) + ".>"})
				if key, ok := s.Keys[Operator]; ok {
					w.line("{ nkey: %s }", key)
				}
			})
			w.list("exports", func() {
				for _, i := range services(m) {
					w.line("{ service: %q, accounts: [APP]%s }", i.subject, i.response)
				}
				for _, live := range republished(m) {
					w.line("{ stream: %q, accounts: [APP] }", live)
				}
			})
		})
		w.block("APP", func() {
			w.list("imports", func() {
				for _, i := range services(m) {
					w.line("{ service: { account: JS, subject: %q }%s }", i.subject, i.to)
				}
				for _, live := range republished(m) {
					w.line("{ stream: { account: JS, subject: %q } }", live)
				}
			})
			w.list("users", func() {
				for _, r := range m.Roles {
					w.user(s.Keys[r.Service], bus.PublishGrants(m, r, bus.DefaultAPIPrefix), bus.SubscribeGrants(r))
				}
			})
		})
	})
	return w.String(), nil
}

func (s Settings) check(m roles.Manifest) error {
	var errs []error
	if s.StoreDir == "" || s.Host == "" || s.Name == "" {
		errs = append(errs, errors.New("name, host and store directory are needed"))
	}
	need := []roles.Service{Provisioner}
	for _, r := range m.Roles {
		need = append(need, r.Service)
	}
	if _, ok := s.Keys[Operator]; ok {
		need = append(need, Operator)
	}
	seen := make(map[string]roles.Service)
	for _, id := range need {
		key := s.Keys[id]
		if !nkeys.IsValidPublicUserKey(key) {
			errs = append(errs, fmt.Errorf("%s has no public NKEY", id))
		} else if other, dup := seen[key]; dup {
			errs = append(errs, fmt.Errorf("%s and %s have the same NKEY", id, other))
		}
		seen[key] = id
	}
	return errors.Join(errs...)
}

// imported is one subject of the streams' account that the services' account
// can reach.
type imported struct{ subject, to, response string }

// services lists what some service is granted, each once.
func services(m roles.Manifest) []imported {
	var out []imported
	for _, r := range m.Roles {
		for _, subj := range bus.PublishGrants(m, r, bus.DefaultAPIPrefix) {
			i := imported{subject: subj}
			if call, ok := strings.CutPrefix(subj, bus.DefaultAPIPrefix+"."); ok {
				i.subject, i.to = "$JS.API."+call, fmt.Sprintf(", to: %q", subj)
				if strings.HasPrefix(call, "CONSUMER.MSG.NEXT.") {
					i.response = ", response_type: stream" // many messages answer one request
				}
			}
			if !slices.Contains(out, i) {
				out = append(out, i)
			}
		}
	}
	return out
}

// writer indents configuration text.
type writer struct {
	strings.Builder
	depth int
}

func (w *writer) line(format string, args ...any) {
	w.WriteString(strings.Repeat("  ", w.depth))
	fmt.Fprintf(w, format, args...)
	w.WriteByte('\n')
}

func (w *writer) block(name string, body func()) { w.nest(name+" {", "}", body) }

func (w *writer) list(name string, body func()) { w.nest(name+": [", "]", body) }

func (w *writer) nest(head, tail string, body func()) {
	w.line("%s", head)
	w.depth++
	body()
	w.depth--
	w.line("%s", tail)
}

func (w *writer) user(key string, publish, subscribe []string) {
	w.block("", func() {
		w.line("nkey: %s", key)
		w.block("permissions", func() {
			w.list("publish", func() { w.strings(publish) })
			w.list("subscribe", func() { w.strings(subscribe) })
		})
	})
}

func (w *writer) strings(list []string) {
	for _, s := range list {
		w.line("%q", s)
	}
}
