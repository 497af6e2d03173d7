package console

import (
	"context"
	"errors"
	"fmt"

	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/amends-dev/amends/internal/bus"
	"github.com/amends-dev/amends/internal/roles"
	"github.com/amends-dev/amends/internal/subject"
	amendsv1 "github.com/amends-dev/amends/proto/amends/v1"
)

// audit makes an event durable, under a tenant or what stands for all. After
// a lost acknowledgement it is sent again: two equal events are one.
func (c *console) audit(ctx context.Context, e *amendsv1.AuditEvent, tenant string) error {
	e.Service, e.At = string(roles.Console), timestamppb.New(c.now())
	data, err := encode(e)
	if err != nil {
		return fmt.Errorf("audit: %w", err)
	}
	subj := subject.Audit(string(roles.Console), tenant)
	_, err = c.bus.Publish(ctx, subj, data)
	if errors.Is(err, bus.ErrUncertain) && ctx.Err() == nil {
		_, err = c.bus.Publish(ctx, subj, data)
	}
	if err != nil {
		return fmt.Errorf("audit: %w", err)
	}
	return nil
}
