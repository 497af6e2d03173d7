package deskclient

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"time"

	"github.com/amends-dev/amends/internal/deskapi"
)

// ErrStop, returned by a follow's function, ends the follow without an error.
var ErrStop = errors.New("stop following")

const (
	// maxResumes bounds the tries after a break without any new view.
	maxResumes = 5
	resumeWait = 100 * time.Millisecond
)

// Follow calls fn with the current view of a case and every newer one, until
// the case is closed, fn returns an error, or ctx ends. Versions only grow, and
// those up to after are left out. A stream that breaks is resumed.
func (g *Gateway) Follow(ctx context.Context, caseID, customer string, after uint64, fn func(deskapi.View) error) error {
	s := stream{gateway: g, caseID: caseID, customer: customer, seen: after, fn: fn}
	for broken := 0; ; {
		before := s.seen
		err := s.run(ctx)
		var problem *deskapi.Problem
		switch {
		case err == nil || errors.Is(err, ErrStop):
			return nil
		case s.failed != nil:
			return s.failed
		case ctx.Err() != nil:
			return fmt.Errorf("follow %s: %w", caseID, ctx.Err())
		case errors.As(err, &problem) && problem.RetryAfter == 0:
			return err
		}
		if broken++; s.seen > before {
			broken = 1
		}
		if broken > maxResumes {
			return fmt.Errorf("follow %s: %w", caseID, err)
		}
		wait := time.NewTimer(resumeWait << (broken - 1))
		select {
		case <-wait.C:
		case <-ctx.Done():
			wait.Stop()
		}
	}
}

// stream is a follow over all its connections.
type stream struct {
	gateway  *Gateway
	caseID   string
	customer string
	seen     uint64
	fn       func(deskapi.View) error
	failed   error // by fn
}

var errBroken = errors.New("the stream ended before the case was closed")

// run reads one connection's events; nil when the case is closed.
func (s *stream) run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	header := map[string]string{"Accept": "text/event-stream", deskapi.HeaderCustomer: s.customer}
	if s.seen > 0 {
		header[deskapi.HeaderLastEventID] = strconv.FormatUint(s.seen, 10)
	}
	resp, err := s.gateway.api.send(ctx, http.MethodGet, deskapi.EventsPath(s.caseID), header, nil)
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }()
	switch resp.StatusCode {
	case http.StatusOK:
	case http.StatusNoContent: // closed, and seen
		return nil
	default:
		data, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
		if err != nil {
			return fmt.Errorf("read the answer: %w", err)
		}
		return problemOf(resp, data)
	}
	events := bufio.NewReaderSize(resp.Body, 16<<10)
	for {
		data, err := nextEvent(events)
		if err != nil {
			return fmt.Errorf("%w: %w", errBroken, err)
		}
		var v deskapi.View
		if err := json.Unmarshal(data, &v); err != nil {
			return fmt.Errorf("decode an event: %w", err)
		}
		if v.Version <= s.seen {
			continue
		}
		s.seen = v.Version
		if err := s.fn(v); err != nil {
			s.failed = err
			return err
		}
		if v.Closed {
			_, _ = io.Copy(io.Discard, events) // to its end, so that the connection is used again
			return nil
		}
	}
}

var dataField = []byte("data: ")

// nextEvent gives the data of the next event that has any. The gateway writes
// each event's data on one line.
func nextEvent(r *bufio.Reader) ([]byte, error) {
	var data []byte
	for {
		line, err := readLine(r)
		switch {
		case err != nil:
			return nil, err
		case len(line) == 0 && data != nil:
			return data, nil
		case bytes.HasPrefix(line, dataField):
			data = bytes.Clone(line[len(dataField):])
		}
	}
}

func readLine(r *bufio.Reader) ([]byte, error) {
	var long []byte
	for {
		part, err := r.ReadSlice('\n')
		if long == nil && err == nil {
			return bytes.TrimRight(part, "\r\n"), nil
		}
		if len(long)+len(part) > maxAnswer {
			return nil, fmt.Errorf("an event is larger than %d bytes", maxAnswer)
		}
		long = append(long, part...)
		if err == nil {
			return bytes.TrimRight(long, "\r\n"), nil
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return nil, err
		}
	}
}
