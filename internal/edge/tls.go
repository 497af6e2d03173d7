package edge

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"time"
)

// ErrTLS marks certificate files that cannot be served with.
var ErrTLS = errors.New("tls")

// TLS says which certificate an edge serves with; the zero value is plain HTTP.
// Files that change are read again, at most once a second, by the next
// connection; until they are sound, the last sound ones serve on.
type TLS struct {
	// CertFile holds the certificate and what it was signed with, KeyFile its
	// key, both in PEM.
	CertFile string `yaml:"cert_file,omitempty"`
	KeyFile  string `yaml:"key_file,omitempty"`
	// ClientCAFile, if given, lets in only clients with a certificate of one of
	// its authorities. That comes on top of their credential.
	ClientCAFile string `yaml:"client_ca_file,omitempty"`
}

// On reports that there is anything to serve with.
func (t TLS) On() bool { return t != TLS{} }

// Validate checks it as a whole; the files are read when serving begins.
func (t TLS) Validate() error {
	if t.On() && (t.CertFile == "" || t.KeyFile == "") {
		return errors.New("tls: want both cert_file and key_file")
	}
	return nil
}

// load reads the files.
func (t TLS) load() (*tls.Config, error) {
	pair, err := tls.LoadX509KeyPair(t.CertFile, t.KeyFile)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrTLS, err)
	}
	cfg := &tls.Config{
		Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12, NextProtos: []string{"h2", "http/1.1"},
	}
	if t.ClientCAFile == "" {
		return cfg, nil
	}
	text, err := os.ReadFile(t.ClientCAFile)
	if err != nil {
		return nil, fmt.Errorf("%w: client_ca_file: %w", ErrTLS, err)
	}
	cfg.ClientCAs, cfg.ClientAuth = x509.NewCertPool(), tls.RequireAndVerifyClientCert
	if !cfg.ClientCAs.AppendCertsFromPEM(text) {
		return nil, fmt.Errorf("%w: client_ca_file: %s holds no certificate", ErrTLS, t.ClientCAFile)
	}
	return cfg, nil
}

// version is by what a change of the files is told.
func (t TLS) version() (v [3]stamp) {
	for i, file := range []string{t.CertFile, t.KeyFile, t.ClientCAFile} {
		if info, err := os.Stat(file); err == nil { // through links: mounted secrets are some
			v[i] = stamp{info.ModTime(), info.Size()}
		}
	}
	return v
}

type stamp struct {
	at   time.Time
	size int64
}

// lookEvery is the least time between two looks at the files.
const lookEvery = time.Second

// certificates are what connections are served with now.
type certificates struct {
	files TLS
	log   *slog.Logger
	now   func() time.Time

	mu      sync.Mutex
	cfg     *tls.Config
	looked  time.Time
	version [3]stamp
	problem string // of the files as they are, if it was told
}

func newCertificates(files TLS, log *slog.Logger, now func() time.Time) (*certificates, error) {
	c := &certificates{files: files, log: log, now: now, looked: now(), version: files.version()}
	var err error
	if c.cfg, err = files.load(); err != nil {
		return nil, err
	}
	c.tell()
	return c, nil
}

func (c *certificates) tell() {
	leaf := c.cfg.Certificates[0].Leaf
	c.log.Info("certificate read", slog.String("file", c.files.CertFile), slog.Time("not_after", leaf.NotAfter))
	if c.now().After(leaf.NotAfter) {
		c.log.Warn("the certificate has expired", slog.String("file", c.files.CertFile))
	}
}

// current gives what the next connection is served with.
func (c *certificates) current(*tls.ClientHelloInfo) (*tls.Config, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.now()
	if since := now.Sub(c.looked); since >= 0 && since < lookEvery {
		return c.cfg, nil
	}
	c.looked = now
	version := c.files.version()
	if version == c.version {
		return c.cfg, nil
	}
	cfg, err := c.files.load()
	if err != nil { // perhaps in the middle of a change: looked at again
		if said := err.Error(); said != c.problem {
			c.problem = said
			c.log.Warn("changed certificate not read; serving with the last", slog.Any("error", err))
		}
		return c.cfg, nil
	}
	c.cfg, c.version, c.problem = cfg, version, ""
	c.tell()
	return c.cfg, nil
}
