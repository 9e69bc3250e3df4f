package conformance

import (
	"fmt"
	"net/netip"
	"slices"

	"github.com/cilium/cilium/pkg/identity"
	k8sutils "github.com/cilium/cilium/pkg/k8s/utils"
	"github.com/cilium/cilium/pkg/labels"
	"github.com/cilium/cilium/pkg/policy/api"
)

// reserved are the identities of sources that are neither pods nor given by an address.
var reserved = map[string]identity.NumericIdentity{
	"host":           identity.ReservedIdentityHost,
	"remote-node":    identity.ReservedIdentityRemoteNode,
	"kube-apiserver": identity.ReservedIdentityKubeAPIServer,
	"health":         identity.ReservedIdentityHealth,
	"ingress":        identity.ReservedIdentityIngress,
	"init":           identity.ReservedIdentityInit,
	"unmanaged":      identity.ReservedIdentityUnmanaged,
	"world-ipv4":     identity.ReservedIdentityWorldIPv4,
	"world-ipv6":     identity.ReservedIdentityWorldIPv6,
}

// registry assigns identities to sources and destinations.
type registry struct {
	groups map[string]Group
	// ranges are the ranges that the policies name.
	ranges []netip.Prefix
	all    identity.IdentityMap
	next   identity.NumericIdentity
	local  identity.NumericIdentity
}

func newRegistry(objects Objects) *registry {
	r := &registry{groups: objects.Groups, all: identity.IdentityMap{}, next: 1 << 16, local: identity.IdentityScopeLocal}
	for _, known := range reserved {
		id := identity.LookupReservedIdentity(known)
		r.all[id.ID] = id.LabelArray
	}
	for _, spec := range objects.Policies {
		r.collectRanges(spec)
	}
	return r
}

// collectRanges collects the address ranges in a part of a policy.
func (r *registry) collectRanges(part any) {
	switch part := part.(type) {
	case map[string]any:
		if text, ok := part["cidr"].(string); ok {
			if p, err := netip.ParsePrefix(text); err == nil {
				r.ranges = append(r.ranges, p)
			}
		}
		for _, v := range part {
			r.collectRanges(v)
		}
	case []any:
		for _, v := range part {
			r.collectRanges(v)
		}
	}
}

// hasPrefixOf reports whether the agent's ipcache has a prefix that contains the address; an address in none is the
// world. The prefix of all addresses is not a separate entry there, neither in a policy nor in a group.
func (r *registry) hasPrefixOf(addr netip.Addr) bool {
	holds := func(p netip.Prefix) bool { return p.Bits() > 0 && p.Contains(addr) }
	for _, g := range r.groups {
		if slices.ContainsFunc(g.Prefixes, holds) {
			return true
		}
	}
	return slices.ContainsFunc(r.ranges, holds)
}

func (r *registry) add(id identity.NumericIdentity, lbls labels.LabelArray) *identity.Identity {
	r.all[id] = lbls
	return identity.NewIdentityFromLabelArray(id, lbls)
}

func (r *registry) pod(podLabels map[string]string, cluster string, noNamespace bool) *identity.Identity {
	lbls := labels.Map2Labels(podLabels, labels.LabelSourceK8s)
	lbls["io.cilium.k8s.policy.cluster"] = labels.NewLabel("io.cilium.k8s.policy.cluster", cluster, labels.LabelSourceK8s)
	if _, given := lbls["io.kubernetes.pod.namespace"]; !noNamespace && !given {
		lbls["io.kubernetes.pod.namespace"] = labels.NewLabel("io.kubernetes.pod.namespace", "default", labels.LabelSourceK8s)
	}
	r.next++
	return r.add(r.next, lbls.LabelArray())
}

func (r *registry) source(s Source) (*identity.Identity, error) {
	switch {
	case s.Cluster != "":
		return r.pod(s.Labels, s.Cluster, s.NoNamespace), nil
	case s.Reserved != "":
		known, ok := reserved[s.Reserved]
		if !ok {
			return nil, fmt.Errorf("source %q: no such reserved identity", s.Reserved)
		}
		if addr := s.Addr(); !addr.IsValid() || !r.hasPrefixOf(addr) {
			return identity.LookupReservedIdentity(known), nil
		}
		r.local++
		return r.add(r.local, r.labelsOf(s.Addr())), nil
	}
	addr, err := netip.ParseAddr(s.Address)
	if err != nil {
		return nil, fmt.Errorf("source address: %w", err)
	}
	r.local++
	return r.add(r.local, r.labelsOf(addr)), nil
}

// labelsOf returns the labels of an address in the agent's ipcache: its own prefix, the world, and the labels of every
// group with a prefix that contains it, where a longer prefix wins if two have the same key.
func (r *registry) labelsOf(addr netip.Addr) labels.LabelArray {
	all := labels.GetCIDRLabels(netip.PrefixFrom(addr, addr.BitLen()))
	length := map[string]int{}
	for name, g := range r.groups {
		for _, p := range g.Prefixes {
			if !p.Contains(addr) || p.Bits() == 0 {
				continue // observed: a group's prefix of all addresses gives none of them its labels
			}
			for _, l := range groupLabels(name, g.Labels) {
				if before, ok := length[l.Key]; !ok || p.Bits() > before {
					all[l.Key], length[l.Key] = l, p.Bits()
				}
			}
		}
	}
	return all.LabelArray()
}

// groupLabels returns what an agent sets on the prefixes of a group: its name, and its own labels in two forms.
func groupLabels(name string, own map[string]string) []labels.Label {
	out := []labels.Label{api.LabelForCIDRGroupRef(name)}
	for k, v := range k8sutils.RemoveCiliumLabels(own) {
		l := labels.NewLabel(k, v, labels.LabelSourceCIDRGroup)
		out = append(out, l, labels.EncodedCIDRGroupLabel(l.Key, l.Value, l.Source))
	}
	return out
}
