package edge

import (
	"context"
	"crypto/tls"
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

// Endpoint is where and how an edge serves.
type Endpoint struct {
	// Listen is host:port.
	Listen string
	TLS    TLS
}

// Serve answers requests at an endpoint until ctx ends, then drains. ready, if
// given, is told the bound address.
func Serve(ctx context.Context, at Endpoint, h http.Handler, log *slog.Logger, ready func(addr string)) error {
	var secure *tls.Config
	if at.TLS.On() {
		certs, err := newCertificates(at.TLS, log, time.Now)
		if err != nil {
			return err
		}
		secure = &tls.Config{GetConfigForClient: certs.current, MinVersion: tls.VersionTLS12}
	}
	ln, err := new(net.ListenConfig).Listen(ctx, "tcp", at.Listen)
	if err != nil {
		return fmt.Errorf("listen on %s: %w", at.Listen, err)
	}
	if tcp, ok := ln.Addr().(*net.TCPAddr); secure == nil && (!ok || !tcp.IP.IsLoopback()) {
		log.Warn("credentials travel in the clear: not only this machine can connect, and tls is not configured", slog.String("listen", ln.Addr().String()))
	}
	srv := &http.Server{
		Handler:           h,
		ReadHeaderTimeout: headerTimeout,
		ReadTimeout:       readTimeout,
		WriteTimeout:      writeTimeout,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    maxHeaderBytes,
		TLSConfig:         secure,
		ErrorLog:          slog.NewLogLogger(log.Handler(), slog.LevelDebug),
	}
	ended := make(chan error, 1)
	go func() {
		if secure != nil {
			ended <- srv.ServeTLS(ln, "", "") // the files are the configuration's
			return
		}
		ended <- srv.Serve(ln)
	}()
	if ready != nil {
		ready(ln.Addr().String())
	}
	select {
	case err := <-ended:
		return fmt.Errorf("serve %s: %w", at.Listen, err)
	case <-ctx.Done():
	}
	drain, cancel := context.WithTimeout(context.WithoutCancel(ctx), DrainTimeout)
	defer cancel()
	err = srv.Shutdown(drain)
	if err != nil {
		_ = srv.Close() // what did not finish in time is cut off
		err = fmt.Errorf("drain %s: %w", at.Listen, err)
	}
	if e := <-ended; !errors.Is(e, http.ErrServerClosed) {
		return fmt.Errorf("serve %s: %w", at.Listen, e)
	}
	return err
}
