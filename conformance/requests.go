package conformance

import (
	"regexp"
	"sync"

	"github.com/cilium/cilium/pkg/identity"
	ciliumpolicy "github.com/cilium/cilium/pkg/policy"
	"github.com/cilium/cilium/pkg/policy/api"
	"github.com/cilium/cilium/pkg/u8proto"
)

// request of HTTP.
type request struct{ method, path string }

const maxRequests = 7

// requests that are tried on every connection that a proxy looks at: some of each action, some of none.
var requests = [maxRequests]request{{"GET", "/"}, {"HEAD", "/orders/1"}, {"POST", "/orders"}, {"POST", "/orders/1"}, {"POST", "/ordersx"}, {"PUT", "/orders/1"}, {"BREW", "/nowhere"}}

// passesProxy tells what Cilium's policy for its proxy says of a request. The rules of all selectors that select the
// source add up, as they do in the proxy; one without requests lets everything through.
func (p *endpointPolicy) passesProxy(from *identity.Identity, proto u8proto.U8proto, port uint16, r request) bool {
	for filter := range p.policy.SelectorPolicy.L4Policy.Ingress.Filters() {
		if !onPort(filter, proto, port) {
			continue
		}
		for selector, policy := range filter.PerSelectorPolicies {
			switch {
			case !selector.IsWildcard() && !selector.Selects(from.ID) || policy.IsDeny():
			case policy == nil || len(policy.HTTP) == 0:
				return true
			default:
				for i := range policy.HTTP {
					if httpMatches(&policy.HTTP[i], r) {
						return true
					}
				}
			}
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

// wholly matches as the proxy does: the expression has to match the whole text.
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
