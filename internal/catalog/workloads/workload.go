// Package workloads registers clients outside the fleet (VMs, bare metal, pods of another network) by their addresses:
// who may register what, what a full sync would change, and in which order it is written. The truth is the
// ExternalWorkload objects in the host cluster, behind Cluster; nothing is kept twice.
package workloads

import (
	"errors"
	"fmt"
	"net/netip"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/acp-io/acp/internal/policy"
)

// Limits of one call and of one workload.
const (
	MaxPut       = 1_000
	MaxSync      = 50_000
	MaxAddresses = 64
	maxText      = 500
	// Wider prefixes than these are no machines; access for a network is a grant to a prefix, which is approved.
	widest4, widest6 = 24, 64
)

// Portal is the source of what people register.
const Portal = "portal"

// Workload is a client outside the fleet.
type Workload struct {
	// ID within its source, for example the name of the machine: a DNS name.
	ID string
	// Source that registers it: a DNS label. It is the only one that changes it.
	Source string
	// Subject is the resource name of the application that it acts as.
	Subject string
	// Addresses or prefixes that it connects from, in their shortest form, sorted.
	Addresses   []string
	Description string
}

// Name of its object in the host cluster. A source has no dot, so two workloads never share one.
func (w Workload) Name() string { return w.Source + "." + w.ID }

// same tells whether two normal workloads say the same.
func (w Workload) same(o Workload) bool {
	return w.Name() == o.Name() && w.Subject == o.Subject && w.Description == o.Description && slices.Equal(w.Addresses, o.Addresses)
}

// prefixes of a normal workload.
func (w Workload) prefixes() []netip.Prefix {
	out := make([]netip.Prefix, 0, len(w.Addresses))
	for _, a := range w.Addresses {
		if p, err := prefix(a); err == nil { // objects of others may have anything
			out = append(out, p)
		}
	}
	return out
}

// widestCount is how many addresses the widest prefix counts, in IPv6 as in IPv4.
const widestCount = 1 << (32 - widest4)

// count of the addresses of a workload. An IPv6 prefix counts as the IPv4 prefix with as many free bits, and at most as
// widestCount.
func (w Workload) count() int {
	n := 0
	for _, p := range w.prefixes() {
		n += min(1<<min(p.Addr().BitLen()-p.Bits(), 32-widest4), widestCount)
	}
	return n
}

// ranges that a workload has and another one does not.
func (w Workload) ranges(before Workload) []netip.Prefix {
	had := before.prefixes()
	return slices.DeleteFunc(w.prefixes(), func(p netip.Prefix) bool {
		return p.IsSingleIP() || before.Subject == w.Subject && slices.Contains(had, p)
	})
}

// Errors that a caller decides on.
var (
	ErrForbidden = errors.New("not allowed")
	// ErrUnknown means that the host cluster was not seen yet.
	ErrUnknown = errors.New("the host cluster was not seen yet, try again in a moment")
	// ErrUnconfirmed means that so much would go that it has to be confirmed.
	ErrUnconfirmed = errors.New("it has to be confirmed")
	// ErrChanged means that what would go is not what the preview showed.
	ErrChanged = errors.New("the workloads have changed since")
	ErrInvalid = errors.New("invalid")
)

var idPattern = regexp.MustCompile(`^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$`)

func checkSource(source string) error {
	if problems := validation.IsDNS1123Label(source); len(problems) > 0 {
		return fmt.Errorf("source %q must be a DNS label, such as vm-platform: %w", source, ErrInvalid)
	}
	return nil
}

// normal is the workload in its one form, or why it cannot be taken.
func (w Workload) normal() (Workload, error) {
	if !idPattern.MatchString(w.ID) || len(validation.IsDNS1123Subdomain(w.Name())) > 0 {
		return w, errors.New("the id must be a DNS name of at most 200 characters, such as vm-17.rack-4")
	}
	n, err := policy.ParseName(w.Subject)
	if err != nil {
		return w, err
	}
	if n.Wildcard || n.IsPrefix() {
		return w, fmt.Errorf("the subject %q must be one exact name", w.Subject)
	}
	if len(w.Description) > maxText || !utf8.ValidString(w.Description) || strings.ContainsFunc(w.Description, unicode.IsControl) {
		return w, fmt.Errorf("the description must be one line of at most %d bytes", maxText)
	}
	if len(w.Addresses) == 0 || len(w.Addresses) > MaxAddresses {
		return w, fmt.Errorf("it needs 1 to %d addresses", MaxAddresses)
	}
	var prefixes []netip.Prefix
	for _, text := range w.Addresses {
		p, err := prefix(text)
		if err != nil {
			return w, err
		}
		prefixes = append(prefixes, p)
	}
	slices.SortFunc(prefixes, netip.Prefix.Compare)
	w.Addresses = nil
	for _, p := range slices.Compact(prefixes) {
		if p.IsSingleIP() {
			w.Addresses = append(w.Addresses, p.Addr().String())
		} else {
			w.Addresses = append(w.Addresses, p.String())
		}
	}
	return w, nil
}

// prefix reads an address or a prefix that can be a machine's.
func prefix(text string) (netip.Prefix, error) {
	var p netip.Prefix
	if a, err := netip.ParseAddr(text); err == nil {
		if a.Zone() != "" {
			return p, fmt.Errorf("%q: leave the zone out", text)
		}
		p = netip.PrefixFrom(a, a.BitLen())
	} else if p, err = netip.ParsePrefix(text); err != nil {
		return p, fmt.Errorf("%q is no address: write one such as 10.5.0.7, or a prefix such as 10.5.0.0/28", text)
	}
	a := p.Addr()
	widest := widest4
	if a.Is6() {
		widest = widest6
	}
	switch {
	case a.Is4In6():
		return p, fmt.Errorf("%q: write IPv4 as 10.5.0.7", text)
	case p != p.Masked():
		return p, fmt.Errorf("%q has host bits: write %s, or %s for the machine alone", text, p.Masked(), a)
	case p.Bits() < widest:
		return p, fmt.Errorf("%q is wider than /%d: register machines; ask for access of a network by a request", text, widest)
	case a.IsUnspecified() || a.IsLoopback() || a.IsMulticast() || a.IsLinkLocalUnicast() || a == netip.AddrFrom4([4]byte{255, 255, 255, 255}):
		return p, fmt.Errorf("%q is no address that a machine connects from", text)
	}
	return p, nil
}
