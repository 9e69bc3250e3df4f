package policy

import (
	"net/netip"
	"slices"
	"sync"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/message"
)

// addresses maps sources outside the fleet to the subjects of their ExternalWorkloads.
type addresses struct {
	// owners contains the subjects of each prefix, sorted; more than one is a conflict. The owner noOwner marks a
	// prefix of a workload that is left out: its addresses must not get the identity of a shorter prefix.
	owners map[netip.Prefix][]string
	// bits4 and bits6 are the prefix lengths in use for IPv4 and IPv6, longest first.
	bits4, bits6 []int
	// owned is computed on first use by an enforcer.
	owned func() ownership
	// subjects are all owners, sorted.
	subjects []string
}

// lookup returns the subjects of the longest prefix that contains a.
func (x *addresses) lookup(a netip.Addr) []string {
	if !a.IsValid() || len(x.owners) == 0 {
		return nil
	}
	bits := x.bits6
	if a.Is4() {
		bits = x.bits4
	}
	for _, b := range bits {
		if p, err := a.Prefix(b); err == nil {
			if owners := x.owners[p]; owners != nil {
				return owners
			}
		}
	}
	return nil
}

// normalAddress removes the zone, and converts IPv4 written as IPv6 to IPv4.
func normalAddress(a netip.Addr) netip.Addr { return a.Unmap().WithZone("") }

// newAddresses reads workloads, which must be sorted by name.
func newAddresses(in []*v1alpha1.ExternalWorkload, subjects classes[*subjectClass], noGroups bool) (addresses, []Problem) {
	const kind = "ExternalWorkload"
	x := addresses{owners: map[netip.Prefix][]string{}}
	users := map[netip.Prefix][]string{}
	// doubtful are the prefixes of addresses that are left out, with the subjects that they would have had.
	type claim struct {
		prefix  netip.Prefix
		subject string
	}
	var doubtful []claim
	var problems []Problem
	for _, w := range in {
		subject := string(w.Spec.Subject)
		if reason, err := workloadSubject(subject, subjects); err != nil {
			problems = append(
				problems,
				Problem{Kind: kind, Name: w.Name, Reason: reason, Message: message.ProblemWorkloadLeftOut(message.Of(err)), LeftOut: true},
			)
			subject = noOwner
		} else if noGroups {
			problems = append(problems, Problem{Kind: kind, Name: w.Name, Reason: v1alpha1.RefusedUnsupported,
				Message: message.ProblemWorkloadNotPushed()})
		}
		for _, text := range w.Spec.Addresses {
			p, err := workloadPrefix(text)
			if err != nil {
				problems = append(problems, Problem{Kind: kind, Name: w.Name, Reason: v1alpha1.ReasonInvalid,
					Message: message.ProblemAddressLeftOut(message.Quoted(text), message.Of(err))})
				if p.IsValid() {
					doubtful = append(doubtful, claim{p, subject})
				}
				continue
			}
			x.owners[p] = append(x.owners[p], subject)
			users[p] = append(users[p], w.Name)
		}
	}
	for _, c := range doubtful {
		if !slices.Contains(x.owners[c.prefix], c.subject) {
			x.owners[c.prefix] = append(x.owners[c.prefix], noOwner)
		}
	}
	for p, owners := range x.owners {
		slices.Sort(owners)
		owners = slices.Compact(owners)
		x.owners[p] = owners
		if p.Addr().Is4() {
			x.bits4 = append(x.bits4, p.Bits())
		} else {
			x.bits6 = append(x.bits6, p.Bits())
		}
		if len(owners) > 1 {
			for _, name := range users[p] {
				problems = append(problems, Problem{Kind: kind, Name: name, Reason: v1alpha1.ReasonDuplicate, Message: contestedMessage(p, owners)})
			}
		}
	}
	longestFirst := func(bits []int) []int {
		slices.Sort(bits)
		bits = slices.Compact(bits)
		slices.Reverse(bits)
		return bits
	}
	for _, owners := range x.owners {
		x.subjects = append(x.subjects, owners...)
	}
	x.subjects = slices.DeleteFunc(sortedUnique(x.subjects), func(owner string) bool { return owner == noOwner })
	x.bits4, x.bits6 = longestFirst(x.bits4), longestFirst(x.bits6)
	x.owned = sync.OnceValue((&addresses{owners: x.owners}).ownership)
	return x, problems
}

// noOwner is the owner of the addresses of a workload that is left out.
const noOwner = ""

func contestedMessage(p netip.Prefix, owners []string) message.Message {
	if owners[0] == noOwner { // owners are sorted
		return message.ProblemAddressContestedUnusable(p.String(), owners[1:])
	}
	return message.ProblemAddressContested(p.String(), owners)
}

func workloadSubject(subject string, subjects classes[*subjectClass]) (reason string, err error) {
	n, err := ParseName(subject)
	if err != nil {
		return v1alpha1.ReasonInvalid, err
	}
	if n.Wildcard || n.IsPrefix() {
		return v1alpha1.ReasonInvalid, message.NameWorkloadSubject(message.Quoted(subject)).WithKind(ErrInvalidName)
	}
	c, ok := subjects.of(subject)
	if !ok {
		return v1alpha1.ReasonNoClass, message.ProblemSubjectNoClass(subject).Err()
	}
	if _, err := labelValue(c.stem, subject); err != nil {
		return v1alpha1.ReasonInvalid, err
	}
	return "", nil
}

// workloadPrefix parses an address or a prefix. Host bits are rejected, because 10.5.0.7/24 may mean one machine or
// 256. With the error it returns the prefix of all addresses that may have been meant, if there is one.
func workloadPrefix(text string) (netip.Prefix, error) {
	if a, err := netip.ParseAddr(text); err == nil {
		a = normalAddress(a)
		return netip.PrefixFrom(a, a.BitLen()), nil
	}
	p, err := netip.ParsePrefix(text)
	if err != nil {
		return netip.Prefix{}, message.AddressForm().Err()
	}
	if a := p.Addr(); a.Is4In6() {
		if p.Bits() < 96 {
			return netip.Prefix{}, message.AddressFamily().Err()
		}
		p4 := netip.PrefixFrom(a.Unmap(), p.Bits()-96).Masked()
		return p4, message.AddressMapped(p4.String()).Err()
	}
	if p != p.Masked() {
		return p.Masked(), message.AddressHostBits(p.Masked().String(), p.Addr().String()).Err()
	}
	return p, nil
}
