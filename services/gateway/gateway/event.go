package gateway

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/amends-dev/amends/internal/ident"
)

// providerEvent is a webhook of the payments provider.
type providerEvent struct {
	kind, tenant, order, object string
	// reference is what the executor gave the refund it asked for, if it is
	// about one.
	reference string
}

const maxKind, maxReference = 64, 160

// decodeEvent reads what the desk knows of an event strictly; members it does
// not know are left alone, for a provider adds some.
func decodeEvent(body []byte) (providerEvent, error) {
	var ev providerEvent
	event, err := members(body)
	if err != nil {
		return ev, err
	}
	data, err := members(event["data"])
	if err != nil {
		return ev, fmt.Errorf("data: %w", err)
	}
	for _, m := range []struct {
		into   *string
		from   map[string]json.RawMessage
		name   string
		needed bool
		most   int
	}{
		{&ev.kind, event, "type", true, maxKind},
		{&ev.tenant, data, "tenant", true, ident.MaxToken},
		{&ev.order, data, "order_id", true, ident.MaxToken},
		{&ev.object, data, "object_id", true, ident.MaxToken},
		{&ev.reference, data, "reference", false, maxReference},
	} {
		raw, ok := m.from[m.name]
		if !ok && !m.needed {
			continue
		}
		if !ok || !bytes.HasPrefix(raw, []byte{'"'}) || json.Unmarshal(raw, m.into) != nil || len(*m.into) > m.most || *m.into == "" && m.needed {
			return providerEvent{}, fmt.Errorf("%s is not a text of 1 to %d bytes", m.name, m.most)
		}
	}
	if err := ident.Tokens("tenant", ev.tenant, "order_id", ev.order, "object_id", ev.object); err != nil {
		return providerEvent{}, err // B55
	}
	return ev, nil
}

// members reads one JSON object in UTF-8, each name once, and nothing after it.
func members(text []byte) (map[string]json.RawMessage, error) {
	if !utf8.Valid(text) {
		return nil, errors.New("not UTF-8")
	}
	dec := json.NewDecoder(bytes.NewReader(text))
	if t, err := dec.Token(); err != nil || t != json.Delim('{') {
		return nil, errors.New("not a JSON object")
	}
	out := map[string]json.RawMessage{}
	for dec.More() {
		name, err := dec.Token()
		if err != nil {
			return nil, errors.New("not valid JSON")
		}
		key, _ := name.(string)
		if _, twice := out[key]; twice {
			return nil, errors.New("a member is given twice")
		}
		var value json.RawMessage
		if err := dec.Decode(&value); err != nil {
			return nil, errors.New("not valid JSON")
		}
		out[key] = value
	}
	if _, err := dec.Token(); err != nil { // the closing brace
		return nil, errors.New("not valid JSON")
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("something follows the JSON object")
	}
	return out, nil
}

// ownCase gives the case whose refund an event is about, or nothing. The
// reference is the executor's: refund:{case}:{payment}.
func (ev providerEvent) ownCase() string {
	if !strings.HasPrefix(ev.kind, refundFamily) {
		return ""
	}
	parts := strings.Split(ev.reference, ":")
	if len(parts) != 3 || parts[0] != "refund" || ident.Token(parts[1]) != nil || ident.Token(parts[2]) != nil {
		return ""
	}
	return parts[1]
}
