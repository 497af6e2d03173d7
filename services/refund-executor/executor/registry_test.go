package executor_test

import (
	"crypto/rand"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/amends-dev/amends/internal/approval"
	"github.com/amends-dev/amends/internal/bus/bustest"
	"github.com/amends-dev/amends/internal/roles"
)

// Keys are rotated, with an overlap, and revoked while the executor runs; what
// the file says when an intent is written counts. A file that is no registry
// pays nothing: the tasks wait for one that is (AUTH-2, MONEY-2).
func TestKeysRotateWithoutARestartAUTH2(t *testing.T) {
	t.Parallel()
	d := open(t)
	next, err := approval.NewKey("maya", "maya-2", rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	old := d.maya.PublicEntry(time.Now().Add(-time.Hour))
	fresh := next.PublicEntry(time.Now().Add(-time.Hour))
	gone := old
	gone.Revoked = true
	put := func(data []byte) {
		t.Helper()
		dir := filepath.Dir(d.cfg.ApproverRegistry)
		if err := os.Rename(write(t, dir, "next", data), d.cfg.ApproverRegistry); err != nil {
			t.Fatal(err)
		}
	}
	registry := func(keys ...approval.PublicKey) []byte {
		t.Helper()
		maya := approver(d.maya)
		maya.Keys = keys
		r, err := approval.NewRegistry("2", maya)
		if err != nil {
			t.Fatal(err)
		}
		data, err := r.Marshal()
		if err != nil {
			t.Fatal(err)
		}
		return data
	}
	d.run()
	for _, c := range []struct {
		order  string
		file   []byte
		key    approval.Key25519
		reason string
	}{
		{"before", nil, d.maya, ""},
		{"not-yet", nil, next, approval.ReasonUnknownKey},
		{"overlap-old", registry(old, fresh), d.maya, ""},
		{"overlap-new", nil, next, ""},
		{"revoked", registry(gone, fresh), d.maya, approval.ReasonKeyRetired},
		{"still", nil, next, ""},
		{"taken-out", registry(fresh), d.maya, approval.ReasonUnknownKey},
	} {
		d.order(c.order, 200000, 2)
		if c.file != nil {
			put(c.file)
		}
		a := duplicate(c.order, 200000)
		res := d.ask(execute(a, d.sign(c.key, a, 1)))
		if c.reason != "" {
			d.expect(c.order, res, refused, c.reason)
			d.noRefund(c.order)
			continue
		}
		d.expect(c.order, res, acknowledged, "")
		d.onlyRefund(c.order, 200000)
	}

	d.order("broken", 200000, 2)
	a := duplicate("broken", 200000)
	task := execute(a, d.sign(next, a, 1))
	put([]byte("approvers: [everybody]\n"))
	d.send(task)
	bustest.Await(t, "a dead letter", func() bool { return d.stored(roles.StreamDeadLetters) == 1 })
	d.noRefund("broken")
	if e := d.entry("broken"); e != nil {
		t.Errorf("entry %v", e)
	}
	put(registry(fresh))
	d.expect("mended", d.ask(task), acknowledged, "")
}
