package preflight

import (
	"slices"
	"strconv"
	"strings"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/message"
)

// Invalidates is the set of modes in which the policies of a member have another meaning because of a finding. A unit in such a
// mode is never Realized in that member.
type Invalidates uint8

// Bits of Invalidates. InvalidatesAudit includes units of wildcards, which are rendered as Audit.
const (
	// InvalidatesEnforce is the bit of Enforce.
	InvalidatesEnforce Invalidates = 1 << iota
	// InvalidatesAudit is the bit of Audit and of wildcards.
	InvalidatesAudit
	invalidatesAll = InvalidatesEnforce | InvalidatesAudit
)

// In reports whether a unit of the mode has another meaning. A wildcard has the mode "".
func (v Invalidates) In(mode v1alpha1.Mode) bool {
	if mode == v1alpha1.ModeEnforce {
		return v&InvalidatesEnforce != 0
	}
	return v&InvalidatesAudit != 0
}

// setting is one key of the agents' configuration whose value can change the meaning of policies. The names and
// defaults are those of Cilium 1.20 (pkg/option, pkg/defaults, pkg/maps/policymap, pkg/policy/directory).
type setting struct {
	key         string
	code        string
	severity    Severity
	invalidates Invalidates
	// bad reports whether a value has the consequence. The default, which applies if the key is missing, never has it.
	bad func(value string) bool
	// consequence completes the sentence "Cilium's <key> is <value>: ...".
	consequence, do message.Message
}

// checkedSettings are the settings that Assess checks one by one, in every place from which agents read them.
var checkedSettings = []setting{
	{"policy-audit-mode", AuditMode, Fails, invalidatesAll, mayBeTrue, message.PreflightNothingRefused(), message.RemedySet("false")},
	{"enable-policy", NotEnforcing, Fails, invalidatesAll, func(v string) bool { return !oneOf(v, "default", "always") },
		message.PreflightNothingRefused(), message.RemedySet("default")},
	{"enable-policy", AlwaysEnforcing, Fails, InvalidatesAudit, func(v string) bool { return oneOf(v, "always") },
		message.PreflightClosedWithoutPolicy(), message.RemedySet("default")},
	{"enable-cilium-clusterwide-network-policy", PoliciesIgnored, Fails, invalidatesAll, mayBeFalse,
		message.PreflightPoliciesIgnored(), message.RemedySetOperator("true")},
	{"policy-cidr-match-mode", RangesMatchPods, Fails, invalidatesAll, func(v string) bool { return strings.TrimSpace(v) != "" },
		message.PreflightRangesMatchPods(), message.RemedyRemoveSetting()},
	{"allow-localhost", NodeRefused, Fails, InvalidatesEnforce, func(v string) bool { return !oneOf(v, "auto", "always") },
		message.PreflightNodeRefused(), message.RemedySet("auto")},
	{"enable-non-default-deny-policies", AuditCloses, Fails, invalidatesAll, mayBeFalse,
		message.PreflightAuditCloses(), message.RemedySetOperator("true")},
	{"enable-icmp-rules", ICMPRefused, Fails, InvalidatesEnforce, mayBeFalse,
		message.PreflightIcmpRefused(), message.RemedySetOperator("true")},
	{"static-cnp-path", PoliciesFromFiles, Fails, invalidatesAll, func(v string) bool { return strings.TrimSpace(v) != "" },
		message.PreflightPoliciesFromFiles(), message.RemedyRemoveSetting()},
	{"fixed-identity-mapping", FixedIdentities, Fails, invalidatesAll, func(v string) bool { return !oneOf(v, "", "{}") },
		message.PreflightFixedIdentities(), message.RemedyRemoveSetting()},
	{"label-prefix-file", LabelsUnreadable, Fails, InvalidatesEnforce, func(v string) bool { return v != "" },
		message.PreflightLabelsInFile(), message.RemedyLabelsSetting()},
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
	if why := c.unread(); !why.IsZero() {
		return []Finding{
			{
				Severity:    Fails,
				Code:        ConfigUnread,
				invalidates: invalidatesAll,
				Message:     message.PreflightCiliumUnread(why),
				Remedy:      message.RemedyCiliumUnread(),
			},
		}
	}
	var out []Finding
	for _, s := range checkedSettings {
		for _, source := range c.Sources {
			if v, ok := source.Settings[s.key]; ok && s.bad(v) {
				found := Finding{Severity: s.severity, Code: s.code, invalidates: s.invalidates,
					Message: message.PreflightSetting(s.key, message.Quoted(clip(v)), source.Where, s.consequence), Remedy: s.do}
				if source.Earlier {
					found.Message = message.PreflightEarlierSetting(s.key, message.Quoted(clip(v)), source.Where, s.consequence)
					found.Remedy = message.RemedyRestartAgents()
				}
				out = append(out, found)
				break // one place is enough for a finding
			}
		}
	}
	out = append(out, identityLabels(c, n.Keys)...)
	switch a := c.Agents; {
	case a.Missing() == 0:
	case a.Ready == 0:
		out = append(out, Finding{Severity: Fails, Code: AgentsNotReady, invalidates: invalidatesAll,
			Message: message.PreflightAgentsNotReady(int(a.Desired)), Remedy: message.RemedyMendAgents()})
	default:
		out = append(out, Finding{Severity: Warns, Code: AgentsNotReady,
			Message: message.PreflightAgentsPartlyReady(int(a.Missing()), int(a.Desired)), Remedy: message.RemedyMendAgents()})
	}
	switch o := c.Outdated; {
	case !c.Pods.Unread.IsZero():
		out = append(out, Finding{Severity: Warns, Code: AgentSettingsUnknown, invalidates: invalidatesAll,
			Message: message.PreflightAgentPodsUnread(c.Pods.Unread), Remedy: message.RemedyApplyMemberRbac()})
	case o.Agents == 0:
	case o.Known:
		out = append(out, Finding{Severity: Warns, Code: AgentsOutdated,
			Message: message.PreflightAgentsOutdated(o.Agents, o.Changed), Remedy: message.RemedyRestartAgents()})
	default: // without the number of agents, because the states of units have this message
		out = append(out, Finding{Severity: Warns, Code: AgentSettingsUnknown, invalidates: invalidatesAll,
			Message: message.PreflightAgentSettingsUnknown(o.Changed), Remedy: message.RemedyRestartAgents()})
	}
	if why := c.NoHTTP(); !why.IsZero() {
		out = append(out, Finding{Severity: Warns, Code: NoHTTP, Message: message.PreflightNoHTTP(why), Remedy: message.RemedyEnableProxy()})
	}
	if e := c.Envoy; c.NoHTTP().IsZero() && e.Missing() > 0 {
		out = append(out, Finding{Severity: Warns, Code: EnvoyNotReady,
			Message: message.PreflightEnvoyNotReady(int(e.Missing()), int(e.Desired)), Remedy: message.RemedyMendEnvoy()})
	}
	if limit := c.PolicyMapMax(); limit < defaultPolicyMapMax {
		out = append(
			out,
			Finding{
				Severity: Warns,
				Code:     SmallPolicyMaps,
				Message:  message.PreflightSmallMap(limit, defaultPolicyMapMax),
				Remedy:   message.RemedySetMap(defaultPolicyMapMax),
			},
		)
	}
	return out
}

// identityLabels checks in each place whether the labels of classes are in identities.
func identityLabels(c Cilium, keys []Key) []Finding {
	var out []Finding
	missing := map[Key]bool{}
	for _, source := range c.Sources {
		text, ok := source.Settings["labels"]
		if !ok && !source.Base {
			continue
		}
		filter, err := ParseFilter(text)
		if err != nil {
			return append(
				out,
				Finding{
					Severity:    Fails,
					Code:        LabelsUnreadable,
					invalidates: InvalidatesEnforce,
					Message:     message.PreflightLabelsUnreadable(source.Where, message.Of(err)),
					Remedy:      message.RemedyMendLabels(),
				},
			)
		}
		for _, k := range keys {
			if k.GuardedOnly {
				continue
			}
			if !filter.Has(k.Label) && !missing[k] {
				missing[k] = true
				why := message.PreflightLabelMissing(k.Label)
				if k.Class != "" {
					why = message.PreflightLabelMissingOf(k.Label, k.Class)
				}
				remedy := message.RemedyAddLabel(strings.ReplaceAll(k.Label, ".", `\.`), source.Where)
				if source.Earlier {
					remedy = message.RemedyRestartAgents()
				}
				out = append(out, Finding{Severity: Fails, Code: LabelNotIdentity, Class: k.Class, Label: k.Label, invalidates: InvalidatesEnforce,
					Message: why, Remedy: remedy})
			}
		}
	}
	return out
}

// clip truncates a value that comes from the member.
func clip(v string) string {
	const most = 60
	if len(v) > most {
		v = strings.ToValidUTF8(v[:most], "") + "..."
	}
	return v
}
