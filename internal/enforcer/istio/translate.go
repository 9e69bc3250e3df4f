package istio

import (
	"cmp"
	"slices"
	"strings"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/message"
	"github.com/acp-io/acp/internal/policy"
)

// translation is the translation of a unit for members with the same capabilities.
type translation struct {
	allow, deny []any
	// through contains the policies for the waypoint of the resource; nil if it has none.
	through *throughWaypoint
	// refused is sorted.
	refused []policy.Refusal
}

// selection is the result of selecting statements for a translation: the statements that can be translated, and the statements that are left out.
type selection struct {
	allows, denies []expressed
	// otherPorts is the rule for the ports of no action; nil if they stay closed.
	otherPorts any
	limits     policy.UnitLimits
}

// expressed is a statement that can be translated.
type expressed struct {
	ref   policy.Ref
	peers peers
	// operations are JSON values, never empty.
	operations []any
	ports      []v1alpha1.Port
	// left are addresses of external workloads that cannot be expressed, or nil.
	left *leftOut
}

// unenforcedDeny is a deny that a member does not enforce, completely or for some sources.
type unenforcedDeny struct {
	ref   policy.Ref
	ports []v1alpha1.Port
	peers peers
	// nameless reports whether the deny is enforced, but not for pods without an identity.
	nameless bool
}

func (e Enforcer) translate(u *policy.Unit, p profile) translation {
	s := e.selectStatements(u, p)
	t := translation{allow: rules(s.allows), deny: rules(s.denies), refused: s.limits.Refused}
	if p.waypoint != (Waypoint{}) {
		t.allow, t.deny = rules(p.waypoint.direct(s.allows, s.denies)), rules(p.waypoint.connections(s.denies))
		t.through = p.waypoint.through(e.config.RootNamespace, s.allows, s.denies)
	}
	for _, gateway := range strings.Fields(p.unused) {
		t.deny = append(t.deny, Waypoint{Gateway: gateway}.refusal(e.config.RootNamespace))
	}
	if s.otherPorts != nil {
		t.allow = append(t.allow, s.otherPorts)
	}
	for _, n := range s.limits.Narrowed {
		t.refused = append(t.refused, n.Refusal)
	}
	if s.limits.OtherPorts != nil {
		t.refused = append(t.refused, *s.limits.OtherPorts)
	}
	slices.SortFunc(t.refused, func(a, b policy.Refusal) int {
		return cmp.Or(strings.Compare(a.Ref.String(), b.Ref.String()), strings.Compare(a.Message.Text, b.Message.Text))
	})
	return t
}

// selectStatements determines what can be translated of a unit.
func (e Enforcer) selectStatements(u *policy.Unit, p profile) selection {
	var t selection
	refusal := func(ref policy.Ref, reason string, m message.Message) policy.Refusal {
		return policy.Refusal{Ref: ref, Resource: u.Resource, Reason: reason, Message: m}
	}
	refuse := func(ref policy.Ref, reason string, m message.Message) {
		t.limits.Refused = append(t.limits.Refused, refusal(ref, reason, m))
	}
	narrowed := map[policy.Ref]policy.NarrowedStatement{}
	var holes []unenforcedDeny
	for _, h := range e.foreign[p.direct()] {
		if h.labelKey != u.LabelKey {
			holes = append(holes, h.unenforcedDeny)
		}
	}
	if p.waypoint != (Waypoint{}) {
		holes = append(holes, p.waypoint.blindSpots(e.denies, u.LabelKey)...)
	}
	for i := range u.Statements {
		st := &u.Statements[i]
		x, flaw := e.express(st, p)
		switch {
		case st.OverriddenBy != policy.Ref{}:
			refuse(st.Ref, v1alpha1.RefusedShadowingDeny, message.RefusalShadowingDeny(st.OverriddenBy.String()))
		case flaw != nil:
			refuse(st.Ref, flaw.reason, flaw.message)
		case st.Effect == policy.Deny:
			t.denies = append(t.denies, x)
		default:
			t.allows = append(t.allows, x)
		}
		if flaw == nil && x.left != nil && (st.OverriddenBy == policy.Ref{}) {
			narrowed[st.Ref] = policy.NarrowedStatement{Kept: x.peers.ranges,
				Refusal: refusal(st.Ref, x.left.reason, message.IstioExternalLeftOut(x.left.message))}
		}
		if st.Effect == policy.Deny {
			holes = append(holes, unenforcedDeniesOf(st, &x, flaw, p)...)
		}
	}
	t.allows = slices.DeleteFunc(t.allows, func(x expressed) bool {
		i := slices.IndexFunc(holes, func(h unenforcedDeny) bool { return h.mayOverride(&x) })
		if i >= 0 && holes[i].nameless {
			refuse(x.ref, v1alpha1.RefusedShadowingDeny, message.IstioBypassesDeny(holes[i].ref.String()))
		} else if i >= 0 {
			refuse(x.ref, v1alpha1.RefusedShadowingDeny, message.RefusalShadowingDeny(holes[i].ref.String()))
		}
		return i >= 0
	})
	if len(narrowed) > 0 {
		t.limits.Narrowed = narrowed
	}
	t.limits.OtherPorts = u.OtherPortsRefusal
	if u.OtherPorts == v1alpha1.OtherPortsAllow && len(u.OpenPorts) > 0 {
		rule, flaw := otherPortsRule(u.OpenPorts)
		switch {
		case !p.unsupported.IsZero():
			flaw = unsupported(p.unsupported)
		case len(u.ForeignKeys) > 0:
			flaw = unsupported(message.IstioSelector())
		case p.waypoint != (Waypoint{}):
			flaw = unsupported(message.IstioWaypointOtherPorts(p.waypoint.Gateway))
		case p.unused != "":
			flaw = unsupported(message.IstioWaypointUnusedPorts(strings.Fields(p.unused)[0]))
		}
		if flaw == nil {
			t.otherPorts = rule
		} else {
			closed := refusal(policy.Ref{}, flaw.reason, message.IstioOtherPorts(flaw.message))
			t.limits.OtherPorts = &closed
		}
	}
	return t
}

// flaw is the reason why a statement is refused.
type flaw struct {
	reason  string
	message message.Message
}

func unsupported(why message.Message) *flaw {
	return &flaw{reason: v1alpha1.RefusedUnsupported, message: why}
}

// express translates a statement as written, or returns why it cannot be translated.
func (e Enforcer) express(st *policy.UnitStatement, p profile) (expressed, *flaw) {
	if !p.unsupported.IsZero() {
		return expressed{}, unsupported(p.unsupported)
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

// unenforcedDeniesOf returns the parts of a deny that are not enforced: all of it if it is refused, some addresses, or
// the pods without a certificate.
func unenforcedDeniesOf(st *policy.UnitStatement, x *expressed, flaw *flaw, p profile) []unenforcedDeny {
	var out []unenforcedDeny
	if flaw == nil && x.left != nil {
		out = append(out, unenforcedDeny{ref: st.Ref, ports: tcpPorts(st), peers: peers{ranges: x.left.ranges}})
	}
	h := unenforcedDeny{ref: st.Ref, ports: tcpPorts(st), peers: intendedSources(st)}
	if flaw == nil {
		if p.strict || st.Anyone || len(st.Subjects) == 0 {
			return out
		}
		h.nameless = true
	}
	return append(out, h)
}

// foreignDeny is an unenforced deny that concerns allows of units with other labels: a pod has one value for a label.
type foreignDeny struct {
	labelKey string
	unenforcedDeny
}

// foreignDenies returns the unenforced denies of the units that count in some member, each once for a label.
func (e Enforcer) foreignDenies(units []policy.Unit, p profile) []foreignDeny {
	return deniesOf(units, func(st *policy.UnitStatement) []unenforcedDeny {
		x, flaw := e.express(st, p)
		return unenforcedDeniesOf(st, &x, flaw, p)
	})
}

// deniesOf returns what unenforced finds in the denies of the units that count in some member, each once for a label, sorted.
func deniesOf(units []policy.Unit, unenforced func(*policy.UnitStatement) []unenforcedDeny) []foreignDeny {
	type key struct {
		labelKey string
		ref      policy.Ref
	}
	seen := map[key]bool{}
	var out []foreignDeny
	for i := range units {
		u := &units[i]
		for j := range u.Statements {
			st := &u.Statements[j]
			k := key{u.LabelKey, st.Ref}
			if st.Effect != policy.Deny || seen[k] || !everEnforced(u) {
				continue
			}
			seen[k] = true
			for _, h := range unenforced(st) {
				out = append(out, foreignDeny{u.LabelKey, h})
			}
		}
	}
	slices.SortFunc(out, func(a, b foreignDeny) int {
		return cmp.Or(strings.Compare(a.ref.String(), b.ref.String()), strings.Compare(a.labelKey, b.labelKey))
	})
	return out
}

// mayOverride reports whether one connection could match both the deny and the allow.
func (h *unenforcedDeny) mayOverride(x *expressed) bool {
	if h.nameless && !x.peers.anyone {
		return false // an allow by name, or by a range without pods, does not let in a pod without an identity
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
