package sandbox

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"
)

// decode reads exactly one JSON value, and refuses what encoding/json lets
// pass: invalid UTF-8, anything after the value, unknown names, names given
// twice, and names that match only without regard to case. Two readers of the
// same bytes must not disagree on the amount.
func decode(data []byte, into any) error {
	if !utf8.Valid(data) {
		return errors.New("not UTF-8")
	}
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		return fmt.Errorf("decode JSON: %w", err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return errors.New("decode JSON: something follows the value")
	}
	return checkNames(json.NewDecoder(bytes.NewReader(data)))
}

// checkNames walks one value that is known to be well formed and shallow.
func checkNames(d *json.Decoder) error {
	token, err := d.Token()
	if err != nil {
		return err
	}
	delim, nested := token.(json.Delim)
	if !nested {
		return nil
	}
	seen := make(map[string]bool, 8)
	for d.More() {
		if delim == '{' {
			token, err := d.Token()
			if err != nil {
				return err
			}
			name, _ := token.(string)
			if seen[name] {
				return fmt.Errorf("decode JSON: %q is given twice", name)
			}
			if strings.Trim(name, "abcdefghijklmnopqrstuvwxyz0123456789_") != "" {
				return fmt.Errorf("decode JSON: unknown name %q", name)
			}
			seen[name] = true
		}
		if err := checkNames(d); err != nil {
			return err
		}
	}
	_, err = d.Token() // the closing delimiter
	return err
}
