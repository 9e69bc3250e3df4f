package istio

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/acp-io/acp/internal/enforcer/istiotest"
)

// This file decides connections from AuthorizationPolicies alone. It is written from Istio's reference ("Authorization
// Policy", "Authorization Policy Normalization", and "Authorization" for ambient), and shares nothing with the
// translator: it reads the objects as JSON, by field names of its own, and refuses what it does not know.

type authorizationPolicy struct {
	Selector *struct {
		MatchLabels map[string]string `json:"matchLabels"`
	} `json:"selector"`
	TargetRefs []struct {
		Group string `json:"group"`
		Kind  string `json:"kind"`
		Name  string `json:"name"`
	} `json:"targetRefs"`
	Action string              `json:"action"`
	Rules  []authorizationRule `json:"rules"`
}

type authorizationRule struct {
	From []struct {
		Source authorizationSource `json:"source"`
	} `json:"from"`
	To []struct {
		Operation authorizationOperation `json:"operation"`
	} `json:"to"`
}

type authorizationSource struct {
	Principals    []string `json:"principals"`
	NotPrincipals []string `json:"notPrincipals"`
	IPBlocks      []string `json:"ipBlocks"`
	NotIPBlocks   []string `json:"notIpBlocks"`
}

type authorizationOperation struct {
	Ports    []string `json:"ports"`
	NotPorts []string `json:"notPorts"`
	Methods  []string `json:"methods"`
	Paths    []string `json:"paths"`
}

// mesh is the policies of one member's root namespace, and how they are enforced.
type mesh struct {
	ambient  bool
	policies []authorizationPolicy
}

func (m *mesh) add(spec map[string]any) error {
	text, err := json.Marshal(spec)
	if err != nil {
		return err
	}
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	var p authorizationPolicy
	if err := decoder.Decode(&p); err != nil {
		return fmt.Errorf("%s: %w", text, err)
	}
	m.policies = append(m.policies, p)
	if err := p.check(); err != nil {
		return fmt.Errorf("%s: %w", text, err)
	}
	return nil
}

// check is what Istio's own validation refuses, as far as these fields go.
func (p *authorizationPolicy) check() error {
	if !slices.Contains([]string{"ALLOW", "DENY", "AUDIT"}, p.Action) {
		return fmt.Errorf("action %q", p.Action)
	}
	if p.Action == "DENY" && p.Rules == nil {
		return fmt.Errorf("DENY without rules is never triggered")
	}
	if len(p.TargetRefs) > 0 && p.Selector != nil {
		return fmt.Errorf("a policy has a selector or targetRefs")
	}
	if len(p.TargetRefs) == 0 && (p.Selector == nil || len(p.Selector.MatchLabels) == 0) {
		return fmt.Errorf("the policy selects every workload of the mesh")
	}
	if len(p.Rules) > 512 {
		return fmt.Errorf("%d rules, at most 512", len(p.Rules))
	}
	for _, r := range p.Rules {
		if len(r.From) > 512 {
			return fmt.Errorf("%d entries in from, at most 512", len(r.From))
		}
		for _, f := range r.From {
			s := f.Source
			if len(s.Principals)+len(s.NotPrincipals)+len(s.IPBlocks)+len(s.NotIPBlocks) == 0 {
				return fmt.Errorf("an empty source")
			}
			for _, block := range slices.Concat(s.IPBlocks, s.NotIPBlocks) {
				if _, err := netip.ParsePrefix(block); err != nil {
					return err
				}
			}
		}
		for _, t := range r.To {
			o := t.Operation
			if len(o.Ports)+len(o.NotPorts)+len(o.Methods)+len(o.Paths) == 0 {
				return fmt.Errorf("an empty operation")
			}
			for _, text := range slices.Concat(o.Methods, o.Paths) {
				if text == "" || strings.Contains(strings.TrimPrefix(strings.TrimSuffix(text, "*"), "*"), "*") {
					return fmt.Errorf("match %q", text)
				}
			}
		}
	}
	return nil
}

// passes is the order of evaluation: a DENY that matches denies; without ALLOW policies all is allowed; an ALLOW that
// matches allows; the rest is denied. AUDIT decides nothing.
func (m *mesh) passes(labels map[string]string, t istiotest.Traffic) bool {
	return m.decide(t, func(p *authorizationPolicy) bool { return p.selects(labels) })
}

// passesWaypoint decides by the policies about the Gateway of a waypoint, which sees requests, and the port of a Service instead of the pod's.
func (m *mesh) passesWaypoint(gateway string, t istiotest.Traffic) bool {
	waypoint := mesh{policies: m.policies}
	return waypoint.decide(t, func(p *authorizationPolicy) bool {
		for _, r := range p.TargetRefs {
			if r.Group == "gateway.networking.k8s.io" && r.Kind == "Gateway" && r.Name == gateway {
				return true
			}
		}
		return false
	})
}

func (m *mesh) decide(t istiotest.Traffic, applies func(p *authorizationPolicy) bool) bool {
	var denies, allows []authorizationPolicy
	for _, p := range m.policies {
		if !applies(&p) {
			continue
		}
		switch p.Action {
		case "DENY":
			denies = append(denies, p)
		case "ALLOW":
			allows = append(allows, p)
		}
	}
	if slices.ContainsFunc(denies, func(p authorizationPolicy) bool { return m.matches(p, t) }) {
		return false
	}
	return len(allows) == 0 || slices.ContainsFunc(allows, func(p authorizationPolicy) bool { return m.matches(p, t) })
}

func (p *authorizationPolicy) selects(labels map[string]string) bool {
	if p.Selector == nil {
		return false
	}
	for k, v := range p.Selector.MatchLabels {
		if labels[k] != v {
			return false
		}
	}
	return true
}

// matches: a policy matches if one of its rules does; a rule if one of its sources and one of its operations do, where
// an absent list is any.
func (m *mesh) matches(p authorizationPolicy, t istiotest.Traffic) bool {
	return slices.ContainsFunc(p.Rules, func(r authorizationRule) bool {
		from := len(r.From) == 0
		for _, f := range r.From {
			from = from || f.Source.matches(t)
		}
		to := len(r.To) == 0
		for _, o := range r.To {
			to = to || m.operates(p.Action, o.Operation, t)
		}
		return from && to
	})
}

// matches: all fields of a source have to.
func (s *authorizationSource) matches(t istiotest.Traffic) bool {
	return listed(s.Principals, t.Principal, true) && !listed(s.NotPrincipals, t.Principal, false) &&
		inBlocks(s.IPBlocks, t.Address, true) && !inBlocks(s.NotIPBlocks, t.Address, false)
}

// operates: all fields of an operation have to match. Where requests are not seen, because the protocol is not HTTP or
// the member is ambient, an ALLOW about requests never matches, and a DENY matches without looking at them.
func (m *mesh) operates(action string, o authorizationOperation, t istiotest.Traffic) bool {
	port := fmt.Sprint(t.Port)
	if len(o.Ports) > 0 && !slices.Contains(o.Ports, port) || slices.Contains(o.NotPorts, port) {
		return false
	}
	if len(o.Methods)+len(o.Paths) == 0 {
		return true
	}
	if m.ambient || t.Method == "" {
		return action == "DENY"
	}
	path, _, _ := strings.Cut(t.Path, "?")
	return listed(o.Methods, t.Method, true) && listed(o.Paths, path, true)
}

// listed matches text with a list of exact texts, prefixes, suffixes, and "*" for any that is not empty. A list that is
// not there gives absent.
func listed(patterns []string, text string, absent bool) bool {
	if len(patterns) == 0 {
		return absent
	}
	return slices.ContainsFunc(patterns, func(p string) bool {
		switch {
		case p == "*":
			return text != ""
		case strings.HasPrefix(p, "*"):
			return strings.HasSuffix(text, p[1:])
		case strings.HasSuffix(p, "*"):
			return strings.HasPrefix(text, p[:len(p)-1])
		default:
			return text == p
		}
	})
}

func inBlocks(blocks []string, a netip.Addr, absent bool) bool {
	if len(blocks) == 0 {
		return absent
	}
	return slices.ContainsFunc(blocks, func(b string) bool { return netip.MustParsePrefix(b).Contains(a) })
}
