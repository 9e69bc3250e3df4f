// Package workloads registers clients outside the fleet (VMs, bare metal, pods of another network) by their addresses:
// who may register what, what a full sync would change, and in which order it is written. The ExternalWorkload objects
// in the host cluster, behind Cluster, are the only stored form.
package workloads

import (
	"errors"
	"net/netip"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/acp-io/acp/internal/message"
	"github.com/acp-io/acp/internal/policy"
)

// Limits of one call and of one workload.
const (
	// MaxPut is the maximum number of workloads in one call.
	MaxPut = 1_000
	// MaxSync is the maximum number of workloads in a full sync.
	MaxSync = 50_000
	// MaxAddresses is the maximum number of addresses of one workload.
	MaxAddresses = 64
	maxText      = 500
	// Prefixes with fewer bits are networks rather than machines. Access for a network is a grant to an address range,
	// which needs approval.
	widest4, widest6 = 24, 64
)

// Portal is the source of the workloads that people register.
const Portal = "portal"

// Workload is a client outside the fleet.
type Workload struct {
	// ID is unique within the source, for example the name of the machine. It is a DNS name.
	ID string
	// Source is the name of the source that registers the workload, a DNS label. Only this source changes it.
	Source string
	// Subject is the resource name of the application that the workload acts as.
	Subject string
	// Addresses are the addresses or prefixes from which it connects, in their shortest form, sorted.
	Addresses   []string
	Description string
}

// Name returns the name of its object in the host cluster. A source has no dot, so names are unique.
func (w Workload) Name() string { return w.Source + "." + w.ID }

// equal reports whether two normalized workloads have the same content.
func (w Workload) equal(o Workload) bool {
	return w.Name() == o.Name() && w.Subject == o.Subject && w.Description == o.Description && slices.Equal(w.Addresses, o.Addresses)
}

// prefixes returns the addresses of a normalized workload as prefixes.
func (w Workload) prefixes() []netip.Prefix {
	out := make([]netip.Prefix, 0, len(w.Addresses))
	for _, a := range w.Addresses {
		if p, err := prefix(a); err == nil { // Objects that were not registered here may contain anything.
			out = append(out, p)
		}
	}
	return out
}

// widestCount is the number of addresses that the widest prefix counts as, for IPv6 as for IPv4.
const widestCount = 1 << (32 - widest4)

// count returns the number of addresses of a workload. An IPv6 prefix counts like the IPv4 prefix with the same number
// of free bits, and at most as widestCount.
func (w Workload) count() int {
	n := 0
	for _, p := range w.prefixes() {
		n += min(1<<min(p.Addr().BitLen()-p.Bits(), 32-widest4), widestCount)
	}
	return n
}

// groupBytes returns the number of bytes that the addresses of a workload take in their application's group of addresses, as JSON.
func (w Workload) groupBytes() int {
	n := 0
	for _, p := range w.prefixes() {
		n += len(p.String()) + len(`"",`)
	}
	return n
}

// usage is what workloads use of the bounds of their application.
type usage struct{ addresses, bytes int }

func (w Workload) usage() usage { return usage{w.count(), w.groupBytes()} }

func (u usage) plus(o usage) usage { return usage{u.addresses + o.addresses, u.bytes + o.bytes} }

func (u usage) minus(o usage) usage { return usage{u.addresses - o.addresses, u.bytes - o.bytes} }

// ranges returns the address ranges that a workload has and another one does not.
func (w Workload) ranges(before Workload) []netip.Prefix {
	had := before.prefixes()
	return slices.DeleteFunc(w.prefixes(), func(p netip.Prefix) bool {
		return p.IsSingleIP() || before.Subject == w.Subject && slices.Contains(had, p)
	})
}

// Errors that callers handle differently.
var (
	// ErrForbidden means that the caller may not register or remove the workload.
	ErrForbidden = errors.New("not allowed")
	// ErrUnknown means that the host cluster has not been read yet.
	ErrUnknown = message.WorkloadHostNotSeen().Err()
	// ErrUnconfirmed means that a sync would remove so much that it needs a confirmation.
	ErrUnconfirmed = errors.New("it has to be confirmed")
	// ErrChanged means that a sync would change something else than its preview showed.
	ErrChanged = errors.New("the workloads have changed since")
	// ErrInvalid means that the input is not valid.
	ErrInvalid = errors.New("invalid")
)

var idPattern = regexp.MustCompile(`^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$`)

func checkSource(source string) error {
	if problems := validation.IsDNS1123Label(source); len(problems) > 0 {
		return message.WorkloadSourceInvalid(source).Wrap(ErrInvalid)
	}
	return nil
}

// normalize returns the workload in its normal form, or why it is refused.
func (w Workload) normalize() (Workload, error) {
	if !idPattern.MatchString(w.ID) || len(validation.IsDNS1123Subdomain(w.Name())) > 0 {
		return w, message.WorkloadIDInvalid().Err()
	}
	n, err := policy.ParseName(w.Subject)
	if err != nil {
		return w, err
	}
	if n.Wildcard || n.IsPrefix() {
		return w, message.WorkloadSubjectInvalid(w.Subject).Err()
	}
	if len(w.Description) > maxText || !utf8.ValidString(w.Description) || strings.ContainsFunc(w.Description, unicode.IsControl) {
		return w, message.WorkloadDescriptionInvalid(maxText).Err()
	}
	if len(w.Addresses) == 0 || len(w.Addresses) > MaxAddresses {
		return w, message.WorkloadAddressCount(MaxAddresses).Err()
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

// prefix parses an address or a prefix that can belong to a machine.
func prefix(text string) (netip.Prefix, error) {
	var p netip.Prefix
	if a, err := netip.ParseAddr(text); err == nil {
		if a.Zone() != "" {
			return p, message.WorkloadAddressZone(text).Err()
		}
		p = netip.PrefixFrom(a, a.BitLen())
	} else if p, err = netip.ParsePrefix(text); err != nil {
		return p, message.WorkloadAddressInvalid(text).Err()
	}
	a := p.Addr()
	widest := widest4
	if a.Is6() {
		widest = widest6
	}
	switch {
	case a.Is4In6():
		return p, message.WorkloadAddressMapped(text).Err()
	case p != p.Masked():
		return p, message.WorkloadHostBits(text, p.Masked().String(), a.String()).Err()
	case p.Bits() < widest:
		return p, message.WorkloadTooWide(text, widest).Err()
	case a.IsUnspecified() || a.IsLoopback() || a.IsMulticast() || a.IsLinkLocalUnicast() || a == netip.AddrFrom4([4]byte{255, 255, 255, 255}):
		return p, message.WorkloadNotAClient(text).Err()
	}
	return p, nil
}
