package cilium

import (
	"slices"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/enforcer"
	"github.com/acp-io/acp/internal/message"
	"github.com/acp-io/acp/internal/policy"
)

// variant identifies how a unit is rendered for a member.
type variant struct {
	mode   v1alpha1.Mode
	noHTTP bool
	// denied are the ports on which all addresses are denied, as text.
	denied string
}

func (v variant) spec(u *policy.Unit, rules []policy.Rule, denied []v1alpha1.Port) map[string]any {
	if v.denied != "" {
		rules = slices.Concat(rules, denyAddresses(denied))
	}
	if v.noHTTP {
		rules = withoutHTTP(rules)
	}
	return unitSpec(u, rules, v.mode)
}

// variants contains how a unit is rendered for most members, and for the members that need another spec.
type variants struct {
	base    variant
	members map[string]variant
	// refused are the refusals in most members. refusedIn are the refusals in the others, which replace them.
	refused   []policy.Refusal
	refusedIn map[string][]policy.Refusal
}

// variants selects the variant of each member. If more members lack the proxy than have it, the members that have it
// get the override, so that an object contains as few specs as possible.
func (e Enforcer) variants(u *policy.Unit) variants {
	out := variants{base: variant{mode: u.Mode}, members: map[string]variant{}}
	for cluster, mode := range u.ClusterModes {
		out.members[cluster] = variant{mode: mode}
	}
	modeIn := func(cluster string) v1alpha1.Mode {
		if mode, ok := u.ClusterModes[cluster]; ok {
			return mode
		}
		return u.Mode
	}
	for cluster, ports := range e.denied {
		if mode := modeIn(cluster); mode == v1alpha1.ModeEnforce {
			out.members[cluster] = variant{mode: mode, denied: portsKey(ports)}
		}
	}
	if !hasHTTP(u) {
		return out
	}
	lack, common := 0, message.Message{}
	for cluster, m := range e.Members {
		if m.NoHTTP.IsZero() || modeIn(cluster) != v1alpha1.ModeEnforce {
			continue
		}
		lack++
		if common.IsZero() || m.NoHTTP.Text < common.Text {
			common = m.NoHTTP // in a fixed order
		}
	}
	if lack == 0 {
		return out
	}
	out.base.noHTTP = u.Mode == v1alpha1.ModeEnforce && 2*lack > len(e.Members)
	if out.base.noHTTP {
		out.refused = refusedHTTP(u, common)
	}
	for cluster, m := range e.Members {
		mode := modeIn(cluster)
		in := variant{mode: mode, noHTTP: !m.NoHTTP.IsZero() && mode == v1alpha1.ModeEnforce, denied: out.members[cluster].denied}
		if in != out.base {
			out.members[cluster] = in
		}
		var refused []policy.Refusal
		if in.noHTTP {
			refused = refusedHTTP(u, m.NoHTTP)
		}
		if !slices.Equal(refused, out.refused) {
			if out.refusedIn == nil {
				out.refusedIn = map[string][]policy.Refusal{}
			}
			out.refusedIn[cluster] = refused
		}
	}
	return out
}

// enforcing counts the specs of an object that contain the denies.
func (v *variants) enforcing() int {
	n := 0
	if v.base.mode == v1alpha1.ModeEnforce {
		n++
	}
	for _, in := range v.members {
		if in.mode == v1alpha1.ModeEnforce {
			n++
		}
	}
	return n
}

// refusing adds refusals that apply in every member in Enforce to those of a rendering.
func (v *variants) refusing(r *enforcer.Rendering, more []policy.Refusal) (base []policy.Refusal, in map[string][]policy.Refusal) {
	base, in = r.Refused, map[string][]policy.Refusal{}
	for cluster, refused := range r.RefusedIn {
		in[cluster] = refused
	}
	if v.base.mode == v1alpha1.ModeEnforce {
		base = slices.Concat(r.Refused, more)
	}
	for cluster, m := range v.members {
		in[cluster] = r.RefusedBy(cluster)
		if m.mode == v1alpha1.ModeEnforce {
			in[cluster] = slices.Concat(in[cluster], more)
		}
	}
	for cluster, refused := range r.RefusedIn {
		if _, own := v.members[cluster]; !own && v.base.mode == v1alpha1.ModeEnforce {
			in[cluster] = slices.Concat(refused, more)
		}
	}
	return base, in
}
