package engine

import (
	"fmt"
	"net/netip"

	ciliumv2 "github.com/cilium/cilium/pkg/k8s/apis/cilium.io/v2"
	"github.com/cilium/cilium/pkg/k8s/utils"
	"github.com/cilium/cilium/pkg/labels"
	"github.com/cilium/cilium/pkg/policy/api"
)

// groups contains the CIDR groups by name.
type groups map[string]group

type group struct {
	prefixes []netip.Prefix
	labels   labels.Labels
}

// set adds a group with the labels that an agent assigns: its name and its own labels, each in two forms, one of which matches the
// key only. It ignores a prefix that cannot be parsed.
func (g groups) set(in *ciliumv2.CiliumCIDRGroup) {
	out := group{labels: labels.Labels{}}
	for k, v := range utils.RemoveCiliumLabels(in.Labels) {
		l := labels.NewLabel(k, v, labels.LabelSourceCIDRGroup)
		out.labels[l.Key] = l
		encoded := labels.EncodedCIDRGroupLabel(l.Key, l.Value, l.Source)
		out.labels[encoded.Key] = encoded
	}
	name := api.LabelForCIDRGroupRef(in.Name)
	out.labels[name.Key] = name
	for _, c := range in.Spec.ExternalCIDRs {
		if p, err := netip.ParsePrefix(string(c)); err == nil {
			out.prefixes = append(out.prefixes, p)
		}
	}
	g[in.Name] = out
}

// labelsOf returns the labels of an address: its own prefix, the world, and those of every group with a prefix that contains it. An agent
// merges the labels of all these prefixes, and of labels with the same key it keeps that of the longest prefix.
func (g groups) labelsOf(text string) (labels.LabelArray, error) {
	addr, err := netip.ParseAddr(text)
	if err != nil {
		return nil, fmt.Errorf("external address: %w", err)
	}
	all := labels.GetCIDRLabels(netip.PrefixFrom(addr, addr.BitLen()))
	bits := map[string]int{} // the length of the prefix that a label is from
	for _, group := range g {
		for _, p := range group.prefixes {
			if !p.Contains(addr) {
				continue
			}
			for k, l := range group.labels {
				if longest, merged := bits[k]; !merged || p.Bits() > longest {
					all[k], bits[k] = l, p.Bits()
				}
			}
		}
	}
	return all.LabelArray(), nil
}
