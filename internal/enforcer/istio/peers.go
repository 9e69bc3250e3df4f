package istio

import (
	"net/netip"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/policy"
)

// peers are the sources of a statement.
type peers struct {
	anyone bool
	// accounts are service accounts; anyAccount may be any of them, since the names are not known.
	accounts   []string
	anyAccount bool
	ranges     []policy.AddressRange
}

// fleetRange is where a member's pods and nodes are.
type fleetRange struct {
	member string
	prefix netip.Prefix
}

// fleetOf are the addresses of all members, or nil if one of them does not tell. Members that are not named count when they
// have an Istio.
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

// peersOf are a statement's sources as Istio knows them. The addresses of external workloads that cannot be expressed are in
// left, with the reason: they are not written in the statement, and registering a machine must not take its application's
// pods what they have.
func (e Enforcer) peersOf(st *policy.UnitStatement) (p peers, left *leftOut, f *flaw) {
	p = peers{anyone: st.Anyone}
	if len(st.Patterns) > 0 {
		return p, nil, unsupported("%s: principals of Istio cannot stand for the service accounts of a wildcard: name each subject", st.Patterns[0])
	}
	for _, s := range st.Subjects {
		if s.ServiceAccount == "" {
			return p, nil, unsupported("%s: SubjectClass %s has no serviceAccountTemplate, by which Istio knows clients", s.Name, s.Class)
		}
		if len(validation.IsDNS1123Subdomain(s.ServiceAccount)) > 0 {
			return p, nil, &flaw{v1alpha1.RefusedInvalidName, s.Name + ": " + s.ServiceAccount + " cannot be the name of a service account"}
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

// leftOut is the part of a statement's sources that is not expressed.
type leftOut struct {
	*flaw
	ranges []policy.AddressRange
}

// flawOf says why a range cannot be a source; nil: it can.
func (e Enforcer) flawOf(p netip.Prefix) *flaw {
	if e.fleet == nil {
		return unsupported("%s: Istio knows sources outside the fleet by address, and a member does not declare the ranges of its pods and nodes", p)
	}
	for _, f := range e.fleet {
		if f.prefix.Overlaps(p) {
			return unsupported("%s overlaps with %s, where pods or nodes of %s are: pods outside the mesh would match", p, f.prefix, f.member)
		}
	}
	return nil
}

// meant are the sources that a statement may have meant, also those that cannot be expressed.
func meant(st *policy.UnitStatement) peers {
	p := peers{anyone: st.Anyone, ranges: st.Ranges, anyAccount: len(st.Patterns) > 0}
	for _, s := range st.Subjects {
		if s.ServiceAccount == "" {
			p.anyAccount = true
		}
		p.accounts = append(p.accounts, s.ServiceAccount)
	}
	return p
}

// overlap tells whether a source may be one of both.
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

// source is an entry of a rule's `from`.
func source(fields map[string]any) any { return map[string]any{"source": fields} }

// sources are the entries of `from`, sorted; nil means anyone. An address is told from that of a pod by its lack of a
// principal.
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
			// A suffix: trust domain and namespace may be any, and the slash keeps longer names from matching.
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
