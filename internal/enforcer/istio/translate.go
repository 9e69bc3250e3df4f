package istio

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/policy"
)

// translation is a unit for members of the same capabilities.
type translation struct {
	allow, deny []any
	// refused, sorted.
	refused []policy.Refusal
}

// expressed is a statement that can be translated.
type expressed struct {
	ref   policy.Ref
	peers peers
	// operations are JSON values, never empty.
	operations []any
	ports      []v1alpha1.Port
	// left are addresses of external workloads that cannot be expressed; nil: none.
	left *leftOut
}

// hole is a deny that a member does not enforce, in whole or for some sources.
type hole struct {
	ref   policy.Ref
	ports []v1alpha1.Port
	peers peers
	// nameless: the deny is enforced, but not for pods that come without a name.
	nameless bool
}

func (e Enforcer) translate(u *policy.Unit, p profile) translation {
	var t translation
	refuse := func(ref policy.Ref, reason, message string) {
		t.refused = append(t.refused, policy.Refusal{Ref: ref, Resource: u.Resource, Reason: reason, Message: message})
	}
	var allows, denies []expressed
	var holes []hole
	for _, h := range e.foreign[p] {
		if h.labelKey != u.LabelKey {
			holes = append(holes, h.hole)
		}
	}
	for i := range u.Statements {
		st := &u.Statements[i]
		x, flaw := e.express(st, p)
		switch {
		case st.OverriddenBy != policy.Ref{}:
			refuse(st.Ref, v1alpha1.RefusedShadowingDeny, overridden(st.OverriddenBy))
		case flaw != nil:
			refuse(st.Ref, flaw.reason, flaw.message)
		case st.Effect == policy.Deny:
			denies = append(denies, x)
		default:
			allows = append(allows, x)
		}
		if flaw == nil && x.left != nil && (st.OverriddenBy == policy.Ref{}) {
			refuse(st.Ref, x.left.reason, "only the addresses of its external workloads are left out: "+x.left.message)
		}
		if st.Effect == policy.Deny {
			holes = append(holes, holesOf(st, &x, flaw, p)...)
		}
	}
	allows = slices.DeleteFunc(allows, func(x expressed) bool {
		i := slices.IndexFunc(holes, func(h hole) bool { return h.mayOverride(&x) })
		if i >= 0 && holes[i].nameless {
			refuse(x.ref, v1alpha1.RefusedShadowingDeny, fmt.Sprintf("left out because pods outside the mesh would get in without a name, past the deny %s: "+
				"declare strictMTLS for the member, or name the subjects", holes[i].ref))
		} else if i >= 0 {
			refuse(x.ref, v1alpha1.RefusedShadowingDeny, overridden(holes[i].ref))
		}
		return i >= 0
	})
	t.allow, t.deny = rules(allows), rules(denies)
	if u.OtherPorts == v1alpha1.OtherPortsAllow && len(u.OpenPorts) > 0 {
		rule, flaw := otherPortsRule(u.OpenPorts)
		switch {
		case p.lacks != "":
			flaw = unsupported("%s", p.lacks)
		case len(u.ForeignKeys) > 0:
			flaw = unsupported("a selector of Istio cannot leave out workloads that carry another class's label")
		}
		if flaw == nil {
			t.allow = append(t.allow, rule)
		} else {
			refuse(policy.Ref{}, flaw.reason, "otherPorts stay closed: "+flaw.message)
		}
	}
	slices.SortStableFunc(t.refused, func(a, b policy.Refusal) int { return strings.Compare(a.Ref.String(), b.Ref.String()) })
	return t
}

func overridden(by policy.Ref) string {
	return fmt.Sprintf("left out because the deny %s is refused and could have overridden it: correct or remove that deny", by)
}

// flaw is why a statement is refused.
type flaw struct{ reason, message string }

func unsupported(format string, args ...any) *flaw {
	return &flaw{reason: v1alpha1.RefusedUnsupported, message: fmt.Sprintf(format, args...)}
}

// express translates a statement as written, or says why it cannot.
func (e Enforcer) express(st *policy.UnitStatement, p profile) (expressed, *flaw) {
	if p.lacks != "" {
		return expressed{}, unsupported("%s", p.lacks)
	}
	sources, left, flaw := e.peersOf(st)
	if flaw != nil {
		return expressed{}, flaw
	}
	operations, flaw := operationsOf(st, p)
	if flaw != nil {
		return expressed{}, flaw
	}
	return expressed{ref: st.Ref, peers: sources, operations: operations, ports: tcpPorts(st), left: left}, nil
}

// holesOf are what a deny leaves open, if it is refused in whole or for some addresses, or knows pods by their certificates
// only.
func holesOf(st *policy.UnitStatement, x *expressed, flaw *flaw, p profile) []hole {
	var out []hole
	if flaw == nil && x.left != nil {
		out = append(out, hole{ref: st.Ref, ports: tcpPorts(st), peers: peers{ranges: x.left.ranges}})
	}
	h := hole{ref: st.Ref, ports: tcpPorts(st), peers: meant(st)}
	if flaw == nil {
		if p.strict || st.Anyone || len(st.Subjects) == 0 {
			return out
		}
		h.nameless = true
	}
	return append(out, h)
}

// foreignHole is one that allows of units under other labels have to mind: a pod has one value for a label.
type foreignHole struct {
	labelKey string
	hole
}

// foreignHoles are those of the units' denies that count somewhere, each once for a label.
func (e Enforcer) foreignHoles(units []policy.Unit, p profile) []foreignHole {
	type key struct {
		labelKey string
		ref      policy.Ref
	}
	seen := map[key]bool{}
	var out []foreignHole
	for i := range units {
		u := &units[i]
		for j := range u.Statements {
			st := &u.Statements[j]
			k := key{u.LabelKey, st.Ref}
			if st.Effect != policy.Deny || seen[k] || !everEnforced(u) {
				continue
			}
			seen[k] = true
			x, flaw := e.express(st, p)
			for _, h := range holesOf(st, &x, flaw, p) {
				out = append(out, foreignHole{u.LabelKey, h})
			}
		}
	}
	slices.SortFunc(out, func(a, b foreignHole) int {
		return cmp.Or(strings.Compare(a.ref.String(), b.ref.String()), strings.Compare(a.labelKey, b.labelKey))
	})
	return out
}

// mayOverride tells whether one connection could match both the deny and the allow.
func (h *hole) mayOverride(x *expressed) bool {
	if h.nameless && !x.peers.anyone {
		return false // an allow by name, or by a range without pods, does not let a nameless pod in
	}
	return portsOverlap(h.ports, x.ports) && h.peers.overlap(&x.peers)
}

func portsOverlap(a, b []v1alpha1.Port) bool {
	for _, p := range a {
		for _, q := range b {
			if p.Port <= lastPort(q) && q.Port <= lastPort(p) {
				return true
			}
		}
	}
	return false
}

func lastPort(p v1alpha1.Port) int32 {
	if p.EndPort == nil {
		return p.Port
	}
	return *p.EndPort
}

func tcpPorts(st *policy.UnitStatement) []v1alpha1.Port {
	var out []v1alpha1.Port
	for _, a := range st.Actions {
		for _, p := range a.Ports {
			if p.Protocol == v1alpha1.ProtocolTCP {
				out = append(out, p)
			}
		}
	}
	return out
}
