package sandbox

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"
)

// shutdownTimeout bounds how long Close waits for requests in flight.
const shutdownTimeout = 5 * time.Second

// Server is a running sandbox.
type Server struct {
	// URL is its base address, e.g. http://127.0.0.1:41234.
	URL string

	book     *book
	notifier *notifier
	keys     []apiKey
	now      func() time.Time
	log      *slog.Logger
	faults   *faults
	// stop does the closing, once; detach frees ctx from it.
	stop   func() error
	detach func() bool
}

// Start replays the journal and serves until Close or the end of ctx. An error
// means a bad configuration, a damaged journal or a port that is taken.
func Start(ctx context.Context, c Config) (*Server, error) {
	c = c.withDefaults()
	if err := c.validate(); err != nil {
		return nil, fmt.Errorf("sandbox configuration: %w", err)
	}
	keys, err := parseKeys(c.Keys)
	if err != nil {
		return nil, fmt.Errorf("sandbox configuration: %w", err)
	}
	var lc net.ListenConfig
	listener, err := lc.Listen(ctx, "tcp", c.Listen)
	if err != nil {
		return nil, fmt.Errorf("sandbox: %w", err)
	}
	b, err := openBook(c)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("sandbox: %w", err), listener.Close())
	}
	f, err := newFaults(c)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("sandbox configuration: %w", err), b.journal.close(), listener.Close())
	}
	s := &Server{URL: "http://" + listener.Addr().String(), book: b, keys: keys, now: c.Now, log: c.Log, faults: f, notifier: newNotifier(c, b, f)}
	b.notify = s.notifier.notify
	if c.Events != (Events{}) {
		if err := s.SendEvents(c.Events); err != nil {
			s.notifier.close()
			return nil, errors.Join(err, b.journal.close(), listener.Close())
		}
	}
	web := &http.Server{
		Handler:           s.mux(),
		ReadHeaderTimeout: 5 * time.Second,
		ReadTimeout:       30 * time.Second,
		WriteTimeout:      30 * time.Second,
		// Longer than the clients keep an idle connection, so that none of
		// them sends a request into a connection that is being closed.
		IdleTimeout:    2 * time.Minute,
		MaxHeaderBytes: 16 << 10,
		ErrorLog:       slog.NewLogLogger(c.Log.Handler(), slog.LevelWarn),
	}
	unused := &unusedConns{conns: map[net.Conn]struct{}{}}
	web.ConnState = unused.track
	web.RegisterOnShutdown(unused.drop)
	served := make(chan struct{})
	go func() {
		defer close(served)
		if err := web.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			c.Log.Error("sandbox stopped serving", slog.Any("error", err))
		}
	}()
	s.stop = sync.OnceValue(func() error {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), shutdownTimeout)
		defer cancel()
		close(f.ended) // what a fault holds is let go
		err := web.Shutdown(ctx)
		if err != nil {
			err = errors.Join(fmt.Errorf("shut the sandbox down: %w", err), web.Close())
		}
		<-served
		f.work.Wait()
		s.notifier.close()
		return errors.Join(err, b.journal.close())
	})
	s.detach = context.AfterFunc(ctx, func() {
		if err := s.stop(); err != nil {
			c.Log.Error("sandbox did not stop cleanly", slog.Any("error", err))
		}
	})
	return s, nil
}

// Close ends the service: requests in flight are finished, for a bounded time,
// and the journal is closed. It may be called more than once.
func (s *Server) Close() error {
	s.detach()
	return s.stop()
}

// unusedConns knows the connections on which no request has come yet. A client
// that opened more than it needed would hold up a shutdown for as long as the
// server waits for a first request.
type unusedConns struct {
	mu    sync.Mutex
	conns map[net.Conn]struct{}
}

func (u *unusedConns) track(c net.Conn, state http.ConnState) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if state == http.StateNew {
		u.conns[c] = struct{}{}
	} else {
		delete(u.conns, c)
	}
}

func (u *unusedConns) drop() {
	u.mu.Lock()
	defer u.mu.Unlock()
	for c := range u.conns {
		_ = c.Close() // the server's own close of it reports what matters
	}
}
