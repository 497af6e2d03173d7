package broker_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nkeys"
	"go.uber.org/goleak"

	"github.com/amends-dev/amends/internal/broker"
	"github.com/amends-dev/amends/internal/roles"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func keys(tb testing.TB, m roles.Manifest) map[roles.Service]string {
	tb.Helper()
	out := make(map[roles.Service]string)
	for _, id := range append([]roles.Service{broker.Provisioner}, services(m)...) {
		kp, err := nkeys.CreateUser()
		if err != nil {
			tb.Fatal(err)
		}
		if out[id], err = kp.PublicKey(); err != nil {
			tb.Fatal(err)
		}
	}
	return out
}

func services(m roles.Manifest) (out []roles.Service) {
	for _, r := range m.Roles {
		out = append(out, r.Service)
	}
	return out
}

// B49: whether an acknowledged write is on disk never depends on a default.
func TestSyncIntervalIsAlwaysSaidB49(t *testing.T) {
	t.Parallel()
	m := roles.Desk()
	for always, want := range map[bool]string{true: `sync_interval: "always"`, false: `sync_interval: "2m"`} {
		text, err := broker.Render(m, broker.Settings{
			Name: "desk", Host: "127.0.0.1", StoreDir: "/data", SyncAlways: always, Keys: keys(t, m),
		})
		if err != nil {
			t.Fatal(err)
		}
		if strings.Count(text, "sync_interval") != 1 || !strings.Contains(text, want) {
			t.Errorf("sync always %t: want %s in\n%s", always, want, text)
		}
	}
}

func TestRenderRefusesIncompleteSettings(t *testing.T) {
	t.Parallel()
	m := roles.Desk()
	good := broker.Settings{Name: "desk", Host: "h", StoreDir: "/data", Keys: keys(t, m)}
	for name, change := range map[string]func(*broker.Settings){
		"no store":        func(s *broker.Settings) { s.StoreDir = "" },
		"no host":         func(s *broker.Settings) { s.Host = "" },
		"no name":         func(s *broker.Settings) { s.Name = "" },
		"a missing key":   func(s *broker.Settings) { delete(s.Keys, roles.Composer) },
		"no provisioner":  func(s *broker.Settings) { delete(s.Keys, broker.Provisioner) },
		"a seed as a key": func(s *broker.Settings) { s.Keys[roles.Composer] = "SUAEXAMPLE" },
		"a shared key":    func(s *broker.Settings) { s.Keys[roles.Composer] = s.Keys[roles.Verifier] },
	} {
		s := good
		s.Keys = make(map[roles.Service]string)
		for k, v := range good.Keys {
			s.Keys[k] = v
		}
		change(&s)
		if _, err := broker.Render(m, s); err == nil {
			t.Errorf("%s: rendered", name)
		}
	}
}

// B54: a rule that does nothing, or more than it says, is found before the
// broker starts.
func TestCheckFindsRulesThatDoNotHoldB54(t *testing.T) {
	t.Parallel()
	if err := broker.Check(roles.Desk()); err != nil {
		t.Fatalf("the desk's own manifest: %v", err)
	}
	role := func(m *roles.Manifest, s roles.Service) *roles.Role {
		for i := range m.Roles {
			if m.Roles[i].Service == s {
				return &m.Roles[i]
			}
		}
		return nil
	}
	for name, change := range map[string]func(*roles.Manifest){
		"half a wildcard":                func(m *roles.Manifest) { m.Streams[0].Subjects = []string{"intake.name-*.*.*"} },
		"everything below":               func(m *roles.Manifest) { role(m, roles.Composer).Publishes = []string{"result.composer.>"} },
		"an empty token":                 func(m *roles.Manifest) { role(m, roles.Composer).Publishes = []string{"result..x.y"} },
		"a subject of no stream":         func(m *roles.Manifest) { role(m, roles.Composer).Publishes = []string{"other.*.*"} },
		"wider than its stream":          func(m *roles.Manifest) { role(m, roles.Composer).Publishes = []string{"*.*.*.*"} },
		"a writer nobody named":          func(m *roles.Manifest) { role(m, roles.Composer).Publishes = []string{"case.*.*"} },
		"a named writer without a grant": func(m *roles.Manifest) { m.Streams[1].Writers = append(m.Streams[1].Writers, roles.Verifier) },
		"schedules with two writers": func(m *roles.Manifest) {
			for i := range m.Streams {
				if m.Streams[i].Schedules {
					m.Streams[i].Writers = append(m.Streams[i].Writers, roles.Composer)
				}
			}
			r := role(m, roles.Composer)
			r.Publishes = append(r.Publishes, "timer.*.*")
		},
		"a consumer of no stream":      func(m *roles.Manifest) { m.Consumers[0].Stream = "OTHER" },
		"a consumer beside its stream": func(m *roles.Manifest) { m.Consumers[0].Filter = "case.*.*" },
		"a consumer of nobody":         func(m *roles.Manifest) { m.Consumers[0].Service = "nobody" },
		"a consumer without AckWait":   func(m *roles.Manifest) { m.Consumers[0].AckWait = 0 },
		"a read of no stream":          func(m *roles.Manifest) { role(m, roles.Verifier).LeaderReads = []string{"OTHER"} },
		"a direct read beside its stream": func(m *roles.Manifest) {
			role(m, roles.Verifier).DirectReads = []roles.DirectRead{{Stream: roles.StreamCases, Filter: "view.*.*"}}
		},
		"a watch of no consumer": func(m *roles.Manifest) { role(m, roles.Verifier).Watches = []string{"other"} },
		"a watch of one's own":   func(m *roles.Manifest) { role(m, roles.Gateway).Watches = []string{roles.ConsumerViews} },
		"live copies of nothing": func(m *roles.Manifest) { role(m, roles.Verifier).Live = []string{"live.case.*.*"} },
		"a republish prefix without its dot": func(m *roles.Manifest) {
			for i := range m.Streams {
				if m.Streams[i].RepublishTo != "" {
					m.Streams[i].RepublishTo = "live"
				}
			}
		},
		"a service name that is no token": func(m *roles.Manifest) { m.Roles[0].Service = "gate.way" },
	} {
		m := roles.Desk()
		change(&m)
		if err := broker.Check(m); err == nil {
			t.Errorf("%s: passed", name)
		}
	}
}

func TestServerKeepsItsIdentitiesAndAddress(t *testing.T) {
	t.Parallel()
	seedDir := filepath.Join(t.TempDir(), "seeds")
	o := broker.Options{Manifest: roles.Desk(), StoreDir: t.TempDir(), SeedDir: seedDir, SyncAlways: true}
	first, err := broker.Start(o)
	if err != nil {
		t.Fatal(err)
	}
	url, seed, text := first.URL(), first.Seed(roles.Composer), first.Config()
	first.Shutdown()

	if first.Seed(broker.Operator) != nil {
		t.Error("there is an operator nobody asked for")
	}
	for _, id := range append(services(o.Manifest), broker.Provisioner) {
		info, err := os.Stat(broker.SeedFile(seedDir, id))
		if err != nil {
			t.Fatal(err)
		}
		if info.Mode().Perm() != 0o600 {
			t.Errorf("seed of %s has mode %v", id, info.Mode().Perm())
		}
		if strings.Contains(text, string(first.Seed(id))) {
			t.Errorf("the configuration holds the seed of %s", id)
		}
	}
	if info, err := os.Stat(seedDir); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("seed directory: %v, %v", info.Mode().Perm(), err)
	}

	o.Port = first.Port()
	second, err := broker.Start(o)
	if err != nil {
		t.Fatal(err)
	}
	defer second.Shutdown()
	if second.URL() != url || !bytes.Equal(second.Seed(roles.Composer), seed) {
		t.Errorf("restarted at %s, was %s; same seed: %t", second.URL(), url, bytes.Equal(second.Seed(roles.Composer), seed))
	}
}

func TestNobodyConnectsWithoutAnIdentity(t *testing.T) {
	t.Parallel()
	s, err := broker.Start(broker.Options{Manifest: roles.Desk(), StoreDir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Shutdown()
	stranger, err := nkeys.CreateUser()
	if err != nil {
		t.Fatal(err)
	}
	key, err := stranger.PublicKey()
	if err != nil {
		t.Fatal(err)
	}
	for name, opt := range map[string]nats.Option{
		"nothing":      nats.Name("x"),
		"a password":   nats.UserInfo("composer", ""),
		"another NKEY": nats.Nkey(key, stranger.Sign),
	} {
		if nc, err := nats.Connect(s.URL(), opt); err == nil {
			nc.Close()
			t.Errorf("connected with %s", name)
		}
	}
}

func TestStartRefusals(t *testing.T) {
	t.Parallel()
	bad := roles.Desk()
	bad.Consumers[0].Stream = "OTHER"
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	garbage := t.TempDir()
	if err := os.WriteFile(broker.SeedFile(garbage, roles.Composer), []byte("not a seed"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, o := range map[string]broker.Options{
		"a bad manifest":            {Manifest: bad, StoreDir: t.TempDir()},
		"no store":                  {Manifest: roles.Desk()},
		"a file for the seeds":      {Manifest: roles.Desk(), StoreDir: t.TempDir(), SeedDir: file},
		"something that is no seed": {Manifest: roles.Desk(), StoreDir: t.TempDir(), SeedDir: garbage},
	} {
		if s, err := broker.Start(o); err == nil {
			s.Shutdown()
			t.Errorf("%s: started", name)
		}
	}
}
