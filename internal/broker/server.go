package broker

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"github.com/amends-dev/amends/internal/roles"
)

const (
	startPatience = 30 * time.Second
	defaultHost   = "127.0.0.1"
	defaultName   = "desk"
)

// Options say how to run an embedded broker.
type Options struct {
	Manifest roles.Manifest
	// StoreDir keeps the streams; a restart on it finds them again.
	StoreDir string
	// SeedDir keeps the identities' seeds, 0600. Without it they are made new
	// at each start and live in memory.
	SeedDir string
	// Host defaults to the loopback address. Port 0 takes a free one; to
	// restart at the same address, give the Port of the server before.
	Host       string
	Port       int
	SyncAlways bool
	// Operator adds an identity with every right in the streams' account, for
	// tests and for tools that inspect an embedded desk.
	Operator bool
	// Log gets the server's warnings and errors; nil discards them.
	Log *slog.Logger
}

// Server is a running embedded broker.
type Server struct {
	srv    *server.Server
	seeds  seeds
	config string
	url    string
	port   int
}

// Start renders the configuration and returns when the broker accepts
// connections.
func Start(o Options) (*Server, error) {
	ids := []roles.Service{Provisioner}
	if o.Operator {
		ids = append(ids, Operator)
	}
	for _, r := range o.Manifest.Roles {
		ids = append(ids, r.Service)
	}
	all, err := loadSeeds(o.SeedDir, ids)
	if err != nil {
		return nil, fmt.Errorf("start the broker: %w", err)
	}
	keys, err := all.public()
	if err != nil {
		return nil, fmt.Errorf("start the broker: %w", err)
	}
	if o.Host == "" {
		o.Host = defaultHost
	}
	text, err := Render(o.Manifest, Settings{
		Name: defaultName, Host: o.Host, Port: o.Port, StoreDir: o.StoreDir, SyncAlways: o.SyncAlways, Keys: keys,
	})
	if err != nil {
		return nil, fmt.Errorf("start the broker: %w", err)
	}
	opts := &server.Options{NoSigs: true}
	if err := opts.ProcessConfigString(text); err != nil {
		return nil, fmt.Errorf("start the broker: read the configuration: %w", err)
	}
	srv, err := server.NewServer(opts)
	if err != nil {
		return nil, fmt.Errorf("start the broker: %w", err)
	}
	if o.Log != nil {
		srv.SetLogger(logger{o.Log}, false, false)
	}
	srv.Start()
	if !srv.ReadyForConnections(startPatience) {
		srv.Shutdown()
		return nil, fmt.Errorf("start the broker: not ready after %s", startPatience)
	}
	if !srv.JetStreamEnabled() {
		srv.Shutdown()
		return nil, errors.New("start the broker: streams are not enabled; see its log")
	}
	out := &Server{srv: srv, seeds: all, config: text, url: srv.ClientURL()}
	if a, ok := srv.Addr().(*net.TCPAddr); ok {
		out.port = a.Port
	}
	return out, nil
}

// URL is where clients connect.
func (s *Server) URL() string { return s.url }

// Port is the port of the URL, also after Shutdown.
func (s *Server) Port() int { return s.port }

// InProcessConn gives a connection without a socket. It needs a credential like
// any other and ends with this server.
func (s *Server) InProcessConn() (net.Conn, error) { return s.srv.InProcessConn() }

// Seed is the NKEY seed of a service, the Provisioner or the Operator; nil if
// there is no such identity.
func (s *Server) Seed(id roles.Service) []byte { return s.seeds[id] }

// Config is the configuration text the broker runs on; it holds no secrets.
func (s *Server) Config() string { return s.config }

// Shutdown stops the broker and returns when its stores are closed.
func (s *Server) Shutdown() {
	s.srv.Shutdown()
	s.srv.WaitForShutdown()
}

// logger passes the server's lines on. Its format strings are not ours, so the
// line is an attribute.
type logger struct{ log *slog.Logger }

func (l logger) Noticef(string, ...any) {}
func (l logger) Debugf(string, ...any)  {}
func (l logger) Tracef(string, ...any)  {}

func (l logger) Warnf(format string, args ...any) {
	l.log.Warn("broker warning", slog.String("line", fmt.Sprintf(format, args...)))
}

func (l logger) Errorf(format string, args ...any) {
	l.log.Error("broker error", slog.String("line", fmt.Sprintf(format, args...)))
}

func (l logger) Fatalf(format string, args ...any) {
	l.log.Error("broker fatal", slog.String("line", fmt.Sprintf(format, args...)))
}
