package webhook

import (
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"syscall"
)

// maxURL bounds an endpoint's URL, in bytes.
const maxURL = 2048

// errAddress: a name led to an address that is not for webhooks.
var errAddress = errors.New("not a public address")

// special are the ranges of IANA's special-purpose registries that lie within
// what is otherwise public: everything of IPv4, and 2000::/3 of IPv6.
var special = prefixes(
	"0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12", "192.0.0.0/24", "192.0.2.0/24",
	"192.31.196.0/24", "192.52.193.0/24", "192.88.99.0/24", "192.168.0.0/16", "192.175.48.0/24", "198.18.0.0/15", "198.51.100.0/24",
	"203.0.113.0/24", "224.0.0.0/4", "240.0.0.0/4",
	"2001::/23", "2001:db8::/32", "2002::/16", "2620:4f:8000::/48", "3fff::/20",
)

var globalIPv6 = netip.MustParsePrefix("2000::/3")

func prefixes(texts ...string) []netip.Prefix {
	out := make([]netip.Prefix, len(texts))
	for i, t := range texts {
		out[i] = netip.MustParsePrefix(t)
	}
	return out
}

// Public reports whether an address belongs to the public Internet. An IPv4
// address inside an IPv6 one, mapped or translated, does not.
func Public(a netip.Addr) bool {
	if !a.IsValid() || a.Zone() != "" || a.Is6() && !globalIPv6.Contains(a) {
		return false
	}
	for _, p := range special {
		if p.Contains(a) {
			return false
		}
	}
	return true
}

// publicOnly is a dialer's last word: it sees the address that is connected to.
func publicOnly(_, address string, _ syscall.RawConn) error {
	to, err := netip.ParseAddrPort(address)
	if err != nil || !Public(to.Addr()) {
		return errAddress
	}
	return nil
}

// CheckURL says what is wrong with an endpoint's URL. With private it may be
// plain http and lead anywhere.
func CheckURL(text string, private bool) error {
	u, err := url.Parse(text)
	switch {
	case len(text) > maxURL:
		return fmt.Errorf("url: more than %d bytes", maxURL)
	case err != nil: // its text would quote what may be a credential
		return errors.New("url: not a URL")
	case u.Scheme != "https" && (u.Scheme != "http" || !private):
		return errors.New("url: want https")
	case u.Hostname() == "" || u.Opaque != "":
		return errors.New("url: no host")
	case u.User != nil:
		return errors.New("url: holds a credential")
	case u.Fragment != "":
		return errors.New("url: has a fragment")
	}
	if a, err := netip.ParseAddr(u.Hostname()); err == nil && !private && !Public(a) {
		return fmt.Errorf("url: %w", errAddress)
	}
	return nil
}
