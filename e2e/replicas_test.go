package e2e_test

import (
	"errors"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/amends-dev/amends/internal/allinone"
	"github.com/amends-dev/amends/internal/deskapi"
	"github.com/amends-dev/amends/internal/roles"
	amendsv1 "github.com/amends-dev/amends/proto/amends/v1"
)

// Two orchestrators on the same consumers under load: no input lost, none
// applied twice, no view behind its record (LOSS-1, STATE-1).
func TestTwoOrchestrators(t *testing.T) {
	t.Parallel()
	const n = 120
	w := start(t, allinone.Options{Orchestrators: 2, NoSync: true})
	w.orders(n, true)
	w.each(n, 32, func(i int) error {
		if err := w.post(i); err != nil {
			return err
		}
		_, err := w.finish(i, closed)
		return err
	})
	if got := len(w.refunds()); got != n {
		t.Errorf("MONEY-1: %d refunds for %d cases", got, n)
	}
	w.sound(n, amendsv1.CaseState_CASE_STATE_VERIFIED_CLOSED)
	w.viewsAreRight(n)
	w.noDeadLetters()
}

// viewsAreRight checks that the stored view of every case is the closing one.
func (w *world) viewsAreRight(n int) {
	w.t.Helper()
	w.each(n, 16, func(i int) error {
		v, err := w.gateway.View(w.ctx, caseID(i), "")
		if err == nil && (!v.Closed || v.State != "VERIFIED_CLOSED") {
			w.t.Errorf("case %s is closed and its view says %s at v%d", caseID(i), v.State, v.Version)
		}
		return err
	})
}

// An unsynced loss: the desk stops in the middle of its work, and the files of
// the recomputable streams are cut back, as a power failure would. After the
// start every case ends and every view is right: what the newest records want
// is sent again (LOSS-2, LIVE-1).
func TestUnsyncedLoss(t *testing.T) {
	t.Parallel()
	const n = 60
	dir := t.TempDir()
	w := start(t, allinone.Options{Dir: dir})
	w.orders(n, true)

	// A third of the cases is closed before what is kept ends; the rest is
	// somewhere on its way.
	third := n / 3
	w.each(third, 16, func(i int) error {
		if err := w.post(i); err != nil {
			return err
		}
		_, err := w.finish(i, func(v deskapi.View) bool { return v.State == "REFUND_REQUESTED" || v.Closed })
		return err
	})
	kept := sizes(t, filepath.Join(dir, "broker"))
	var ended atomic.Int64
	w.each(n, 32, func(i int) error {
		if i >= third {
			if err := w.post(i); err != nil {
				return err
			}
		}
		stages := []string{"INVESTIGATING", "AWAITING_APPROVAL", "REFUND_REQUESTED", "VERIFIED_CLOSED"}
		stage := stages[i%len(stages)]
		v, err := w.finish(i, func(v deskapi.View) bool { return v.State == stage || v.Closed })
		if v.Closed {
			ended.Add(1)
		}
		return err
	})
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if lost := cutBack(t, kept); lost == 0 {
		t.Fatal("nothing was cut back: the test shows nothing")
	}

	w = start(t, allinone.Options{Dir: dir})
	t.Logf("%d of %d cases were closed before the loss", ended.Load(), n)
	w.each(n, 32, func(i int) error {
		if err := w.viewIsBack(i); err != nil {
			return err
		}
		_, err := w.finish(i, closed)
		return err
	})
	if got := len(w.refunds()); got != n {
		t.Errorf("MONEY-1: %d refunds for %d cases", got, n)
	}
	w.sound(n, amendsv1.CaseState_CASE_STATE_VERIFIED_CLOSED)
	w.viewsAreRight(n)
}

// viewIsBack waits until a case whose view was lost has one again.
func (w *world) viewIsBack(i int) error {
	for {
		_, err := w.gateway.View(w.ctx, caseID(i), "")
		problem, ok := errors.AsType[*deskapi.Problem](err)
		if !ok || problem.Status != http.StatusNotFound {
			return err
		}
		if w.ctx.Err() != nil {
			return w.ctx.Err()
		}
	}
}

// sizes notes how long the message files of the recomputable streams are.
func sizes(t *testing.T, store string) map[string]int64 {
	t.Helper()
	out := map[string]int64{}
	err := filepath.WalkDir(store, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !recomputable(path) {
			return err
		}
		info, err := d.Info()
		out[path] = info.Size()
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(out) == 0 {
		t.Fatal("no message files found")
	}
	return out
}

func recomputable(path string) bool {
	if filepath.Ext(path) != ".blk" {
		return false
	}
	for _, s := range roles.Desk().Streams {
		if s.Class == roles.Recomputable && strings.Contains(path, string(filepath.Separator)+s.Name+string(filepath.Separator)) {
			return true
		}
	}
	return false
}

// cutBack takes away what was written since sizes, and the indexes that knew
// of it. It gives how many bytes went.
func cutBack(t *testing.T, kept map[string]int64) (lost int64) {
	t.Helper()
	for path, size := range kept {
		info, err := os.Stat(path)
		if os.IsNotExist(err) {
			continue // compacted away
		}
		if err != nil {
			t.Fatal(err)
		}
		if info.Size() <= size {
			continue
		}
		lost += info.Size() - size
		if err := os.Truncate(path, size); err != nil {
			t.Fatal(err)
		}
		if err := os.Remove(filepath.Join(filepath.Dir(path), "index.db")); err != nil && !os.IsNotExist(err) {
			t.Fatal(err)
		}
	}
	return lost
}
