package casefile

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strings"
	"unicode/utf8"
)

// maxLine bounds one line of a file, and maxCases the file.
const (
	maxLine  = 16 << 20
	maxCases = 100_000
)

// Entry is one line of a file: a case, or why it is none.
type Entry struct {
	Line int
	// ID names the case; a line without one that could be read is "line 7".
	ID   string
	Case *Case
	Err  error
}

// Read gives the entries of a file. An error says that the file itself cannot
// be read; what is wrong with a line is in its entry.
func Read(r io.Reader) ([]Entry, error) {
	in := bufio.NewScanner(r)
	in.Buffer(make([]byte, 64<<10), maxLine)
	var out []Entry
	seen := map[string]int{}
	line := 0
	for in.Scan() {
		line++
		text := bytes.TrimSpace(in.Bytes())
		if line == 1 {
			text = bytes.TrimPrefix(text, []byte("\ufeff"))
		}
		if len(text) == 0 {
			continue
		}
		if len(out) == maxCases {
			return nil, fmt.Errorf("line %d: more than %d cases", line, maxCases)
		}
		e := entry(line, text)
		if first, twice := seen[e.ID]; twice {
			e.Case, e.Err = nil, fmt.Errorf("line %d: id %s stands on line %d too", line, e.ID, first)
		} else {
			seen[e.ID] = line
		}
		out = append(out, e)
	}
	if err := in.Err(); err != nil {
		if errors.Is(err, bufio.ErrTooLong) {
			err = fmt.Errorf("longer than %d bytes", maxLine)
		}
		return nil, fmt.Errorf("line %d: %w", line+1, err)
	}
	return out, nil
}

func entry(line int, text []byte) Entry {
	c, id, err := decodeCase(text)
	if id == "" {
		id = fmt.Sprintf("line %d", line)
	}
	if err != nil {
		return Entry{Line: line, ID: id, Err: fmt.Errorf("line %d: %w", line, err)}
	}
	c.Line = line
	return Entry{Line: line, ID: id, Case: c}
}

// decode reads one JSON object into a struct and names the members the struct
// does not have. Nothing may follow the object.
func decode(text []byte, into any) (unknown []string, err error) {
	if !utf8.Valid(text) {
		return nil, errors.New("not UTF-8")
	}
	d := json.NewDecoder(bytes.NewReader(text))
	if err := d.Decode(into); err != nil {
		return nil, plainly(err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("something follows the JSON object")
	}
	var members map[string]json.RawMessage
	if err := json.Unmarshal(text, &members); err != nil {
		return nil, plainly(err)
	}
	known := membersOf(into)
	for name := range members {
		if !slices.ContainsFunc(known, func(k string) bool { return strings.EqualFold(k, name) }) {
			unknown = append(unknown, name)
		}
	}
	slices.Sort(unknown)
	return unknown, nil
}

// membersOf names the JSON members of a pointer to a struct.
func membersOf(into any) []string {
	t := reflect.TypeOf(into).Elem()
	out := make([]string, 0, t.NumField())
	for i := range t.NumField() {
		name, _, _ := strings.Cut(t.Field(i).Tag.Get("json"), ",")
		out = append(out, name)
	}
	return out
}

// plainly says what is wrong with JSON in words for whoever wrote it.
func plainly(err error) error {
	if t, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		return fmt.Errorf("%s: a %s is no %s", t.Field, t.Value, t.Type)
	}
	return fmt.Errorf("not JSON: %w", err)
}
