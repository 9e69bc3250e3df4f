package istio

import (
	"net/netip"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/message"
	"github.com/acp-io/acp/internal/policy"
)

// peers are the sources of a statement.
type peers struct {
	anyone bool
	// accounts are service accounts. anyAccount reports whether any account may be meant, because the names are not known.
	accounts   []string
	anyAccount bool
	ranges     []policy.AddressRange
}

// fleetRange is an address range of a member's pods and nodes.
type fleetRange struct {
	member string
	prefix netip.Prefix
}

// fleetOf returns the addresses of all members, or nil if one of them does not declare its own. Members that are not
// listed count if they have an Istio.
func fleetOf(c Config) []fleetRange {
	var out []fleetRange
	add := func(member string, c *Capabilities) bool {
		for _, p := range c.Ranges {
			out = append(out, fleetRange{member, p})
		}
		return len(c.Ranges) > 0
	}
	complete := true
	if !c.Complete && c.Default.Dataplane != NoDataplane {
		complete = add("default", &c.Default)
	}
	for name, m := range c.Members {
		complete = add(name, &m) && complete
	}
	if !complete {
		return nil
	}
	slices.SortFunc(out, func(a, b fleetRange) int {
		return strings.Compare(a.member+a.prefix.String(), b.member+b.prefix.String())
	})
	return out
}

// peersOf returns a statement's sources in Istio's terms. left contains the addresses of external workloads that cannot
// be expressed, with the reason. They do not refuse the statement: they are not written in it, and registering a
// machine must not revoke the access of its application's pods.
func (e Enforcer) peersOf(st *policy.UnitStatement) (p peers, left *leftOut, f *flaw) {
	p = peers{anyone: st.Anyone}
	if len(st.Patterns) > 0 {
		return p, nil, unsupported(message.IstioWildcardSubject(st.Patterns[0]))
	}
	for _, s := range st.Subjects {
		if s.ServiceAccount == "" {
			return p, nil, unsupported(message.IstioNoTemplate(s.Name, s.Class))
		}
		if len(validation.IsDNS1123Subdomain(s.ServiceAccount)) > 0 {
			return p, nil, &flaw{v1alpha1.RefusedInvalidName, message.IstioServiceAccount(s.Name, s.ServiceAccount)}
		}
		p.accounts = append(p.accounts, s.ServiceAccount)
	}
	for _, r := range st.Ranges {
		switch f := e.flawOf(r.Prefix); {
		case f == nil:
			p.ranges = append(p.ranges, r)
		case !r.External:
			return p, nil, f
		case left == nil:
			left = &leftOut{flaw: f, ranges: []policy.AddressRange{r}}
		default:
			left.ranges = append(left.ranges, r)
		}
	}
	if left != nil && !p.anyone && len(p.accounts) == 0 && len(p.ranges) == 0 {
		return p, nil, left.flaw
	}
	return p, left, nil
}

// leftOut is the part of a statement's sources that cannot be expressed.
type leftOut struct {
	*flaw
	ranges []policy.AddressRange
}

// flawOf returns the reason why a range cannot be a source, or nil.
func (e Enforcer) flawOf(p netip.Prefix) *flaw {
	if e.fleet == nil {
		return unsupported(message.IstioRangesNotDeclared(p.String()))
	}
	for _, f := range e.fleet {
		if f.prefix.Overlaps(p) {
			return unsupported(message.IstioRangeOverlaps(p.String(), f.prefix.String(), f.member))
		}
	}
	return nil
}

// intendedSources returns the sources that a statement may have meant, including those that cannot be expressed.
func intendedSources(st *policy.UnitStatement) peers {
	p := peers{anyone: st.Anyone, ranges: st.Ranges, anyAccount: len(st.Patterns) > 0}
	for _, s := range st.Subjects {
		if s.ServiceAccount == "" {
			p.anyAccount = true
		}
		p.accounts = append(p.accounts, s.ServiceAccount)
	}
	return p
}

// overlap reports whether a source may belong to both.
func (p *peers) overlap(o *peers) bool {
	switch {
	case p.anyone || o.anyone:
		return true
	case p.anyAccount && (o.anyAccount || len(o.accounts) > 0), o.anyAccount && len(p.accounts) > 0:
		return true
	case slices.ContainsFunc(p.accounts, func(a string) bool { return slices.Contains(o.accounts, a) }):
		return true
	}
	return slices.ContainsFunc(p.ranges, func(a policy.AddressRange) bool {
		return slices.ContainsFunc(o.ranges, func(b policy.AddressRange) bool { return a.Prefix.Overlaps(b.Prefix) })
	})
}

// source returns an entry of a rule's `from`.
func source(fields map[string]any) any { return map[string]any{"source": fields} }

// sources returns the entries of `from`, sorted; nil means every source. A source outside the fleet is distinguished
// from a pod with the same address by its lack of a principal.
func (p *peers) sources() []any {
	if p.anyone {
		return nil
	}
	var out []any
	accounts := slices.Clone(p.accounts)
	slices.Sort(accounts)
	for chunk := range slices.Chunk(slices.Compact(accounts), maxPrincipals) {
		principals := make([]any, len(chunk))
		for i, account := range chunk {
			// The suffix matches any trust domain and namespace; the slash keeps longer names from matching.
			principals[i] = "*/sa/" + account
		}
		out = append(out, source(map[string]any{"principals": principals}))
	}
	var whole []string
	for _, r := range p.ranges {
		if len(r.Except) == 0 {
			whole = append(whole, r.Prefix.String())
			continue
		}
		except := make([]string, len(r.Except))
		for i, x := range r.Except {
			except[i] = x.String()
		}
		out = append(out, source(map[string]any{"ipBlocks": []any{r.Prefix.String()}, "notIpBlocks": list(except), "notPrincipals": []any{"*"}}))
	}
	if len(whole) > 0 {
		slices.Sort(whole)
		out = append(out, source(map[string]any{"ipBlocks": list(slices.Compact(whole)), "notPrincipals": []any{"*"}}))
	}
	return out
}

func list(in []string) []any {
	out := make([]any, len(in))
	for i, s := range in {
		out[i] = s
	}
	return out
}
