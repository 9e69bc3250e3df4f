package ciliumtest

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/enforcer/cilium"
	"github.com/acp-io/acp/internal/policy"
)

// Mutant is a translation with a plausible mistake, which the comparison must detect.
type Mutant struct {
	Name, Why string
	// Refused reports whether Cilium rejects its result.
	Refused bool
	// Break changes the spec of one policy.
	Break func(spec map[string]any)
	// BreakGroup changes one group.
	BreakGroup func(g *Group)
	// Compile changes what is rendered, with the objects of the correct translation.
	Compile func(s *policy.Snapshot, at time.Time, o Objects) error
}

// Translate is the translation with the mistake.
func (m *Mutant) Translate(s *policy.Snapshot, at time.Time) (Objects, error) {
	o, err := Translate(s, at)
	if err != nil {
		return o, err
	}
	for name, spec := range o.Policies {
		if m.Break == nil {
			break
		}
		if spec, err = CloneSpec(spec); err != nil {
			return o, err
		}
		m.Break(spec)
		o.Policies[name] = spec
	}
	for name, g := range o.Groups {
		if m.BreakGroup != nil {
			m.BreakGroup(&g)
			o.Groups[name] = g
		}
	}
	if m.Compile != nil {
		return o, m.Compile(s, at, o)
	}
	return o, nil
}

// CloneSpec returns a deep copy of a spec.
func CloneSpec(spec map[string]any) (map[string]any, error) {
	text, err := json.Marshal(spec)
	if err != nil {
		return nil, fmt.Errorf("clone a spec: %w", err)
	}
	var out map[string]any
	return out, json.Unmarshal(text, &out)
}

// Mutants returns the mistakes.
func Mutants() []Mutant {
	return []Mutant{
		{Name: "no-cluster-clause", Why: "a peer without it means the local cluster only", Break: dropExpressions("k8s:io.cilium.k8s.policy.cluster", "")},
		{Name: "empty-list", Refused: true, Why: "an agent refuses it, and keeps what it had", Break: func(spec map[string]any) {
			if list := rules(spec, "ingress"); len(list) == 1 && len(list[0]) == 0 {
				spec["ingress"] = []any{}
			}
		}},
		{Name: "rule-without-peers", Why: "a rule whose peers came out empty matches everyone", Break: func(spec map[string]any) {
			eachRule(spec, func(r map[string]any) { delete(r, "fromCIDRSet") })
		}},
		{Name: "deny-in-audit", Why: "Audit must let everything through", Compile: denyInAudit},
		{
			Name:  "deny-entity-all",
			Why:   "a deny of everyone must not keep out the own node's probes",
			Break: denyAll(map[string]any{"fromEntities": []any{"all"}}),
		},
		{Name: "deny-entity-host", Why: "a deny of everyone must not name the own node", Break: denyAll(map[string]any{"fromEntities": []any{"host"}})},
		{Name: "deny-without-peers", Why: "a deny of ports alone keeps out the own node's probes", Break: denyAll(map[string]any{})},
		{Name: "no-default-deny", Why: "Enforce has to close", Break: func(spec map[string]any) { SetDefaultDeny(spec, false) }},
		{
			Name:  "default-deny-in-audit",
			Why:   "Audit, a wildcard and other ports must not close",
			Break: func(spec map[string]any) { SetDefaultDeny(spec, true) },
		},
		{
			Name:  "derived-default-deny",
			Why:   "an agent derives what is not written, and closes",
			Break: func(spec map[string]any) { delete(spec, "enableDefaultDeny") },
		},
		{
			Name:  "no-namespace-clause",
			Why:   "a deny has to reach identities without a namespace",
			Break: dropSelectors("k8s:io.kubernetes.pod.namespace", "DoesNotExist"),
		},
		{
			Name:  "no-entities-in-deny",
			Why:   "a deny of everyone has to reach other nodes",
			Break: func(spec map[string]any) { dropRules(spec, "ingressDeny", "fromEntities") },
		},
		{Name: "no-cidr-in-deny", Why: "a deny has to reach addresses", Break: func(spec map[string]any) { dropRules(spec, "ingressDeny", "fromCIDRSet") }},
		{Name: "no-deny", Why: "a deny has to be there", Break: func(spec map[string]any) { delete(spec, "ingressDeny") }},
		{Name: "base-mode-everywhere", Why: "a member may have a mode of its own", Compile: baseMode},
		{Name: "http-in-audit", Why: "Audit must not look at requests", Compile: httpInAudit},
		{
			Name:    "requests-in-audit",
			Why:     "an allow of requests in Audit, as one of connections, would open what another resource of the pod closes",
			Compile: requestsInAudit,
		},
		{Name: "no-http", Why: "an allow of some requests is no allow of all", Break: func(spec map[string]any) {
			eachRule(spec, func(r map[string]any) { eachPorts(r, func(p map[string]any) { delete(p, "rules") }) })
		}},
		{Name: "no-http-method", Why: "an action of requests has its methods", Break: dropHTTP("method")},
		{Name: "no-http-path", Why: "an action of requests has its paths", Break: dropHTTP("path")},
		{Name: "no-end-port", Why: "a range is more than its first port", Break: eachPort(func(p map[string]any) { delete(p, "endPort") })},
		{Name: "first-port-list-only", Why: "a rule may need several lists of ports", Break: func(spec map[string]any) {
			eachRule(spec, func(r map[string]any) {
				if lists, ok := r["toPorts"].([]any); ok {
					r["toPorts"] = lists[:1]
				}
			})
		}},
		{Name: "any-protocol", Why: "a port is of one protocol", Break: eachPort(func(p map[string]any) { delete(p, "protocol") })},
		{Name: "no-ports", Why: "an allow is of some ports only", Break: func(spec map[string]any) {
			eachRule(spec, func(r map[string]any) { delete(r, "toPorts") })
		}},
		{Name: "empty-label-counts", Why: "an empty label names no workload", Break: dropExpressions("", "NotIn")},
		{Name: "foreign-keys-ignored", Why: "other ports stay closed where another class's label is", Break: func(spec map[string]any) {
			dropFrom(asMap(spec["endpointSelector"]), func(e any) bool { return isExpression(e, "", "DoesNotExist") })
		}},
		{Name: "no-icmp", Why: "ICMP is stated apart", Break: func(spec map[string]any) { dropRules(spec, "ingress", "icmps") }},
		{
			Name:       "contested-counts",
			Why:        "an allow must not reach an address that several claim",
			BreakGroup: func(g *Group) { delete(g.Labels, "acp.io/contested") },
		},
		{Name: "no-group-class", Why: "a whole class has its external workloads", BreakGroup: func(g *Group) { g.Labels = nil }},
		{Name: "whole-family-in-group", Why: "a prefix of all addresses in a group is none of an address's", BreakGroup: joinHalves},
		{Name: "wildcard-for-one", Why: "an allow of one resource is of no other", Break: func(spec map[string]any) {
			selector := asMap(spec["endpointSelector"])
			for key := range asMap(selector["matchLabels"]) {
				selector["matchExpressions"] = []any{map[string]any{"key": key, "operator": "Exists"}}
			}
			delete(selector, "matchLabels")
		}},
		{Name: "other-mesh-ignored", Why: "a denied pod of another cluster mesh comes as an address", Compile: oneMesh},
		{Name: "expired-counts", Why: "what is over is out of force", Compile: func(s *policy.Snapshot, at time.Time, o Objects) error {
			return replace(s, at.Add(-90*time.Minute), o)
		}},
	}
}

// joinHalves writes the two halves of all IPv4 addresses as one prefix.
func joinHalves(g *Group) {
	low, high := netip.MustParsePrefix("0.0.0.0/1"), netip.MustParsePrefix("128.0.0.0/1")
	if slices.Contains(g.Prefixes, low) && slices.Contains(g.Prefixes, high) {
		g.Prefixes = slices.DeleteFunc(slices.Clone(g.Prefixes), func(p netip.Prefix) bool { return p == low || p == high })
		g.Prefixes = append(g.Prefixes, netip.MustParsePrefix("0.0.0.0/0"))
	}
}

// oneMesh renders as if every member could identify the pods of all others.
func oneMesh(s *policy.Snapshot, at time.Time, o Objects) error {
	for _, u := range s.Compile(at) {
		rendering, err := cilium.Enforcer{}.Render(u)
		if err != nil {
			return err
		}
		for _, r := range rendering.Objects {
			if _, there := o.Policies[r.Object.Name]; !there {
				continue
			}
			o.Policies[r.Object.Name] = r.Object.Spec
			if spec, ok := r.Overrides[Here]; ok {
				o.Policies[r.Object.Name] = spec
			}
		}
	}
	return nil
}

// audited renders the units that are in Audit here as if they were in Enforce, and converts the result to Audit with a
// change.
func audited(s *policy.Snapshot, at time.Time, o Objects, change func(audit, enforce map[string]any)) error {
	for _, u := range s.Compile(at) {
		if u.Wildcard || s.EffectiveMode(u.Resource, Here, at) != v1alpha1.ModeAudit {
			continue
		}
		u.Mode, u.ClusterModes = v1alpha1.ModeEnforce, nil
		rendering, err := cilium.Enforcer{}.Render(u)
		if err != nil {
			return err
		}
		for _, r := range rendering.Objects {
			spec, err := CloneSpec(o.Policies[r.Object.Name])
			if err != nil {
				return err
			}
			change(spec, r.Object.Spec)
			o.Policies[r.Object.Name] = spec
		}
	}
	return nil
}

func denyInAudit(s *policy.Snapshot, at time.Time, o Objects) error {
	return audited(s, at, o, func(audit, enforce map[string]any) {
		if deny, ok := enforce["ingressDeny"]; ok {
			audit["ingressDeny"] = deny
		}
	})
}

func httpInAudit(s *policy.Snapshot, at time.Time, o Objects) error {
	return audited(s, at, o, func(audit, enforce map[string]any) { audit["ingress"] = enforce["ingress"] })
}

func requestsInAudit(s *policy.Snapshot, at time.Time, o Objects) error {
	return audited(s, at, o, func(audit, enforce map[string]any) {
		audit["ingress"] = enforce["ingress"]
		eachRule(audit, func(r map[string]any) { eachPorts(r, func(p map[string]any) { delete(p, "rules") }) })
	})
}

// baseMode gives every member the template.
func baseMode(s *policy.Snapshot, at time.Time, o Objects) error {
	for _, u := range s.Compile(at) {
		rendering, err := cilium.Enforcer{}.Render(u)
		if err != nil {
			return err
		}
		for _, r := range rendering.Objects {
			if _, here := o.Policies[r.Object.Name]; here {
				o.Policies[r.Object.Name] = r.Object.Spec
			}
		}
	}
	return nil
}

// replace replaces the exact units by those of another instant.
func replace(s *policy.Snapshot, other time.Time, o Objects) error {
	then, err := Translate(s, other)
	if err != nil {
		return err
	}
	for name, spec := range then.Policies {
		if _, here := o.Policies[name]; here && !strings.HasSuffix(name, "-other-ports") {
			o.Policies[name] = spec
		}
	}
	return nil
}
