package e2e_test

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"sync"
	"testing"

	"github.com/amends-dev/amends/internal/boot"
	"github.com/amends-dev/amends/internal/bus"
	"github.com/amends-dev/amends/internal/roles"
	amendsv1 "github.com/amends-dev/amends/proto/amends/v1"
	"github.com/amends-dev/amends/services/gateway/gateway"
	"github.com/amends-dev/amends/services/orchestrator/orchestrator"
	"github.com/amends-dev/amends/services/refund-executor/executor"
)

// actAs has this binary be a service instead of a test: the same start, the
// same configuration file, the same Run as the service's own main, and besides
// them somebody to be told which points it passes. The deployables have no such
// thing: there is nothing in them that could be turned on.
const actAs = "E2E_ACT_AS"

func TestMain(m *testing.M) {
	if name := os.Getenv(actAs); name != "" {
		act(roles.Service(name))
	}
	os.Exit(m.Run())
}

// act does not return.
func act(name roles.Service) {
	tell := &teller{say: os.NewFile(3, "say"), hear: bufio.NewReader(os.NewFile(4, "hear"))}
	switch name {
	case roles.Orchestrator:
		boot.Main(name, orchestrator.Defaults(), func(ctx context.Context, cfg orchestrator.Config, s *boot.Service) error {
			return connected(ctx, cfg.Common, s, func(conn *bus.Conn) error {
				return orchestrator.Run(ctx, cfg, orchestrator.Deps{
					Bus: conn, Log: s.Log, Meter: s.Telemetry.Meter(),
					Reached: func(_ context.Context, p orchestrator.Point, in *amendsv1.Envelope) {
						tell.at(string(p), in.GetCaseId(), in.GetMessageId())
					},
				})
			})
		})
	case roles.Gateway:
		boot.Main(name, gateway.Defaults(), func(ctx context.Context, cfg gateway.Config, s *boot.Service) error {
			return connected(ctx, cfg.Common, s, func(conn *bus.Conn) error {
				return gateway.Run(ctx, cfg, gateway.Deps{
					Bus: conn, Log: s.Log, Meter: s.Telemetry.Meter(), Tracer: s.Telemetry.Tracer(),
					Reached: func(_ context.Context, p gateway.Point, env *amendsv1.Envelope) {
						tell.at(string(p), env.GetCaseId(), env.GetMessageId())
					},
				})
			})
		})
	case roles.RefundExecutor:
		boot.Main(name, executor.Defaults(), func(ctx context.Context, cfg executor.Config, s *boot.Service) error {
			return connected(ctx, cfg.Common, s, func(conn *bus.Conn) error {
				return executor.Run(ctx, cfg, executor.Deps{
					Bus: conn, Log: s.Log, Meter: s.Telemetry.Meter(),
					Reached: func(ctx context.Context, p executor.Step, key string) error {
						// Each refund of a task is an input of its own.
						task := executor.TaskOf(ctx)
						tell.at(string(p), task.GetCaseId(), task.GetMessageId()+"/"+key)
						return nil
					},
				})
			})
		})
	default:
		os.Exit(2)
	}
}

func connected(ctx context.Context, c boot.Common, s *boot.Service, run func(*bus.Conn) error) error {
	conn, err := s.Connect(ctx, c)
	if err != nil {
		return err
	}
	defer conn.Close()
	return run(conn)
}

// teller says which point was reached and goes on when it is told to. Where the
// process is to die it is never told.
type teller struct {
	mu   sync.Mutex
	say  *os.File
	hear *bufio.Reader
}

func (t *teller) at(point, caseID, message string) {
	t.mu.Lock()
	_, said := fmt.Fprintln(t.say, point, caseID, message)
	_, heard := t.hear.ReadByte()
	t.mu.Unlock()
	if said != nil || heard != nil {
		os.Exit(3) // the test has ended
	}
}
