package main

import (
	"crypto/tls"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"github.com/amends-dev/amends/internal/deskapi"
	"github.com/amends-dev/amends/internal/edge"
	"github.com/amends-dev/amends/internal/edge/edgetest"
)

// A desk behind a private authority is reached with --ca-file, and only so.
func TestPrivateAuthority(t *testing.T) {
	t.Parallel()
	dir, _ := files(t)
	a := edgetest.New(t)
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		edge.WriteJSON(w, http.StatusOK, deskapi.View{CaseID: "req-8472", Version: 2, State: "INVESTIGATING"})
	}))
	s.TLS = &tls.Config{Certificates: []tls.Certificate{a.Client(t)}}
	s.StartTLS()
	t.Cleanup(s.Close)
	show := []string{"case", "show", "req-8472", "--gateway", s.URL, "--token-file", filepath.Join(dir, "token")}
	if got := amends(t, nil, append(show, "--ca-file", a.File)...); got.code != exitDone || !strings.Contains(got.out, "INVESTIGATING") {
		t.Errorf("%+v", got)
	}
	for name, more := range map[string][]string{
		"system's": nil, "another": {"--ca-file", edgetest.New(t).File}, "not there": {"--ca-file", a.File + "x"}, "none in it": {"--ca-file", filepath.Join(dir, "token")},
	} {
		if got := amends(t, nil, append(show[:len(show):len(show)], more...)...); got.code != exitFailed {
			t.Errorf("%s: %+v", name, got)
		}
	}
	decide := decideArgs("approve", dir, s.URL, "--ca-file", a.File+"x")
	if got := amends(t, nil, decide...); got.code != exitFailed || !strings.Contains(got.err, "CA file") {
		t.Errorf("approve: %+v", got)
	}
}
