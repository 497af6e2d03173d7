package broker

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/amends-dev/amends/internal/ident"
	"github.com/amends-dev/amends/internal/roles"
)

// Check reports every way in which a manifest does not hold together: subjects
// that are no rules ("name-*" is not a wildcard), grants outside of any stream,
// writers that do not match the grants, consumers nobody may pull.
func Check(m roles.Manifest) error {
	var l lint
	for _, s := range m.Streams {
		l.token("stream name", s.Name)
		l.subjects("stream "+s.Name, s.Subjects)
		if s.RepublishTo != "" && !strings.HasSuffix(s.RepublishTo, ".") {
			l.add("stream %s: republish prefix %q does not end in a dot", s.Name, s.RepublishTo)
		}
		l.writers(m, s)
	}
	for _, c := range m.Consumers {
		where := "consumer " + c.Name
		l.token(where, c.Name)
		l.subjects(where, []string{c.Filter})
		if s, ok := m.Stream(c.Stream); !ok || !inside(s.Subjects, c.Filter) {
			l.add("%s: filter %q is not in stream %q", where, c.Filter, c.Stream)
		}
		if _, ok := m.Role(c.Service); !ok {
			l.add("%s: no service %q", where, c.Service)
		}
		if c.AckWait <= 0 || c.MaxAckPending <= 0 {
			l.add("%s: needs an AckWait and a MaxAckPending", where)
		}
	}
	for _, r := range m.Roles {
		l.role(m, r)
	}
	return errors.Join(l.errs...)
}

type lint struct{ errs []error }

func (l *lint) add(format string, args ...any) { l.errs = append(l.errs, fmt.Errorf(format, args...)) }

func (l *lint) token(where, s string) {
	if err := ident.Token(s); err != nil {
		l.add("%s: %w", where, err)
	}
}

// subjects accepts plain tokens and "*" as a whole token; ">" would grant what
// nobody listed.
func (l *lint) subjects(where string, list []string) {
	for _, s := range list {
		for tok := range strings.SplitSeq(s, ".") {
			if tok != "*" && ident.Token(tok) != nil {
				l.add("%s: subject %q: %q is neither a name nor a wildcard", where, s, tok)
			}
		}
	}
}

func (l *lint) role(m roles.Manifest, r roles.Role) {
	where := "service " + string(r.Service)
	l.token(where, string(r.Service))
	l.subjects(where, slices.Concat(r.Publishes, r.Live))
	for _, p := range r.Publishes {
		if !slices.ContainsFunc(m.Streams, func(s roles.Stream) bool { return inside(s.Subjects, p) }) {
			l.add("%s: publishes %q, which no stream holds", where, p)
		}
	}
	for _, name := range r.LeaderReads {
		if _, ok := m.Stream(name); !ok {
			l.add("%s: reads stream %q, which does not exist", where, name)
		}
	}
	for _, d := range r.DirectReads {
		l.subjects(where, []string{d.Filter})
		if s, ok := m.Stream(d.Stream); !ok || !inside(s.Subjects, d.Filter) {
			l.add("%s: reads %q of stream %q, which does not hold it", where, d.Filter, d.Stream)
		}
	}
	for _, name := range r.Watches {
		if c, ok := m.Consumer(name); !ok || c.Service == r.Service {
			l.add("%s: watches %q, which is no consumer of another service", where, name)
		}
	}
	for _, p := range r.Live {
		if !slices.Contains(republished(m), p) {
			l.add("%s: listens to %q, which no stream republishes", where, p)
		}
	}
}

// writers compares the writers a stream names with who may publish to it.
func (l *lint) writers(m roles.Manifest, s roles.Stream) {
	for _, r := range m.Roles {
		grants := slices.ContainsFunc(r.Publishes, func(p string) bool { return inside(s.Subjects, p) })
		if named := slices.Contains(s.Writers, r.Service); named != grants {
			l.add("stream %s: %s is named as a writer: %t; may publish to it: %t", s.Name, r.Service, named, grants)
		}
	}
	if s.Schedules && len(s.Writers) != 1 {
		l.add("stream %s: allows schedules, and with them roll-up, so it must have exactly one writer", s.Name)
	}
}

// republished lists the live subjects of all streams.
func republished(m roles.Manifest) []string {
	var out []string
	for _, s := range m.Streams {
		if s.RepublishTo == "" {
			continue
		}
		for _, subj := range s.Subjects {
			out = append(out, s.RepublishTo+subj)
		}
	}
	return out
}

// inside reports whether one of the patterns covers subj whole.
func inside(patterns []string, subj string) bool {
	return slices.ContainsFunc(patterns, func(p string) bool {
		a, b := strings.Split(p, "."), strings.Split(subj, ".")
		if len(a) != len(b) {
			return false
		}
		for i := range a {
			if a[i] != "*" && a[i] != b[i] {
				return false
			}
		}
		return true
	})
}
