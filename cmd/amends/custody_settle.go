package main

import (
	"context"
	"errors"
	"fmt"

	"google.golang.org/protobuf/encoding/protojson"

	"github.com/amends-dev/amends/internal/deskapi"
	"github.com/amends-dev/amends/internal/deskclient"
	"github.com/amends-dev/amends/internal/display"
	amendsv1 "github.com/amends-dev/amends/proto/amends/v1"
)

// stateReconciling is where a case is whose refund is looked for.
const stateReconciling = "RECONCILING"

// settlement waits until the executor has verified a custodian's answer, or
// says why it does not.
func settlement(ctx context.Context, desk *deskclient.Console, in handedIn, out *custodyDecided) error {
	seen := out.Version - 1 // the version that recorded it tells as well
	for pause := askAgain; ; pause = min(2*pause, maxPause) {
		shown, err := desk.Record(ctx, in.tenant, in.caseID, seen+1)
		rec := new(amendsv1.CaseRecord)
		if err == nil {
			err = protojson.Unmarshal(shown.Record, rec)
		}
		if err == nil {
			seen = max(seen, shown.Version)
			out.Version, out.State = shown.Version, shown.State
			if out.Settled = !rec.GetOutcomeUnknown(); out.Settled {
				return nil
			}
			for _, n := range rec.GetTasks() {
				if n.GetSlice() == amendsv1.Slice_SLICE_SETTLE && n.GetStatus() == amendsv1.TaskStatus_TASK_STATUS_FAILED {
					out.Rejected = []string{n.GetReason()}
					return errors.New("it settles nothing: " + display.Line(n.GetReason()))
				}
			}
			if shown.State != stateReconciling {
				return fmt.Errorf("the case went on to %s before it was verified", display.Line(shown.State))
			}
		} else if p, ok := errors.AsType[*deskapi.Problem](err); ok && p.RetryAfter == 0 {
			return err
		}
		if sleep(ctx, pause) != nil {
			out.Unjudged = true
			return fmt.Errorf("handed in; whether it settles anything is not known yet (v%d, %s)", seen, display.Line(out.State))
		}
	}
}
