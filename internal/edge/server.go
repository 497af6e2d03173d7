package edge

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"
)

// Limits of every edge. A handler that streams lifts the write and read
// deadlines for itself.
const (
	headerTimeout  = 5 * time.Second
	readTimeout    = 15 * time.Second
	writeTimeout   = 30 * time.Second
	idleTimeout    = 2 * time.Minute
	maxHeaderBytes = 16 << 10
	// DrainTimeout is how long running requests may take to finish.
	DrainTimeout = 10 * time.Second
)

// Serve answers requests at an address until ctx ends, then drains. ready, if
// given, is told the bound address.
func Serve(ctx context.Context, listen string, h http.Handler, log *slog.Logger, ready func(addr string)) error {
	ln, err := new(net.ListenConfig).Listen(ctx, "tcp", listen)
	if err != nil {
		return fmt.Errorf("listen on %s: %w", listen, err)
	}
	srv := &http.Server{
		Handler:           h,
		ReadHeaderTimeout: headerTimeout,
		ReadTimeout:       readTimeout,
		WriteTimeout:      writeTimeout,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    maxHeaderBytes,
		ErrorLog:          slog.NewLogLogger(log.Handler(), slog.LevelDebug),
	}
	ended := make(chan error, 1)
	go func() { ended <- srv.Serve(ln) }()
	if ready != nil {
		ready(ln.Addr().String())
	}
	select {
	case err := <-ended:
		return fmt.Errorf("serve %s: %w", listen, err)
	case <-ctx.Done():
	}
	drain, cancel := context.WithTimeout(context.WithoutCancel(ctx), DrainTimeout)
	defer cancel()
	err = srv.Shutdown(drain)
	if err != nil {
		_ = srv.Close() // what did not finish in time is cut off
		err = fmt.Errorf("drain %s: %w", listen, err)
	}
	if e := <-ended; !errors.Is(e, http.ErrServerClosed) {
		return fmt.Errorf("serve %s: %w", listen, e)
	}
	return err
}
