package foreignpolicy

import (
	"maps"
	"net/netip"
	"slices"
	"unique"
)

// Group is a CiliumCIDRGroup: a set of addresses outside the cluster mesh, with labels.
type Group struct {
	Name     string
	Labels   map[string]string
	Prefixes []netip.Prefix
}

// source is an origin of connections.
type source struct {
	labels []Handle
	// local reports whether it is a pod of the member itself, or another endpoint of its cluster.
	local bool
	// address is outside the cluster mesh, and groups contains the groups that contain it.
	address netip.Addr
	groups  []Label
}

// match is the result of comparing a selector with a source.
type match uint8

const (
	no match = iota
	maybe
	yes
)

// selects compares a selector with a source.
func (s *selector) selects(from *source) match {
	matches := false
	switch s.kind {
	case opaque:
		return maybe
	case byPrefix:
		matches = from.address.IsValid() && s.prefix.Contains(from.address) &&
			!slices.ContainsFunc(s.except, func(p netip.Prefix) bool { return p.Contains(from.address) })
	case byGroup:
		matches = from.address.IsValid() && s.matchesGroups(from.groups)
	case byLabels:
		matches = (!s.local || from.local) && s.matchesLabels(from.labels)
	}
	if matches {
		return yes
	}
	return no
}

// matchesGroups compares the labels of all groups that contain an address. Each value of a key counts separately.
func (s *selector) matchesGroups(groups []Label) bool {
	for i := range s.reqs {
		r := &s.reqs[i]
		found := slices.ContainsFunc(groups, func(l Label) bool {
			return l.Key == r.key && (r.op == opExists || r.op == opAbsent || r.contains(l.Value))
		})
		if found != (r.op == opIn || r.op == opExists) {
			return false
		}
	}
	return true
}

func handle(key, value string) Handle { return unique.Make(Label{key, value}) }

// reservedSources are the sources that are neither pods nor outside the cluster mesh. The own node is not among them,
// because policies never refuse it. A node may have its cluster's label.
var reservedSources = func() []source {
	out := []source{}
	for _, names := range [][]string{{"remote-node"}, {"kube-apiserver"}, {"kube-apiserver", "remote-node"}, {"health"}, {"ingress"}, {"init"}, {"unmanaged"}} {
		var labels []Handle
		for _, n := range names {
			labels = append(labels, handle(reservedSource+":"+n, ""))
		}
		out = append(out, source{labels: labels})
	}
	return out
}()

// unusedValue is a value that no label has.
const unusedValue = "acp.io/nobody"

// maxWitnesses bounds the combinations of values of which witnesses are made.
const maxWitnesses = 64

// witnessChecks returns how many checks the selector's witnesses take at most.
func (s *selector) witnessChecks() int {
	witnesses := 1
	for i := range s.reqs {
		switch s.reqs[i].op {
		case opIn:
			witnesses *= len(s.reqs[i].values)
		case opExists:
			witnesses *= 2
		}
		if witnesses > maxWitnesses {
			witnesses = maxWitnesses
			break
		}
	}
	return witnesses * s.checks()
}

// witnesses returns pods of other clusters that a selector selects, with as few labels as it requires. A policy that
// lets these in lets in everything that the selector selects, because ACP's allows require labels and never their
// absence. The pods of the own cluster are known individually. It returns false if there are too many.
func (s *selector) witnesses(ownCluster string) ([]source, bool) {
	if s.kind != byLabels || s.local {
		return nil, s.kind != opaque
	}
	all := []map[string]string{{}}
	for _, r := range s.reqs {
		var values []string
		switch r.op {
		case opIn:
			values = r.values
		case opExists:
			values = []string{unusedValue, ""}
		default:
			continue
		}
		if r.source == reservedSource || r.source == groupSource {
			return nil, true // no pod has it
		}
		if len(all)*len(values) > maxWitnesses {
			return nil, false
		}
		var next []map[string]string
		for _, labels := range all {
			for _, v := range values {
				if had, ok := labels[r.key]; ok && had != v {
					continue
				}
				with := maps.Clone(labels)
				with[r.key] = v
				next = append(next, with)
			}
		}
		all = next
	}
	var out []source
	for _, labels := range all {
		if c, ok := labels[clusterKey]; ok && c == ownCluster {
			continue
		}
		for _, key := range []string{clusterKey, namespaceKey} {
			if _, ok := labels[key]; !ok {
				labels[key] = unusedValue
			}
		}
		w := source{}
		for _, k := range slices.Sorted(maps.Keys(labels)) {
			w.labels = append(w.labels, handle(k, labels[k]))
		}
		if s.selects(&w) == no { // the selector requires that a namespace or a cluster is missing
			continue
		}
		out = append(out, w)
	}
	return out, true
}

// worldNames are the names of the reserved identities of addresses outside the cluster mesh: for agents with one family of addresses, and for
// IPv4 and IPv6 with both.
var worldNames = [...]string{"world", "world-ipv4", "world-ipv6"}

// addresses determines the labels of addresses outside the cluster mesh.
type addresses struct {
	groups []Group
	// of contains the groups by their prefixes, and lengths the prefix lengths in use.
	of      map[netip.Prefix][]int
	lengths []int
}

func newAddresses(groups []Group) *addresses {
	a := &addresses{groups: groups, of: map[netip.Prefix][]int{}}
	for i, g := range groups {
		for _, p := range g.Prefixes {
			p = p.Masked()
			a.of[p] = append(a.of[p], i)
			if !slices.Contains(a.lengths, p.Bits()) {
				a.lengths = append(a.lengths, p.Bits())
			}
		}
	}
	slices.Sort(a.lengths)
	return a
}

// source returns the labels that Cilium gives an address: those of all groups that contain it, where a longer prefix
// wins if two have the same key. An agent with both families has a separate world entity for each family.
func (a *addresses) source(addr netip.Addr, bothFamilies bool) source {
	s := source{address: addr}
	world := worldNames[0]
	switch {
	case bothFamilies && addr.Is4():
		world = worldNames[1]
	case bothFamilies:
		world = worldNames[2]
	}
	plain := map[string]string{}
	for _, bits := range a.lengths {
		p, err := addr.Prefix(bits)
		if err != nil {
			continue
		}
		for _, i := range a.of[p] {
			g := &a.groups[i]
			s.groups = append(s.groups, Label{groupNameKey + g.Name, ""})
			plain[groupNameKey+g.Name] = ""
			for k, v := range g.Labels {
				s.groups = append(s.groups, Label{k, v})
				plain[k] = v
			}
		}
	}
	s.labels = append(s.labels, handle(reservedSource+":"+world, ""))
	for k, v := range plain {
		s.labels = append(s.labels, handle(groupSource+":"+k, v))
	}
	return s
}

// checks returns how many checks the sources at one address count as.
func (a *addresses) checks() int { return 16 + len(a.lengths) }

// sources returns the sources at addresses, two for each of them, in the order of the addresses.
func (a *addresses) sources(at []netip.Addr) []source {
	out := make([]source, 0, 2*len(at))
	for _, addr := range at {
		out = append(out, a.source(addr, true), a.source(addr, false))
	}
	return out
}

// prefixes returns the prefixes of all groups.
func (a *addresses) prefixes() []netip.Prefix {
	var out []netip.Prefix
	for i := range a.groups {
		out = append(out, a.groups[i].Prefixes...)
	}
	return out
}

// reachesOutside reports whether the selector may select addresses outside the cluster mesh, which have no pod labels.
func (s selector) reachesOutside() bool {
	return s.kind != byLabels || !s.local && !slices.ContainsFunc(s.reqs, func(q requirement) bool {
		return (q.op == opIn || q.op == opExists) && (q.source == k8sSource || q.source == reservedSource && !slices.Contains(worldNames[:], q.key))
	})
}

// within returns the sources that the selector may select, of some that are outside the cluster mesh and sorted by their addresses.
func (s *selector) within(sources []source) []source {
	if s.kind != byPrefix {
		return sources
	}
	first, _ := slices.BinarySearchFunc(sources, s.prefix.Addr(), func(x source, a netip.Addr) int { return x.address.Compare(a) })
	end, _ := slices.BinarySearchFunc(sources[first:], s.prefix, func(x source, p netip.Prefix) int {
		if p.Contains(x.address) {
			return -1
		}
		return 1
	})
	return sources[first : first+end]
}

// sampleAddresses returns addresses that each represent all addresses up to the next one: no prefix begins or ends
// between two of them.
func sampleAddresses(prefixes []netip.Prefix) []netip.Addr {
	out := []netip.Addr{netip.IPv4Unspecified(), netip.IPv6Unspecified()}
	for _, p := range prefixes {
		p = p.Masked()
		out = append(out, p.Addr())
		if next := after(p); next.IsValid() {
			out = append(out, next)
		}
	}
	slices.SortFunc(out, netip.Addr.Compare)
	return slices.Compact(out)
}

// after returns the first address after a prefix, or an invalid address if there is none.
func after(p netip.Prefix) netip.Addr {
	bytes := p.Addr().AsSlice()
	for i := p.Bits(); i < len(bytes)*8; i++ {
		bytes[i/8] |= 1 << (7 - i%8)
	}
	last, _ := netip.AddrFromSlice(bytes)
	return last.Next()
}
