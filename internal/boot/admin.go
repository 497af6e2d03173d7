package boot

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"
)

// admin serves probes and metrics until it is stopped.
type admin struct {
	server *http.Server
	addr   net.Addr
	failed chan error
}

// listen starts the admin listener. When it breaks later, failed says so.
func listen(ctx context.Context, addr string, ready, metrics http.Handler) (*admin, error) {
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("admin listener: %w", err)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte("ok\n")) // the prober has gone
	})
	mux.Handle("GET /readyz", ready)
	mux.Handle("GET /metrics", metrics)
	a := &admin{
		server: &http.Server{
			Handler: mux, ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 5 * time.Second,
			WriteTimeout: 30 * time.Second, IdleTimeout: time.Minute, MaxHeaderBytes: 16 << 10,
		},
		addr:   l.Addr(),
		failed: make(chan error, 1),
	}
	go func() {
		if err := a.server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			a.failed <- fmt.Errorf("admin listener: %w", err)
		}
	}()
	return a, nil
}

// stop lets answers in flight finish within ctx.
func (a *admin) stop(ctx context.Context) error {
	if err := a.server.Shutdown(ctx); err != nil {
		return errors.Join(fmt.Errorf("stop the admin listener: %w", err), a.server.Close())
	}
	return nil
}
