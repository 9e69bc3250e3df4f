package conformance

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"

	"github.com/acp-io/acp/internal/enforcer/ciliumtest"
)

// FaultyDetector is a detector with a plausible mistake, which the comparison must detect.
type FaultyDetector struct {
	Name, Why string
	// Overreports is true when the mistake reports what is not opened, rather than missing what is.
	Overreports bool
	// Break changes the input of the product's detector: it returns a foreign policy, or nil to omit it.
	Break func(policy map[string]any) map[string]any
	// BreakOwn changes ACP's objects, and BreakPods the labels of the member's pods.
	BreakOwn  func(o Objects) Objects
	BreakPods func(pods []map[string]string) []map[string]string
}

// Detector is the detector with the mistake.
func (d *FaultyDetector) Detector(own Objects, foreign []map[string]any, pods []map[string]string) func(key, value string) string {
	var broken []map[string]any
	for _, f := range foreign {
		if d.Break == nil {
			broken = foreign
			break
		}
		copied, err := ciliumtest.CloneSpec(f)
		if err != nil {
			continue
		}
		if copied = d.Break(copied); copied != nil {
			broken = append(broken, copied)
		}
	}
	if d.BreakOwn != nil {
		own = d.BreakOwn(Objects{Policies: maps.Clone(own.Policies), Groups: maps.Clone(own.Groups)})
	}
	if d.BreakPods != nil {
		pods = d.BreakPods(pods)
	}
	return Detect(own, broken, pods)
}

// ofKind changes policies of one kind.
func ofKind(kind string, do func(spec map[string]any)) func(map[string]any) map[string]any {
	return func(p map[string]any) map[string]any {
		if spec, ok := p["spec"].(map[string]any); ok && p["kind"] == kind {
			do(spec)
		}
		return p
	}
}

// eachIngress changes the ingress rules of a kind; it removes a rule if do returns so.
func eachIngress(kind string, keep func(r map[string]any) bool) func(map[string]any) map[string]any {
	return ofKind(kind, func(spec map[string]any) {
		list, _ := spec["ingress"].([]any)
		spec["ingress"] = slices.DeleteFunc(list, func(v any) bool {
			r, ok := v.(map[string]any)
			return ok && !keep(r)
		})
	})
}

func without(kind string) func(map[string]any) map[string]any {
	return func(p map[string]any) map[string]any {
		if p["kind"] == kind {
			return nil
		}
		return p
	}
}

// FaultyDetectors returns the mistakes.
func FaultyDetectors() []FaultyDetector {
	const np, cnp, ccnp, kcnp = "NetworkPolicy", "CiliumNetworkPolicy", "CiliumClusterwideNetworkPolicy", "ClusterNetworkPolicy"
	return []FaultyDetector{
		{Name: "egress-alone", Why: "a NetworkPolicy about egress alone lets in whom its ingress rules name", Break: ofKind(np, func(spec map[string]any) {
			if types, _ := spec["policyTypes"].([]any); len(types) > 0 && !slices.Contains(types, any("Ingress")) {
				delete(spec, "ingress")
			}
		})},
		{Name: "no-network-policy", Why: "NetworkPolicies open", Break: without(np)},
		{Name: "no-cilium-policy", Why: "CiliumNetworkPolicies open", Break: without(cnp)},
		{Name: "no-clusterwide-policy", Why: "CiliumClusterwideNetworkPolicies open", Break: without(ccnp)},
		{Name: "no-cluster-network-policy", Why: "ClusterNetworkPolicies open", Break: without(kcnp)},
		{Name: "no-baseline", Why: "an allow of the Baseline tier opens what only default deny closes", Break: func(p map[string]any) map[string]any {
			if spec, _ := p["spec"].(map[string]any); spec["tier"] == "Baseline" {
				return nil
			}
			return p
		}},
		{
			Name:  "admin-like-the-others",
			Why:   "the Admin tier goes before ACP's denies",
			Break: ofKind(kcnp, func(spec map[string]any) { spec["tier"] = "Baseline" }),
		},
		{
			Name:        "baseline-first",
			Overreports: true,
			Why:         "the Baseline tier comes after ACP's denies",
			Break:       ofKind(kcnp, func(spec map[string]any) { spec["tier"] = "Admin" }),
		},
		{Name: "pass-denies", Why: "what the Admin tier passes on is let in by the next", Break: eachIngress(kcnp, func(r map[string]any) bool {
			if r["action"] == "Pass" {
				r["action"] = "Deny"
			}
			return true
		})},
		{Name: "pass-allows", Overreports: true, Why: "what is passed on is not let in", Break: eachIngress(kcnp, func(r map[string]any) bool {
			if r["action"] == "Pass" {
				r["action"] = "Accept"
			}
			return true
		})},
		{
			Name:  "no-pass",
			Why:   "what is passed on goes past a deny of the same tier",
			Break: eachIngress(kcnp, func(r map[string]any) bool { return r["action"] != "Pass" }),
		},
		{
			Name:        "no-cluster-denies",
			Overreports: true,
			Why:         "a deny of the Admin tier takes away what others allow",
			Break:       eachIngress(kcnp, func(r map[string]any) bool { return r["action"] != "Deny" }),
		},
		{
			Name:        "no-denies",
			Overreports: true,
			Why:         "a deny of Cilium's takes away what others allow",
			Break:       ofKind(ccnp, func(spec map[string]any) { delete(spec, "ingressDeny") }),
		},
		{Name: "no-priority", Why: "priorities order the policies of a tier", Break: ofKind(kcnp, func(spec map[string]any) { spec["priority"] = float64(5) })},
		{Name: "no-specs", Why: "rules may stand in specs", Break: func(p map[string]any) map[string]any {
			delete(p, "specs")
			return p
		}},
		{Name: "first-rule-alone", Why: "every rule counts", Break: ofKind(ccnp, func(spec map[string]any) {
			if list, _ := spec["ingress"].([]any); len(list) > 1 {
				spec["ingress"] = list[:1]
			}
		})},
		{Name: "no-ports", Overreports: true, Why: "a policy opens the ports that it names, and no others", Break: eachIngress(np, func(r map[string]any) bool {
			delete(r, "ports")
			return true
		})},
		{
			Name:        "no-peers",
			Overreports: true,
			Why:         "a policy opens to the clients that it names, and no others",
			Break: eachIngress(ccnp, func(r map[string]any) bool {
				delete(r, "fromEndpoints")
				return true
			}),
		},
		{Name: "no-end-port", Why: "a port may be the first of a range", Break: eachIngress(np, func(r map[string]any) bool {
			list, _ := r["ports"].([]any)
			for _, p := range list {
				delete(p.(map[string]any), "endPort")
			}
			return true
		})},
		{Name: "no-requests", Why: "requests that ACP does not allow are opened, too", Break: eachIngress(ccnp, func(r map[string]any) bool {
			text, err := json.Marshal(r["toPorts"])
			return err != nil || !bytes.Contains(text, []byte(`"http"`))
		})},
		{Name: "no-namespace", Overreports: true, Why: "a NetworkPolicy is about its namespace", Break: func(p map[string]any) map[string]any {
			if meta, _ := p["metadata"].(map[string]any); p["kind"] == np {
				meta["namespace"] = "default"
			}
			return p
		}},
		{
			Name:  "no-addresses",
			Why:   "ranges of addresses open, too",
			Break: eachIngress(ccnp, func(r map[string]any) bool { return r["fromCIDR"] == nil && r["fromCIDRSet"] == nil }),
		},
		{Name: "no-exceptions", Overreports: true, Why: "an exception of a range is not opened", Break: eachIngress(np, func(r map[string]any) bool {
			list, _ := r["from"].([]any)
			for _, p := range list {
				if block, ok := p.(map[string]any)["ipBlock"].(map[string]any); ok {
					delete(block, "except")
				}
			}
			return true
		})},
		{Name: "no-entities", Why: "entities open, too", Break: eachIngress(ccnp, func(r map[string]any) bool { return r["fromEntities"] == nil })},
		{Name: "acp-allows-nothing", Overreports: true, Why: "what ACP allows is not opened", BreakOwn: func(o Objects) Objects {
			for name, spec := range o.Policies {
				if spec, err := ciliumtest.CloneSpec(spec); err == nil {
					spec["ingress"] = []any{map[string]any{}}
					o.Policies[name] = spec
				}
			}
			return o
		}},
		{Name: "acp-denies-nothing", Overreports: true, Why: "what ACP denies only the Admin tier opens", BreakOwn: func(o Objects) Objects {
			for name, spec := range o.Policies {
				if spec, err := ciliumtest.CloneSpec(spec); err == nil {
					delete(spec, "ingressDeny")
					o.Policies[name] = spec
				}
			}
			return o
		}},
		{Name: "acp-closes-nothing", Why: "default deny is what is opened", BreakOwn: func(o Objects) Objects {
			for name, spec := range o.Policies {
				if spec, err := ciliumtest.CloneSpec(spec); err == nil {
					ciliumtest.SetDefaultDeny(spec, false)
					o.Policies[name] = spec
				}
			}
			return o
		}},
		{Name: "few-clients", Why: "every pod of the member that a selector means counts", BreakPods: func(pods []map[string]string) []map[string]string {
			return slices.DeleteFunc(slices.Clone(pods), func(p map[string]string) bool { return p["app"] == "prometheus" })
		}},
		{
			Name:        "pods-nobody-knows",
			Overreports: true,
			Why:         "the labels of the member's pods say whom a selector means",
			BreakPods:   func([]map[string]string) []map[string]string { return nil },
		},
	}
}
