package identity

import (
	"encoding/base64"
	"encoding/json"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
)

// MaxToken bounds a token, in bytes.
const MaxToken = 8 << 10

// header is what of a token's first part matters here.
type header struct{ alg, typ string }

// Claims are what a token says.
type Claims struct {
	Issuer   string
	Audience []string
	members  map[string]json.RawMessage
}

// Peek reads what a token says of itself, before anything is verified: good for
// choosing who verifies it and for nothing else. It reports false for what has
// not the shape of a signed token with an issuer.
func Peek(token string) (Claims, bool) {
	_, payload, err := take(token)
	if err != nil {
		return Claims{}, false
	}
	c, err := readClaims(payload)
	return c, err == nil && c.Issuer != ""
}

// take splits a token in compact form.
func take(token string) (header, []byte, error) {
	if len(token) > MaxToken {
		return header{}, nil, refuse(Oversized)
	}
	parts := strings.SplitN(token, ".", 4)
	if len(parts) != 3 || slices.Contains(parts[:2], "") {
		return header{}, nil, refuse(Malformed)
	}
	head, err := decodePart(parts[0])
	if err != nil {
		return header{}, nil, err
	}
	payload, err := decodePart(parts[1])
	if err != nil {
		return header{}, nil, err
	}
	members, err := object(head)
	if err != nil {
		return header{}, nil, err
	}
	h := header{}
	if h.alg, err = text(members["alg"]); err != nil {
		return header{}, nil, err
	}
	if h.typ, err = text(members["typ"]); err != nil {
		return header{}, nil, err
	}
	return h, payload, nil
}

func decodePart(s string) ([]byte, error) {
	// The decoder would skip line ends.
	if strings.ContainsAny(s, "\r\n") {
		return nil, refuse(Malformed)
	}
	data, err := base64.RawURLEncoding.DecodeString(s)
	if err != nil {
		return nil, refuse(Malformed)
	}
	return data, nil
}

// object reads a JSON object with its names exactly as they are: encoding/json
// would take ISS for iss.
func object(data []byte) (map[string]json.RawMessage, error) {
	var members map[string]json.RawMessage
	if err := json.Unmarshal(data, &members); err != nil || members == nil {
		return nil, refuse(Malformed)
	}
	return members, nil
}

// text reads a string, or nothing where there is none.
func text(member json.RawMessage) (string, error) {
	if member == nil {
		return "", nil
	}
	var s *string
	if err := json.Unmarshal(member, &s); err != nil || s == nil {
		return "", refuse(Malformed)
	}
	return *s, nil
}

// texts reads a string or several.
func texts(member json.RawMessage) ([]string, error) {
	if s, err := text(member); err == nil {
		if member == nil {
			return nil, nil
		}
		return []string{s}, nil
	}
	var list []*string
	if err := json.Unmarshal(member, &list); err != nil || slices.Contains(list, nil) {
		return nil, refuse(Malformed)
	}
	out := make([]string, 0, len(list))
	for _, s := range list {
		out = append(out, *s)
	}
	return out, nil
}

func readClaims(payload []byte) (Claims, error) {
	members, err := object(payload)
	if err != nil {
		return Claims{}, err
	}
	c := Claims{members: members}
	if c.Issuer, err = text(members["iss"]); err != nil {
		return Claims{}, err
	}
	c.Audience, err = texts(members["aud"])
	return c, err
}

// Text gives a claim that is a string; empty when there is none.
func (c Claims) Text(name string) string {
	s, _ := text(c.members[name]) // what is no string says nothing
	return s
}

// Holds reports a claim that is the value, or a list with it.
func (c Claims) Holds(name, value string) bool {
	list, err := texts(c.members[name])
	return err == nil && slices.Contains(list, value)
}

// Scoped reports a scope: a word of the claim scope, or of scp, which some
// issuers write instead, as words or as a list.
func (c Claims) Scoped(scope string) bool {
	return slices.Contains(strings.Fields(c.Text("scope")), scope) ||
		slices.Contains(strings.Fields(c.Text("scp")), scope) || c.Holds("scp", scope)
}

func (c Claims) has(name string) bool { return c.members[name] != nil }

// latest is the end of what a date may say: the year 9999.
const latest = 253402300799

// moment reads a numeric date; ok is false where it is none.
func (c Claims) moment(name string) (t time.Time, ok bool) {
	number := string(c.members[name])
	seconds, err := strconv.ParseInt(number, 10, 64)
	if err != nil {
		f, err := strconv.ParseFloat(number, 64)
		if err != nil || math.IsNaN(f) || f < 0 || f > latest {
			return time.Time{}, false
		}
		seconds = int64(f)
	}
	if seconds < 0 || seconds > latest {
		return time.Time{}, false
	}
	return time.Unix(seconds, 0), true
}
