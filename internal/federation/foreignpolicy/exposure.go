package foreignpolicy

import (
	"maps"
	"slices"
)

// CiliumExposure records which pods of some classes are opened in a member by Cilium policies of others.
type CiliumExposure struct {
	// labels are the labels of existing pods, with the policy that opens them.
	labels map[Label]string
	// unsure are policies that may open pods that are not known.
	unsure []*Policy
	keys   map[string]bool
}

// OpenedBy returns the name of a policy that opens, or may open, the pods with a label; "" if there is none.
func (o CiliumExposure) OpenedBy(key, value string) string {
	if by := o.labels[Label{key, value}]; by != "" || !o.keys[key] {
		return by
	}
	for _, p := range o.unsure {
		if p.maySelect(key, value) {
			return p.String()
		}
	}
	return ""
}

// Equal reports whether two values are equal.
func (o CiliumExposure) Equal(p CiliumExposure) bool {
	return maps.Equal(o.labels, p.labels) && maps.Equal(o.keys, p.keys) && slices.Equal(o.unsure, p.unsure)
}

// maySelect reports whether the policy may let a source in to a pod of which only one label is known.
func (p *Policy) maySelect(key, value string) bool {
	return slices.ContainsFunc(p.rules, func(r *rule) bool {
		return r.verdict == allow && len(r.peers) > 0 && len(r.grants) > 0 && !slices.ContainsFunc(r.subject.reqs, func(q requirement) bool {
			return q.is(key) && !q.holds(value, true)
		})
	})
}
