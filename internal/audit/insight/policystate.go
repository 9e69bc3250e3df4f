package insight

import (
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/audit"
	"github.com/acp-io/acp/internal/policy"
)

// policyState is a snapshot of the policies at one time, by which edges are decided again. A replay has one before and one after a change.
type policyState struct {
	*policy.Snapshot
	at time.Time
	// outside contains the prefixes of external workloads, sorted; owned contains the same prefixes by subject.
	outside []netip.Prefix
	owned   map[string][]netip.Prefix
	// ranges contains, by resource, the address ranges that statements about the resource name.
	ranges map[string][]netip.Prefix
}

func newPolicyState(s *policy.Snapshot, at time.Time) *policyState {
	d := &policyState{Snapshot: s, at: at, owned: map[string][]netip.Prefix{}, ranges: map[string][]netip.Prefix{}}
	for _, g := range s.ExternalGroups() {
		d.owned[g.Subject] = slices.Concat(g.Prefixes, g.Contested)
		d.outside = append(d.outside, d.owned[g.Subject]...)
	}
	slices.SortFunc(d.outside, comparePrefixes)
	return d
}

func comparePrefixes(a, b netip.Prefix) int {
	if c := a.Addr().Compare(b.Addr()); c != 0 {
		return c
	}
	return a.Bits() - b.Bits()
}

// rangesOn returns the address ranges that statements about a resource name.
func (d *policyState) rangesOn(resource string) []netip.Prefix {
	if known, ok := d.ranges[resource]; ok {
		return known
	}
	var out []netip.Prefix
	for _, w := range d.StatementsAbout(resource) {
		for _, s := range w.Statement.Subjects {
			n, err := policy.ParseName(string(s))
			if err != nil || !n.IsPrefix() {
				continue
			}
			if p, err := n.ParsePrefix(); err == nil {
				out = append(out, p)
			}
		}
	}
	d.ranges[resource] = out
	return out
}

// query returns the query for an edge, with every name of both ends in this state. The caller sets the address.
func (d *policyState) query(e *audit.Edge, source, destination *end) policy.Query {
	q := policy.Query{At: d.at}
	e.FillQuery(&q)
	q.Subjects = names(e.Subject, e.OtherSubjects, source, d.SubjectsOf)
	q.Resources = names(e.Resource, e.OtherResources, destination, d.ResourcesOf)
	return q
}

func names(name, others string, unnamed *end, of func(map[string]string) []string) []string {
	switch {
	case name == "" && len(unnamed.labels) > 0:
		return of(unnamed.labels)
	case name == "":
		return nil
	case others == "":
		return []string{name}
	}
	return append([]string{name}, strings.Fields(others)...)
}

// basis is the basis on which an edge is decided.
type basis uint8

const (
	// asIs decides by what the members have, in the current modes, without refused statements.
	asIs basis = iota
	// asEnforced decides by what the members would have if the resources were in Enforce.
	asEnforced
	// asWritten decides by what the statements mean in Enforce, including refused ones.
	asWritten
)

// decide answers a query. The destination's own node is always let in.
func (d *policyState) decide(q *policy.Query, host bool, by basis) policy.Decision {
	var out policy.Decision
	switch by {
	case asEnforced:
		out = d.EffectiveEnforced(q, nil)
	case asWritten:
		out = d.DecideEnforced(q, nil)
	default:
		out = d.EffectiveInto(q, nil)
	}
	if host && out.Verdict != policy.Unmanaged {
		return policy.Decision{Verdict: policy.Allowed}
	}
	return out
}

// isKept reports whether a connection with this verdict asEnforced is not refused in Enforce: an allow lets it in, or no
// enforcer of the resource refuses its protocol.
func isKept(asEnforced policy.Verdict) bool {
	return asEnforced == policy.Allowed || asEnforced == policy.Unmanaged
}

// actionOf returns the action that an edge of a resource belongs to: that of its requests or, if the port has several,
// one about whole connections. requests reports whether all of them are HTTP actions. It returns "" if no action has the
// port.
func (d *policyState) actionOf(resource string, at portKey) (action string, requests bool) {
	if at.protocol == audit.ProtocolHTTP {
		return at.action, false
	}
	actions := d.ActionsOn(resource, at.protocol, at.port)
	if len(actions) == 0 {
		return "", false
	}
	class, ok := d.ResourceClassOf(resource)
	if !ok {
		return actions[0], false
	}
	whole := func(name string) bool {
		return slices.ContainsFunc(class.Spec.Actions, func(a v1alpha1.ClassAction) bool { return a.Name == name && len(a.HTTP) == 0 })
	}
	if i := slices.IndexFunc(actions, whole); i >= 0 {
		return actions[i], false
	}
	return actions[0], true
}
