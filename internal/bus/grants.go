package bus

import (
	"strings"

	"github.com/amends-dev/amends/internal/roles"
)

// grants are the subjects the manifest lets a service publish and subscribe.
type grants struct{ publish, subscribe []string }

func grantsOf(m roles.Manifest, r roles.Role, prefix string) grants {
	return grants{publish: PublishGrants(m, r, prefix), subscribe: SubscribeGrants(r)}
}

// PublishGrants lists every subject (with wildcards) a role may publish to: its
// messages, and the parts of the API its reads, consumers and watches need.
func PublishGrants(m roles.Manifest, r roles.Role, prefix string) []string {
	out := append([]string(nil), r.Publishes...)
	for _, s := range r.LeaderReads {
		out = append(out, prefix+".STREAM.MSG.GET."+s)
	}
	for _, d := range r.DirectReads {
		out = append(out, prefix+".DIRECT.GET."+d.Stream+"."+d.Filter)
	}
	for _, c := range m.ConsumersOf(r.Service) {
		name := c.Stream + "." + c.Name
		out = append(out, prefix+".CONSUMER.INFO."+name, prefix+".CONSUMER.MSG.NEXT."+name, "$JS.ACK."+name+".>")
		if c.Resettable {
			out = append(out, prefix+".CONSUMER.RESET."+name)
		}
	}
	for _, name := range r.Watches {
		if c, ok := m.Consumer(name); ok {
			out = append(out, prefix+".CONSUMER.INFO."+c.Stream+"."+c.Name)
		}
	}
	return out
}

// SubscribeGrants lists every subject a role may subscribe to.
func SubscribeGrants(r roles.Role) []string {
	return append([]string{InboxPrefix(r.Service) + ".>"}, r.Live...)
}

func (g grants) allow(kind, subj string) bool {
	list := g.publish
	if strings.EqualFold(kind, "subscription") {
		list = g.subscribe
	}
	for _, pattern := range list {
		if covers(pattern, subj) {
			return true
		}
	}
	return false
}

// covers reports whether every subject that matches subj matches pattern.
func covers(pattern, subj string) bool {
	p, s := strings.Split(pattern, "."), strings.Split(subj, ".")
	for i, tok := range p {
		switch {
		case tok == ">":
			return len(s) > i
		case i >= len(s), s[i] == ">":
			return false
		case tok != "*" && tok != s[i]:
			return false
		}
	}
	return len(p) == len(s)
}
