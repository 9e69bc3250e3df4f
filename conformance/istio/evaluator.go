package istio

import (
	"errors"
	"fmt"
	"net/netip"
	"regexp"
	"strings"
	"sync"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	rbacv3 "github.com/envoyproxy/go-control-plane/envoy/config/rbac/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	matcherv3 "github.com/envoyproxy/go-control-plane/envoy/type/matcher/v3"

	"github.com/acp-io/acp/internal/enforcer/istiotest"
)

// This file evaluates Envoy's RBAC rules as the reference of envoy.config.rbac.v3 defines them. It does not use AuthorizationPolicies.
// It implements only the rules that istiod generates for ACP's policies; every other rule is an error, so that none is silently ignored.

// errUnknown reports a rule that is not evaluated here.
var errUnknown = errors.New("unknown rule")

// principalState is the key of the filter state in which Istio's peer_metadata filter keeps the identity of the client.
const principalState = "io.istio.peer_principal"

// passes reports whether a chain of RBAC filters lets traffic through: every one must.
func passes(filters []*rbacv3.RBAC, t istiotest.Traffic) (bool, error) {
	out := true
	for _, f := range filters {
		if f == nil {
			continue // A filter without rules does not enforce.
		}
		matched := false
		for name, p := range f.GetPolicies() {
			yes, err := matches(p, t)
			if err != nil {
				return false, fmt.Errorf("policy %s: %w", name, err)
			}
			matched = matched || yes
		}
		switch f.GetAction() {
		case rbacv3.RBAC_ALLOW:
			out = out && matched
		case rbacv3.RBAC_DENY:
			out = out && !matched
		case rbacv3.RBAC_LOG:
		default:
			return false, fmt.Errorf("action %v: %w", f.GetAction(), errUnknown)
		}
	}
	return out, nil
}

// matches reports whether a policy matches: at least one permission and one principal of it must.
func matches(p *rbacv3.Policy, t istiotest.Traffic) (bool, error) {
	if p.GetCondition() != nil || p.GetCheckedCondition() != nil {
		return false, fmt.Errorf("condition: %w", errUnknown)
	}
	permitted, err := anyOf(p.GetPermissions(), t, permission)
	if err != nil {
		return false, err
	}
	identified, err := anyOf(p.GetPrincipals(), t, principal)
	return permitted && identified, err
}

// anyOf and allOf evaluate every element, so that an unknown one is an error wherever it is.
func anyOf[T any](list []T, t istiotest.Traffic, evaluate func(T, istiotest.Traffic) (bool, error)) (bool, error) {
	out := false
	for _, x := range list {
		yes, err := evaluate(x, t)
		if err != nil {
			return false, err
		}
		out = out || yes
	}
	return out, nil
}

func allOf[T any](list []T, t istiotest.Traffic, evaluate func(T, istiotest.Traffic) (bool, error)) (bool, error) {
	out := true
	for _, x := range list {
		yes, err := evaluate(x, t)
		if err != nil {
			return false, err
		}
		out = out && yes
	}
	return out, nil
}

// permission reports whether a permission matches.
func permission(p *rbacv3.Permission, t istiotest.Traffic) (bool, error) {
	switch r := p.GetRule().(type) {
	case *rbacv3.Permission_Any:
		return r.Any, nil
	case *rbacv3.Permission_AndRules:
		return allOf(r.AndRules.GetRules(), t, permission)
	case *rbacv3.Permission_OrRules:
		return anyOf(r.OrRules.GetRules(), t, permission)
	case *rbacv3.Permission_NotRule:
		yes, err := permission(r.NotRule, t)
		return !yes, err
	case *rbacv3.Permission_DestinationPort:
		return r.DestinationPort == uint32(t.Port), nil
	case *rbacv3.Permission_DestinationIp:
		if !t.Destination.IsValid() {
			return false, fmt.Errorf("the address of the destination: %w", errUnknown)
		}
		return inRange(r.DestinationIp, t.Destination)
	case *rbacv3.Permission_Header:
		return matchHeader(r.Header, t)
	case *rbacv3.Permission_UrlPath:
		return matchPath(r.UrlPath, t)
	default:
		return false, fmt.Errorf("permission %T: %w", r, errUnknown)
	}
}

// principal reports whether a principal matches.
func principal(p *rbacv3.Principal, t istiotest.Traffic) (bool, error) {
	switch r := p.GetIdentifier().(type) {
	case *rbacv3.Principal_Any:
		return r.Any, nil
	case *rbacv3.Principal_AndIds:
		return allOf(r.AndIds.GetIds(), t, principal)
	case *rbacv3.Principal_OrIds:
		return anyOf(r.OrIds.GetIds(), t, principal)
	case *rbacv3.Principal_NotId:
		yes, err := principal(r.NotId, t)
		return !yes, err
	case *rbacv3.Principal_DirectRemoteIp:
		return inRange(r.DirectRemoteIp, t.Address)
	case *rbacv3.Principal_Authenticated_:
		if t.Principal == "" {
			return false, nil
		}
		if r.Authenticated.GetPrincipalName() == nil {
			return true, nil // Any certificate.
		}
		return matchText(r.Authenticated.GetPrincipalName(), spiffe(t))
	case *rbacv3.Principal_FilterState:
		if r.FilterState.GetKey() != principalState || r.FilterState.GetStringMatch() == nil {
			return false, fmt.Errorf("filter state %s: %w", r.FilterState.GetKey(), errUnknown)
		}
		if t.Principal == "" {
			return false, nil // The state does not exist.
		}
		return matchText(r.FilterState.GetStringMatch(), spiffe(t))
	default:
		return false, fmt.Errorf("principal %T: %w", r, errUnknown)
	}
}

// spiffe returns the identity of the client as in its certificate.
func spiffe(t istiotest.Traffic) string { return "spiffe://" + t.Principal }

// inRange reports whether an address is in a range.
func inRange(r *corev3.CidrRange, a netip.Addr) (bool, error) {
	at, err := netip.ParseAddr(r.GetAddressPrefix())
	if err != nil {
		return false, fmt.Errorf("address prefix: %w", err)
	}
	return netip.PrefixFrom(at, int(r.GetPrefixLen().GetValue())).Masked().Contains(a), nil //nolint:gosec // at most 128
}

// matchHeader evaluates a matcher of the header :method. Other headers are not sent.
func matchHeader(h *routev3.HeaderMatcher, t istiotest.Traffic) (bool, error) {
	if h.GetName() != ":method" || h.GetStringMatch() == nil {
		return false, fmt.Errorf("header %s: %w", h.GetName(), errUnknown)
	}
	if t.Method == "" {
		return h.GetInvertMatch(), nil
	}
	yes, err := matchText(h.GetStringMatch(), t.Method)
	return yes != h.GetInvertMatch(), err
}

// matchPath evaluates a matcher of the path, which is the part before the query.
func matchPath(p *matcherv3.PathMatcher, t istiotest.Traffic) (bool, error) {
	if t.Path == "" {
		return false, nil
	}
	before, _, _ := strings.Cut(t.Path, "?")
	return matchText(p.GetPath(), before)
}

// expressions caches the compiled regular expressions of matchers, because the same ones are evaluated for many connections.
var expressions sync.Map

// compiled returns a regular expression that has to match the whole text.
func compiled(text string) (*regexp.Regexp, error) {
	if have, ok := expressions.Load(text); ok {
		return have.(*regexp.Regexp), nil //nolint:forcetypeassert // stored below
	}
	x, err := regexp.Compile("^(?:" + text + ")$")
	if err == nil {
		expressions.Store(text, x)
	}
	return x, err
}

// matchText evaluates a matcher of a text.
func matchText(m *matcherv3.StringMatcher, s string) (bool, error) {
	fold := func(s string) string { return s }
	if m.GetIgnoreCase() {
		fold = strings.ToLower
	}
	s = fold(s)
	switch p := m.GetMatchPattern().(type) {
	case *matcherv3.StringMatcher_Exact:
		return s == fold(p.Exact), nil
	case *matcherv3.StringMatcher_Prefix:
		return strings.HasPrefix(s, fold(p.Prefix)), nil
	case *matcherv3.StringMatcher_Suffix:
		return strings.HasSuffix(s, fold(p.Suffix)), nil
	case *matcherv3.StringMatcher_Contains:
		return strings.Contains(s, fold(p.Contains)), nil
	case *matcherv3.StringMatcher_SafeRegex:
		x, err := compiled(p.SafeRegex.GetRegex())
		if err != nil {
			return false, fmt.Errorf("regular expression: %w", err)
		}
		return x.MatchString(s), nil
	default:
		return false, fmt.Errorf("string matcher %T: %w", p, errUnknown)
	}
}
