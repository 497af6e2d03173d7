package sandbox

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"

	"github.com/amends-dev/amends/internal/flock"
)

// errJournal marks an entry that is not, or perhaps not, in the journal.
var errJournal = errors.New("journal unavailable")

// journal is the durable file. The first failure is final: after it the end
// of the file is in doubt, and only a replay settles it.
type journal struct {
	file *os.File
	sync bool

	mu      sync.Mutex
	moved   sync.Cond
	written uint64
	durable uint64
	err     error
	closing bool
	done    chan struct{} // the syncer has ended
}

// openJournal hands every whole line to apply and cuts off a torn last one;
// torn is how many bytes that dropped.
func openJournal(path string, sync bool, apply func(line []byte) (seq uint64, err error)) (j *journal, torn int64, err error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o600) //nolint:gosec // the path is the operator's configuration
	if err != nil {
		return nil, 0, fmt.Errorf("open journal: %w", err)
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, f.Close())
		}
	}()
	if err := flock.Hold(f); err != nil { // two writers would number their entries alike
		return nil, 0, fmt.Errorf("open journal: %w", err)
	}
	good, seq, err := replayLines(f, apply)
	if err != nil {
		return nil, 0, err
	}
	end, err := f.Seek(0, io.SeekEnd)
	if err != nil {
		return nil, 0, fmt.Errorf("find the journal's end: %w", err)
	}
	if err := f.Truncate(good); err != nil {
		return nil, 0, fmt.Errorf("cut the journal's torn line: %w", err)
	}
	j = &journal{file: f, sync: sync, written: seq, durable: seq, done: make(chan struct{})}
	j.moved.L = &j.mu
	if !sync {
		close(j.done)
		return j, end - good, nil
	}
	if err := errors.Join(f.Sync(), syncDir(filepath.Dir(path))); err != nil {
		return nil, 0, fmt.Errorf("sync the journal: %w", err)
	}
	go j.syncer()
	return j, end - good, nil
}

// replayLines gives the offset after the last good line and its number.
func replayLines(f *os.File, apply func([]byte) (uint64, error)) (good int64, seq uint64, err error) {
	in := bufio.NewReaderSize(f, 1<<16)
	for n := 1; ; n++ {
		line, err := in.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return good, seq, nil // what is left has no line end: torn
		}
		if err != nil {
			return 0, 0, fmt.Errorf("read journal: %w", err)
		}
		at, err := apply(line)
		if err != nil {
			_, more := in.Peek(1)
			if errors.Is(more, io.EOF) && !json.Valid(line) {
				return good, seq, nil
			}
			return 0, 0, fmt.Errorf("journal line %d: %w", n, err)
		}
		good, seq = good+int64(len(line)), at
	}
}

func syncDir(path string) error {
	d, err := os.Open(path) //nolint:gosec // the directory of the configured journal
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// append hands a line to the operating system. Its caller applies the entry
// only when this succeeds.
func (j *journal) append(line []byte, seq uint64) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.err != nil {
		return j.err
	}
	if _, err := j.file.Write(line); err != nil {
		j.fail(fmt.Errorf("%w: write: %w", errJournal, err))
		return j.err
	}
	j.written = seq
	j.moved.Broadcast()
	return nil
}

// wait returns when entries up to seq are as durable as configured.
func (j *journal) wait(seq uint64) error {
	if !j.sync {
		return nil
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	for j.durable < seq && j.err == nil {
		j.moved.Wait()
	}
	if j.durable < seq {
		return j.err
	}
	return nil
}

// syncer puts what was written on the disk, one sync for all that wait.
func (j *journal) syncer() {
	defer close(j.done)
	j.mu.Lock()
	defer j.mu.Unlock()
	for {
		for j.durable == j.written && !j.closing {
			j.moved.Wait()
		}
		if j.durable == j.written || j.err != nil {
			return
		}
		target := j.written
		j.mu.Unlock()
		err := j.file.Sync()
		j.mu.Lock()
		if err != nil {
			j.fail(fmt.Errorf("%w: sync: %w", errJournal, err))
			return
		}
		j.durable = target
		j.moved.Broadcast()
	}
}

func (j *journal) fail(err error) {
	j.err = err
	j.moved.Broadcast()
}

// close ends the syncer after its last sync and closes the file.
func (j *journal) close() error {
	j.mu.Lock()
	j.closing = true
	j.moved.Broadcast()
	j.mu.Unlock()
	<-j.done
	if err := j.file.Close(); err != nil {
		return fmt.Errorf("close journal: %w", err)
	}
	return nil
}
