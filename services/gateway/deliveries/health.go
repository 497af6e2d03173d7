package deliveries

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/amends-dev/amends/internal/bus"
	"github.com/amends-dev/amends/internal/subject"
	"github.com/amends-dev/amends/internal/webhook"
	amendsv1 "github.com/amends-dev/amends/proto/amends/v1"
)

// Why an endpoint is disabled.
const (
	disabledGone    = "gone"
	disabledFailing = "failing"
)

// endpoint is an Endpoint at work.
type endpoint struct {
	Endpoint
	urlSHA256 string
	client    *webhook.Client
	queue     *queue

	mu sync.Mutex
	// state is the newest that was seen, and seq where it is stored.
	state *amendsv1.EndpointState
	seq   uint64
}

func newEndpoint(e Endpoint, now func() time.Time) *endpoint {
	sum := sha256.Sum256([]byte(e.URL))
	return &endpoint{
		Endpoint: e, urlSHA256: hex.EncodeToString(sum[:]), queue: newQueue(), state: &amendsv1.EndpointState{},
		client: webhook.NewClient(webhook.Options{Private: e.Private, Now: now}),
	}
}

// plan takes in a case's log.
func (e *endpoint) plan(log *amendsv1.DeliveryLog) {
	if at, ok := next(log); ok {
		e.queue.set(log.GetCaseId(), at)
	} else if log.GetCaseId() != "" {
		e.queue.remove(log.GetCaseId())
	}
}

// see takes in a stored state. One about another URL, or a disablement from
// before the endpoint came into force, says nothing.
func (e *endpoint) see(s *amendsv1.EndpointState, seq uint64) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if seq >= e.seq {
		e.state, e.seq = e.current(s), seq
	}
}

func (e *endpoint) current(s *amendsv1.EndpointState) *amendsv1.EndpointState {
	last := s.GetFailingSince().AsTime()
	if s.GetDisabledAt() != nil {
		last = s.GetDisabledAt().AsTime()
	}
	if s.GetUrlSha256() != e.urlSHA256 || last.Before(e.Since) {
		return &amendsv1.EndpointState{Tenant: e.Tenant, Channel: e.Channel, UrlSha256: e.urlSHA256}
	}
	return s
}

func (e *endpoint) seen() *amendsv1.EndpointState {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.state
}

// forget: sequences may have been used again.
func (e *endpoint) forget() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.seq = 0
}

// admits reports whether an attempt may be made: the endpoint is enabled, or
// this one is its probe.
func (o *Outbox) admits(ctx context.Context, e *endpoint, now time.Time) (bool, error) {
	if e.seen().GetDisabledAt() == nil {
		return true, nil
	}
	probe := false
	err := o.changeState(ctx, e, func(s *amendsv1.EndpointState) bool {
		probe = s.GetDisabledAt() == nil
		if probe || s.GetDisabledReason() == disabledGone || now.Sub(s.GetDisabledAt().AsTime()) < o.probe || now.Sub(s.GetProbedAt().AsTime()) < o.probe {
			return false
		}
		s.ProbedAt, probe = timestamppb.New(now), true
		return true
	})
	return probe && err == nil, err
}

// judge draws the conclusions of an attempt for its endpoint.
func (o *Outbox) judge(ctx context.Context, e *endpoint, r webhook.Reason) error {
	ok := r == webhook.ReasonDelivered
	if s := e.seen(); ok && s.GetFailures() == 0 && s.GetDisabledAt() == nil {
		return nil
	}
	turned := "" // what changed, for the log
	err := o.changeState(ctx, e, func(s *amendsv1.EndpointState) bool {
		turned = ""
		now := o.Now()
		if ok {
			if s.GetDisabledAt() != nil {
				turned = "enabled"
			}
			changed := turned != "" || s.GetFailures() > 0
			s.Failures, s.FailingSince, s.DisabledAt, s.DisabledReason, s.ProbedAt = 0, nil, nil, "", nil
			return changed
		}
		if s.GetFailures() == 0 {
			s.FailingSince = timestamppb.New(now)
		}
		s.Failures++
		switch {
		case s.GetDisabledAt() != nil:
		case r == webhook.ReasonGone:
			s.DisabledAt, s.DisabledReason, turned = timestamppb.New(now), disabledGone, disabledGone
		case s.GetFailures() >= failures && now.Sub(s.GetFailingSince().AsTime()) >= o.failing:
			s.DisabledAt, s.DisabledReason, turned = timestamppb.New(now), disabledFailing, disabledFailing
		}
		return true
	})
	if err == nil && turned != "" {
		o.Log.LogAttrs(ctx, slog.LevelWarn, "webhook endpoint turned", slog.String("tenant", e.Tenant), slog.String("channel", e.Channel), slog.String("to", turned))
	}
	return err
}

func (o *Outbox) changeState(ctx context.Context, e *endpoint, edit func(*amendsv1.EndpointState) bool) error {
	subj := subject.Endpoint(e.Tenant, e.Channel)
	for range maxTries {
		stored := new(amendsv1.EndpointState)
		seq, err := read(ctx, o.Bus, subj, stored)
		if err != nil {
			return fmt.Errorf("read the state of an endpoint: %w", err)
		}
		s := proto.CloneOf(e.current(stored))
		if !edit(s) {
			e.see(s, seq)
			return nil
		}
		seq, err = o.store(ctx, subj, s, seq)
		if err == nil {
			e.see(s, seq)
			return nil
		}
		if !errors.Is(err, bus.ErrConflict) && !errors.Is(err, bus.ErrUncertain) {
			return fmt.Errorf("store the state of an endpoint: %w", err)
		}
	}
	return fmt.Errorf("store the state of an endpoint: %w", errRaces)
}

func notFoundIsNil(err error) error {
	if errors.Is(err, bus.ErrNotFound) {
		return nil
	}
	return err
}
