package casestore

import (
	"errors"
	"fmt"

	"google.golang.org/protobuf/proto"

	"github.com/amends-dev/amends/internal/envelope"
	"github.com/amends-dev/amends/internal/ident"
	"github.com/amends-dev/amends/internal/subject"
	amendsv1 "github.com/amends-dev/amends/proto/amends/v1"
)

// What a store answers; tested with errors.Is.
var (
	// ErrNotFound: there is no such case.
	ErrNotFound = errors.New("no such case")
	// ErrConflict: another commit came first; load the case and decide again.
	ErrConflict = errors.New("the case has moved on")
	// ErrUncertain: the commit may have been stored; load the case and look.
	ErrUncertain = errors.New("the commit may have been stored")
	// ErrInvalid: the commit breaks the schema or the size limit. Trying again
	// does not help.
	ErrInvalid = errors.New("not a valid commit")
)

// MaxSize is the largest commit, in bytes. It leaves room for headers below
// the stream's limit of 512 KiB a message.
const MaxSize = 480 << 10

// maxLog bounds how many commits of one case Log reads; a record's own limits
// end a case long before.
const maxLog = 4096

// Snapshot is a case as it was read.
type Snapshot struct {
	Record *amendsv1.CaseRecord
	// Seq is what the next commit has to expect.
	Seq uint64
}

// encode checks a commit and gives its subject and bytes.
func encode(c *amendsv1.CaseCommit) (subj string, data []byte, err error) {
	r := c.GetRecord()
	if err := ident.Tokens("tenant", r.GetTenant(), "case", r.GetCaseId()); err != nil {
		return "", nil, fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	if err := envelope.ValidateCommit(c); err != nil {
		return "", nil, fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	if r.GetVersion() < c.GetFirstVersion() {
		return "", nil, fmt.Errorf("%w: it ends at version %d, before its first %d", ErrInvalid, r.GetVersion(), c.GetFirstVersion())
	}
	data, err = proto.MarshalOptions{Deterministic: true}.Marshal(c)
	switch {
	case err != nil:
		return "", nil, fmt.Errorf("%w: %w", ErrInvalid, err)
	case len(data) > MaxSize:
		return "", nil, fmt.Errorf("%w: %d bytes, at most %d", ErrInvalid, len(data), MaxSize)
	}
	return subject.Case(r.GetTenant(), r.GetCaseId()), data, nil
}

// where gives the subject of a case that somebody asks for. An id that cannot
// be a token belongs to no case.
func where(tenant, caseID string) (string, error) {
	if err := ident.Tokens("tenant", tenant, "case", caseID); err != nil {
		return "", fmt.Errorf("%w: %w", ErrNotFound, err)
	}
	return subject.Case(tenant, caseID), nil
}

// decode reads a stored commit. It does not apply today's schema rules: a
// stored commit is history, valid by the rules of its time.
func decode(data []byte, seq uint64) (*amendsv1.CaseCommit, error) {
	c := new(amendsv1.CaseCommit)
	if err := proto.Unmarshal(data, c); err != nil {
		return nil, fmt.Errorf("decode the commit at sequence %d: %w", seq, err)
	}
	if c.GetRecord() == nil {
		return nil, fmt.Errorf("decode the commit at sequence %d: it has no record", seq)
	}
	return c, nil
}
