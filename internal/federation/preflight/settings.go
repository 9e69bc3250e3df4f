package preflight

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/acp-io/acp/api/v1alpha1"
)

// Voids are the modes in which the policies of a member have another meaning because of a finding. A unit in such a
// mode is never Realized in that member.
type Voids uint8

// Bits of Voids. VoidsAudit includes units of wildcards, which are rendered as Audit.
const (
	VoidsEnforce Voids = 1 << iota
	VoidsAudit
	voidsAll = VoidsEnforce | VoidsAudit
)

// In reports whether a unit of the mode has another meaning. A wildcard has the mode "".
func (v Voids) In(mode v1alpha1.Mode) bool {
	if mode == v1alpha1.ModeEnforce {
		return v&VoidsEnforce != 0
	}
	return v&VoidsAudit != 0
}

// setting is one key of the agents' configuration whose value can change the meaning of policies. The names and
// defaults are those of Cilium 1.20 (pkg/option, pkg/defaults, pkg/maps/policymap).
type setting struct {
	key      string
	code     string
	severity Severity
	voids    Voids
	// bad reports whether a value has the consequence. The default, which applies if the key is missing, never has it.
	bad func(value string) bool
	// consequence completes the sentence "Cilium's <key> is <value>: ...".
	consequence, do string
}

// checkedSettings are the settings that Assess checks one by one, in every place from which agents read them.
var checkedSettings = []setting{
	{"policy-audit-mode", AuditMode, Fails, voidsAll, mayBeTrue, "nothing is refused there", "set it to false and restart the agents"},
	{"enable-policy", NotEnforcing, Fails, voidsAll, func(v string) bool { return !oneOf(v, "default", "always") },
		"nothing is refused there", "set it to default and restart the agents"},
	{"enable-policy", AlwaysEnforcing, Fails, VoidsAudit, func(v string) bool { return oneOf(v, "always") },
		"pods are closed without a policy, so what is in Observe or Audit is refused as well", "set it to default and restart the agents"},
	{"enable-cilium-clusterwide-network-policy", PoliciesIgnored, Fails, voidsAll, mayBeFalse,
		"agents ignore the policies that ACP pushes", "set it to true and restart agents and operator"},
	{"policy-cidr-match-mode", RangesMatchPods, Fails, voidsAll, func(v string) bool { return strings.TrimSpace(v) != "" },
		"address ranges also match pods or nodes, so a grant to a range lets in more than it says", "remove it and restart the agents"},
	{"allow-localhost", NodeRefused, Fails, VoidsEnforce, func(v string) bool { return !oneOf(v, "auto", "always") },
		"a closed workload also refuses its own node, so kubelet's probes of it fail", "set it to auto and restart the agents"},
	{"enable-non-default-deny-policies", AuditCloses, Fails, voidsAll, mayBeFalse,
		"every policy closes the workloads that it selects in both directions, so Audit and wildcard grants would close them, too", "set it to true and restart agents and operator"},
	{"enable-icmp-rules", ICMPRefused, Fails, VoidsEnforce, mayBeFalse,
		"agents refuse the policies that open the ports of no action", "set it to true and restart agents and operator"},
	{"label-prefix-file", LabelsUnreadable, Fails, VoidsEnforce, func(v string) bool { return v != "" },
		"identity labels come from a file that cannot be read from here, so it is unknown whether policies select any pod", "give the same rules in the setting labels and restart the agents"},
}

// mayBeTrue and mayBeFalse parse a boolean as agents do. Any other value counts as both.
func mayBeTrue(v string) bool {
	on, err := strconv.ParseBool(strings.TrimSpace(v))
	return on || err != nil && strings.TrimSpace(v) != ""
}

func mayBeFalse(v string) bool {
	on, err := strconv.ParseBool(strings.TrimSpace(v))
	return err != nil || !on
}

func oneOf(v string, values ...string) bool {
	return slices.Contains(values, strings.ToLower(strings.TrimSpace(v)))
}

// settingFindings checks the configuration of the agents. A configuration that was not read is unknown, and unknown
// counts as not enforced.
func settingFindings(f Facts, n Needs) []Finding {
	if f.withoutCilium() {
		return istioAlone(f)
	}
	c := f.Cilium
	if why := c.unread(); why != "" {
		return []Finding{{Severity: Fails, Code: ConfigUnread, voids: voidsAll, Message: "Cilium's configuration is unknown: " + why,
			Do: "apply deploy/rbac/member there, and where the configuration is elsewhere name it in the annotations of the KubeFedCluster; without it nothing counts as enforced"}}
	}
	var out []Finding
	for _, s := range checkedSettings {
		for _, source := range c.Sources {
			if v, ok := source.Settings[s.key]; ok && s.bad(v) {
				out = append(out, Finding{Severity: s.severity, Code: s.code, voids: s.voids,
					Message: fmt.Sprintf("Cilium's %s is %q in %s: %s", s.key, clip(v), source.Where, s.consequence), Do: s.do})
				break // one place is enough for a finding
			}
		}
	}
	out = append(out, identityLabels(c, n.Keys)...)
	if a := c.Agents; a.Unread == "" && a.Desired > 0 && a.Ready == 0 {
		out = append(out, Finding{Severity: Fails, Code: AgentsNotReady, voids: voidsAll, Message: fmt.Sprintf("none of the %d agents of Cilium is ready: no change of a policy is taken there", a.Desired),
			Do: "mend the agents"})
	}
	if why := c.NoHTTP(); why != "" {
		out = append(out, Finding{Severity: Warns, Code: NoHTTP, Message: "rules about requests (method, path) are refused there: " + why,
			Do: "nothing, unless classes of Cilium have actions with http; then set enable-l7-proxy to true and mend cilium-envoy"})
	}
	if e := c.Envoy; c.NoHTTP() == "" && e.Desired > e.Ready {
		out = append(out, Finding{Severity: Warns, Code: EnvoyNotReady,
			Message: fmt.Sprintf("%d of %d pods of cilium-envoy are not ready: on their nodes a policy with rules about requests holds up all changes of policies", e.Desired-e.Ready, e.Desired),
			Do:      "mend cilium-envoy there"})
	}
	if limit := c.PolicyMapMax(); limit < defaultPolicyMapMax {
		out = append(out, Finding{Severity: Warns, Code: SmallPolicyMaps, Message: fmt.Sprintf("Cilium's bpf-policy-map-max is %d, less than the default of %d: policies for many clients may not fit", limit, defaultPolicyMapMax),
			Do: fmt.Sprintf("set it to %d or more and restart the agents", defaultPolicyMapMax)})
	}
	return out
}

// identityLabels checks in each place whether the labels of classes are in identities.
func identityLabels(c Cilium, keys []Key) []Finding {
	var out []Finding
	missing := map[Key]bool{}
	for i, source := range c.Sources {
		text, ok := source.Settings["labels"]
		if !ok && i > 0 {
			continue
		}
		filter, err := ParseFilter(text)
		if err != nil {
			return append(out, Finding{Severity: Fails, Code: LabelsUnreadable, voids: VoidsEnforce, Message: fmt.Sprintf("in %s: %s", source.Where, err), Do: "mend the setting labels of Cilium"})
		}
		for _, k := range keys {
			if k.GuardedOnly {
				continue
			}
			if !filter.Has(k.Label) && !missing[k] {
				missing[k] = true
				out = append(out, Finding{Severity: Fails, Code: LabelNotIdentity, Class: k.Class, Label: k.Label, voids: VoidsEnforce,
					Message: fmt.Sprintf("the label %s is not in Cilium's identities: what selects it matches nothing", k.named()),
					Do:      fmt.Sprintf("add k8s:%s to the setting labels in %s and restart the agents", strings.ReplaceAll(k.Label, ".", `\.`), source.Where)})
			}
		}
	}
	return out
}

// named returns the label with its class, if the class is known.
func (k Key) named() string {
	if k.Class == "" {
		return k.Label
	}
	return k.Label + " of class " + k.Class
}

// clip truncates a value that comes from the member.
func clip(v string) string {
	const most = 60
	if len(v) > most {
		v = strings.ToValidUTF8(v[:most], "") + "..."
	}
	return v
}
