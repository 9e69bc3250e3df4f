package conformance

import (
	"cmp"
	"regexp"
	"slices"
	"sync"

	"github.com/cilium/cilium/pkg/identity"
	ciliumpolicy "github.com/cilium/cilium/pkg/policy"
	"github.com/cilium/cilium/pkg/policy/api"
	policytypes "github.com/cilium/cilium/pkg/policy/types"
	"github.com/cilium/cilium/pkg/u8proto"
)

// request is an HTTP request.
type request struct{ method, path string }

const maxRequests = 7

// requests are tested on every connection with a proxy: some of each action, some of none.
var requests = [maxRequests]request{
	{"GET", "/"},
	{"HEAD", "/orders/1"},
	{"POST", "/orders"},
	{"POST", "/orders/1"},
	{"POST", "/ordersx"},
	{"PUT", "/orders/1"},
	{"BREW", "/nowhere"},
}

// level contains what the rules of one priority mean for a source on a port.
type level struct {
	tier       policytypes.Tier
	priority   policytypes.Priority
	deny, pass bool
	// allows are the rules that let something in; nil lets in everything.
	allows []*ciliumpolicy.PerSelectorPolicy
}

// passesProxy returns what Cilium's policy for its proxy means for a request. The rules of one priority are additive
// over all selectors that select the source; one without requests lets everything through. A request that no rule of a
// priority names is evaluated by the later ones.
func (p *endpointPolicy) passesProxy(from *identity.Identity, proto u8proto.U8proto, port uint16, r request) bool {
	var levels []level
	for filter := range p.policy.SelectorPolicy.L4Policy.Ingress.Filters() {
		if !onPort(filter, proto, port) {
			continue
		}
		for selector, policy := range filter.PerSelectorPolicies {
			if !selector.IsWildcard() && !selector.Selects(from.ID) {
				continue
			}
			i := slices.IndexFunc(levels, func(l level) bool { return l.tier == filter.Tier && l.priority == policy.GetPriority() })
			if i < 0 {
				i, levels = len(levels), append(levels, level{tier: filter.Tier, priority: policy.GetPriority()})
			}
			switch policy.GetVerdict() {
			case policytypes.Deny:
				levels[i].deny = true
			case policytypes.Pass:
				levels[i].pass = true
			default:
				levels[i].allows = append(levels[i].allows, policy)
			}
		}
	}
	slices.SortFunc(levels, func(a, b level) int { return cmp.Or(cmp.Compare(a.tier, b.tier), cmp.Compare(a.priority, b.priority)) })
	for i := 0; i < len(levels); {
		l := levels[i]
		switch {
		case l.deny:
			return false
		case slices.ContainsFunc(l.allows, func(policy *ciliumpolicy.PerSelectorPolicy) bool { return lets(policy, r) }):
			return true
		}
		for i++; l.pass && i < len(levels) && levels[i].tier == l.tier; i++ {
		}
	}
	return false
}

// lets reports whether a rule lets a request in.
func lets(policy *ciliumpolicy.PerSelectorPolicy, r request) bool {
	if policy == nil || len(policy.HTTP) == 0 {
		return true
	}
	for i := range policy.HTTP {
		if httpMatches(&policy.HTTP[i], r) {
			return true
		}
	}
	return false
}

func onPort(f *ciliumpolicy.L4Filter, proto u8proto.U8proto, port uint16) bool {
	return (f.U8Proto == u8proto.ANY || f.U8Proto == proto) && (f.Port == 0 || f.Port <= port && port <= max(f.Port, f.EndPort))
}

func httpMatches(rule *api.PortRuleHTTP, r request) bool {
	return wholly(rule.Method, r.method) && wholly(rule.Path, r.path)
}

var expressions sync.Map

// wholly matches as the proxy does: the expression must match the whole text.
func wholly(expression, text string) bool {
	if expression == "" {
		return true
	}
	compiled, ok := expressions.Load(expression)
	if !ok {
		compiled, _ = expressions.LoadOrStore(expression, regexp.MustCompile(`^(?:`+expression+`)$`))
	}
	return compiled.(*regexp.Regexp).MatchString(text)
}
