package policy

import (
	"errors"
	"net/netip"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/acp-io/acp/internal/message"
)

const (
	nameScheme    = "trnv1:rsc:"
	maxNameBytes  = 512
	maxLabelBytes = 63
	// anyone is the subject that stands for every source, including those outside the fleet.
	anyone = "*"
)

// ErrInvalidName is wrapped by every error of ParseName and ParsePrefix.
var ErrInvalidName = errors.New("invalid name")

// Name is a parsed trnv1:rsc:<org>:<service>:<type>:<id>. If Wildcard is set, ID is the text before the final "*", and
// the name covers every name that begins with the same text.
type Name struct {
	Org, Service, Type, ID string
	Wildcard               bool
}

// ParseName parses a name. Its errors wrap ErrInvalidName and say what is wrong.
func ParseName(s string) (Name, error) {
	if len(s) > maxNameBytes {
		return Name{}, message.NameTooLong(maxNameBytes).WithKind(ErrInvalidName)
	}
	rest, ok := strings.CutPrefix(s, nameScheme)
	if !ok {
		return Name{}, message.NameScheme(message.Quoted(s), nameScheme).WithKind(ErrInvalidName)
	}
	var n Name
	for _, field := range [...]struct {
		name  string
		value *string
	}{{"org", &n.Org}, {"service", &n.Service}, {"type", &n.Type}} {
		if *field.value, rest, ok = strings.Cut(rest, ":"); !ok {
			return Name{}, message.NameForm(message.Quoted(s), nameScheme).WithKind(ErrInvalidName)
		}
		if !validDNSLabel(*field.value) {
			return Name{}, message.NamePart(message.Quoted(s), field.name).WithKind(ErrInvalidName)
		}
	}
	n.ID = rest
	if n.ID == "" {
		return Name{}, message.NameNoID(message.Quoted(s)).WithKind(ErrInvalidName)
	}
	n.ID, n.Wildcard = strings.CutSuffix(n.ID, "*")
	if strings.Contains(n.ID, "*") {
		return Name{}, message.NameOneWildcard(message.Quoted(s)).WithKind(ErrInvalidName)
	}
	if !utf8.ValidString(n.ID) || strings.ContainsFunc(n.ID, func(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) }) {
		return Name{}, message.NameCharacters(message.Quoted(s)).WithKind(ErrInvalidName)
	}
	return n, nil
}

// String returns the text form, the inverse of ParseName.
func (n Name) String() string {
	if n.Wildcard {
		return n.stem() + "*"
	}
	return n.stem()
}

// stem returns the name without the wildcard: the text that every covered name begins with.
func (n Name) stem() string {
	return nameScheme + n.Org + ":" + n.Service + ":" + n.Type + ":" + n.ID
}

// Covers reports whether n covers every name that o covers.
func (n Name) Covers(o Name) bool {
	if n.Wildcard {
		return strings.HasPrefix(o.stem(), n.stem())
	}
	return n == o
}

// Overlaps reports whether there is a name that both n and o cover.
func (n Name) Overlaps(o Name) bool { return n.Covers(o) || o.Covers(n) }

// IsPrefix reports whether the name is an address range (service net, type cidr).
func (n Name) IsPrefix() bool { return n.Service == "net" && n.Type == "cidr" }

// ParsePrefix parses the address range of a name for which IsPrefix is true. Host bits and IPv4 written as IPv6 are
// errors, because the intended range would have to be guessed.
func (n Name) ParsePrefix() (netip.Prefix, error) {
	if n.Wildcard {
		return netip.Prefix{}, message.NameRangeWildcard(message.Quoted(n.String())).WithKind(ErrInvalidName)
	}
	p, err := netip.ParsePrefix(n.ID)
	switch {
	case err != nil:
		return netip.Prefix{}, message.NameRangeForm(message.Quoted(n.String())).WithKind(ErrInvalidName)
	case p.Addr().Is4In6():
		return netip.Prefix{}, message.NameRangeIpv4(message.Quoted(n.String())).WithKind(ErrInvalidName)
	case p != p.Masked():
		return netip.Prefix{}, message.NameRangeHostBits(message.Quoted(n.String()), p.Masked().String()).WithKind(ErrInvalidName)
	}
	return p, nil
}

// headOf returns the part of a name up to and including its fifth colon, or "" if it has fewer. All names that a
// wildcard covers have the same head, so it is the key of the wildcard indexes.
func headOf(name string) string {
	colons := 0
	for i := range len(name) {
		if name[i] == ':' {
			if colons++; colons == 5 {
				return name[:i+1]
			}
		}
	}
	return ""
}

// ValidLabelValue reports whether s is a valid value of a pod label that carries a name: 1 to 63 characters of A-Z a-z
// 0-9 - _ . that begin and end with a letter or digit.
func ValidLabelValue(s string) bool {
	if s == "" || len(s) > maxLabelBytes || !alphanumeric(s[0]) || !alphanumeric(s[len(s)-1]) {
		return false
	}
	for i := range len(s) {
		if c := s[i]; !alphanumeric(c) && c != '-' && c != '_' && c != '.' {
			return false
		}
	}
	return true
}

func alphanumeric(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9'
}

func validDNSLabel(s string) bool {
	if s == "" || len(s) > maxLabelBytes || s[0] == '-' || s[len(s)-1] == '-' {
		return false
	}
	for i := range len(s) {
		if c := s[i]; (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '-' {
			return false
		}
	}
	return true
}
