package memberhealth

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/federation"
	"github.com/acp-io/acp/internal/federation/preflight"
	"github.com/acp-io/acp/internal/message"
)

// unknownYet is the message for a member that was never read, or never answered.
func unknownYet() message.Message { return message.MemberDataplaneUnread() }

// dataplaneState is how a member's dataplane applies policies, as far as it was read.
type dataplaneState struct {
	// known reports whether the member was read at least once.
	known bool
	// facts are the facts of the last read, which began at readAt.
	facts  preflight.Facts
	readAt time.Time
	// unread is the reason why the last check could not read the configuration, or zero. outdated is the reason why the
	// facts are too old to count, or zero.
	unread, outdated message.Message
	// config is the configuration of Cilium that was read completely last, with the pods of the agents, by a read that began at configAt.
	config   preflight.Cilium
	configAt time.Time
	// agentsOld reports whether the pods of the agents come from an earlier read.
	agentsOld bool
	// hostPodsOld, meshPodsOld, mtlsOld and meshConfigOld report that these facts, or some of them, are those of an earlier read.
	hostPodsOld, meshPodsOld, mtlsOld, meshConfigOld bool
	// invalidating are the findings that change the meaning of policies.
	invalidating []preflight.Finding
	// noHTTP is the reason why HTTP rules do not work, or zero.
	noHTTP message.Message
	// agentsMissing and envoyMissing are since when every check found agents, or Envoys beside them, that are not ready; zero if
	// the last check found none.
	agentsMissing, envoyMissing time.Time
	// istiodDown is since when every check found an istiod without an available pod; zero if the last check found none.
	istiodDown time.Time
	// proxyDown reports whether the last check found the proxy not ready, and the one before did not.
	proxyDown bool
}

// Lack describes a member whose pods a selector over some label keys may not match.
type Lack struct {
	Member string
	Reason message.Message
	// Unknown reports whether the member's identities could not be read, so that the selector may match.
	Unknown bool
}

// Unenforced returns the reason why a member would not enforce a policy whose selectors use some pod label keys, or zero
// according to the last check. A member that was never checked, or not for too long, counts as not enforcing.
func (i *Inspector) Unenforced(cluster string, keys []string) message.Message {
	i.addKeys(keys)
	return i.invalidReason(cluster, keys, v1alpha1.ModeEnforce)
}

// MeaningChanged returns the reason why policies that close nothing, of resources in Audit and of wildcards, have
// another meaning in a member; zero if none is known.
func (i *Inspector) MeaningChanged(cluster string) message.Message {
	return i.invalidReason(cluster, nil, v1alpha1.ModeAudit)
}

func (i *Inspector) invalidReason(cluster string, keys []string, mode v1alpha1.Mode) message.Message {
	i.mu.RLock()
	defer i.mu.RUnlock()
	m := i.members[cluster]
	if !m.known {
		return unknownYet()
	}
	if !m.outdated.IsZero() {
		return m.outdated
	}
	for _, f := range m.invalidating {
		if f.Invalidates().In(mode) && concerns(&f, keys) {
			return f.Message
		}
	}
	return message.Message{}
}

// HostPodProblem returns the reason why Cilium does not enforce a policy for every pod of a member with a label of a class:
// pods use the network of their node, or this is not known. It returns zero if the last check found no such pods. If that did
// not consider the label, because its class is new, it requests another check.
func (i *Inspector) HostPodProblem(cluster, key, value string) message.Message {
	i.mu.RLock()
	defer i.mu.RUnlock()
	m := i.members[cluster]
	switch {
	case !m.known:
		return message.StateHostPodsUnknown(unknownYet())
	case !m.outdated.IsZero():
		return message.StateHostPodsUnknown(m.outdated)
	case !m.facts.HostPods.Unread.IsZero():
		return message.StateHostPodsUnknown(m.facts.HostPods.Unread)
	case !m.facts.HostPods.Listed(key):
		if slices.Contains(preflight.CiliumLabels(i.Keys()), key) {
			i.Requeue()
		}
		return message.StateHostPodsUnknown(message.MemberPodsUnlisted())
	}
	if pods := m.facts.HostPods.Describe(key, value); !pods.IsZero() {
		return message.StateHostPods(pods)
	}
	return message.Message{}
}

// MeshProblem returns the reason why Istio does not enforce a policy for every pod of a member with a label of a class of
// Istio's, or for every client: an istiod does not apply it, does not run or is too old, pods have no proxy, or are behind a waypoint, the member
// accepts plain text, or it is not known.
// For a policy about requests, pods of ztunnel count, too, in a member that declares sidecars. The Gateway that the member dedicates to the
// resource, or "", does not count, but for a policy about requests all pods have to be behind it. It returns zero if the last check
// found nothing. If that did not consider the label, because its class is new or was enforced by Cilium, it requests another
// check.
func (i *Inspector) MeshProblem(cluster, key, value string, requests bool, gateway string) message.Message {
	i.mu.RLock()
	defer i.mu.RUnlock()
	m := i.members[cluster]
	switch {
	case !m.known:
		return message.StateUnproxiedUnknown(unknownYet())
	case !m.outdated.IsZero():
		return message.StateUnproxiedUnknown(m.outdated)
	case !m.facts.Unproxied.Unread.IsZero():
		return message.StateUnproxiedUnknown(m.facts.Unproxied.Unread)
	case !m.facts.Unproxied.Listed(key):
		if m.facts.Istio.Enforces() {
			i.Requeue()
		}
		return message.StateUnproxiedUnknown(message.MemberPodsUnlisted())
	}
	if why := m.facts.Istio.Config.Ignored; !why.IsZero() {
		return message.StatePoliciesNotInMesh(why)
	}
	if pods := m.facts.Unproxied.Describe(key, value); !pods.IsZero() {
		return message.StateUnproxied(pods)
	}
	if pods := m.facts.InAmbient.Describe(key, value); requests && !pods.IsZero() {
		return message.StateInAmbient(pods)
	}
	if pods := m.facts.WaypointOther(key, value, gateway); !pods.IsZero() {
		return message.StateBehindWaypoint(pods)
	}
	if pods := m.facts.Direct.Describe(key, value); gateway != "" && requests && !pods.IsZero() {
		return message.StateNotBehindWaypoint(gateway, pods)
	}
	switch why := m.facts.BehindWaypoint.Unread; {
	case !why.IsZero():
		return message.StateUnproxiedUnknown(message.PreflightWaypointsUnread(why))
	case !m.facts.BehindWaypoint.Listed(key):
		return message.StateUnproxiedUnknown(message.MemberPodsUnlisted())
	}
	if why := m.facts.Istio.Config.Unread; !why.IsZero() {
		return message.StateUnproxiedUnknown(message.PreflightMeshConfigUnread(why))
	}
	if why := m.facts.Istio.Config.Old; !why.IsZero() {
		return message.StateUnproxiedUnknown(why)
	}
	if m.istiodLost() {
		return message.StateUnproxiedUnknown(m.facts.Istio.Config.Down)
	}
	if why := m.facts.Istio.PlainText(); !why.IsZero() {
		return message.StatePlainText(why)
	}
	return message.Message{}
}

// GatewayProblem returns the reason why a Gateway that a member dedicates to a resource is not suited for that, also because it does not exist, or
// because its service account is one of a class of subjects, whose access the waypoint would have elsewhere, or zero. known is false if it was not read.
func (i *Inspector) GatewayProblem(cluster, gateway string) (problem message.Message, known bool) {
	if class := preflight.ClassOfAccount(i.Keys(), gateway); class != "" {
		return message.GatewayAccountOfClass(gateway, class), true
	}
	i.mu.RLock()
	defer i.mu.RUnlock()
	m := i.members[cluster]
	if !m.known || !m.outdated.IsZero() {
		return message.Message{}, false
	}
	problem, known = m.facts.Gateways[gateway]
	return problem, known
}

// MissingLabels returns the reason why a member's identities may lack one of some label keys, or zero if they have all of
// them.
func (i *Inspector) MissingLabels(cluster string, keys []string) message.Message {
	i.addKeys(keys)
	i.mu.RLock()
	defer i.mu.RUnlock()
	m := i.members[cluster]
	return m.lacks(keys).Reason
}

// MembersLacking returns the members whose identities may lack one of some label keys, by name. A member whose first
// check is running is not included.
func (i *Inspector) MembersLacking(keys []string) []Lack {
	if len(keys) == 0 {
		return nil
	}
	i.addKeys(keys)
	i.mu.RLock()
	defer i.mu.RUnlock()
	var out []Lack
	for cluster := range i.lacking {
		m := i.members[cluster]
		if l := m.lacks(keys); !l.Reason.IsZero() {
			l.Member = cluster
			out = append(out, l)
		}
	}
	slices.SortFunc(out, func(a, b Lack) int { return cmp.Compare(a.Member, b.Member) })
	return out
}

// addKeys evaluates the members for label keys that were not evaluated before: those of a class that is new, or that
// another dataplane enforces. The facts of the last check are used.
func (i *Inspector) addKeys(keys []string) {
	i.mu.RLock()
	unknown := slices.ContainsFunc(keys, func(k string) bool { return !i.evaluatedKeys[k] })
	i.mu.RUnlock()
	if !unknown {
		return
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	for _, k := range keys {
		i.evaluatedKeys[k] = true
	}
	for cluster, m := range i.members {
		m.invalidating = i.invalidating(&m.facts)
		i.store(cluster, m)
	}
}

// invalidating returns the findings that change the meaning of policies, for every label key that was requested. The caller must hold the lock.
func (i *Inspector) invalidating(f *preflight.Facts) []preflight.Finding {
	needs := preflight.Needs{Kinds: i.Kinds(), Keys: i.Keys()}
	requested := map[string]bool{}
	for _, k := range needs.Keys {
		if !k.GuardedOnly {
			i.evaluatedKeys[k.Label], requested[k.Label] = true, true
		}
	}
	for _, label := range slices.Sorted(maps.Keys(i.evaluatedKeys)) {
		if !requested[label] {
			needs.Keys = append(needs.Keys, preflight.Key{Label: label})
		}
	}
	return withoutHarmless(preflight.Assess(*f, needs))
}

// store stores the dataplaneState of a member that was read. The caller must hold the lock.
func (i *Inspector) store(cluster string, m dataplaneState) {
	i.members[cluster] = m
	i.lacking.Delete(cluster)
	if slices.ContainsFunc(m.invalidating, mayMatchNothing) {
		i.lacking.Insert(cluster)
	}
}

// lacks returns the first finding about one of the keys; a known fault takes precedence over something unread.
func (s *dataplaneState) lacks(keys []string) Lack {
	if !s.known {
		return Lack{Reason: unknownYet(), Unknown: true}
	}
	var out Lack
	for _, f := range s.invalidating {
		unknown := f.Label == ""
		if mayMatchNothing(f) && concerns(&f, keys) && (out.Reason.IsZero() || out.Unknown && !unknown) {
			out = Lack{Reason: f.Message, Unknown: unknown}
		}
	}
	return out
}

// concerns reports whether a finding concerns selectors over some keys.
func concerns(f *preflight.Finding, keys []string) bool {
	return f.Label == "" || slices.Contains(keys, f.Label)
}

// mayMatchNothing reports whether a selector over a label may match nothing because of a finding.
func mayMatchNothing(f preflight.Finding) bool {
	return slices.Contains([]string{preflight.LabelNotIdentity, preflight.LabelsUnreadable, preflight.ConfigUnread}, f.Code)
}

// NoHTTP returns the reason why HTTP rules do not work in a member, or zero. Unknown counts as not working.
func (i *Inspector) NoHTTP(cluster string) message.Message {
	i.mu.RLock()
	defer i.mu.RUnlock()
	m := i.members[cluster]
	if !m.known {
		return unknownYet()
	}
	return m.noHTTP
}

// RequestsIncomplete reports whether HTTP rules are distributed to a member and not enforced on some of its nodes, according
// to several checks.
func (i *Inspector) RequestsIncomplete(cluster string) bool {
	i.mu.RLock()
	defer i.mu.RUnlock()
	m := i.members[cluster]
	return m.requestsIncomplete()
}

func (s *dataplaneState) requestsIncomplete() bool {
	return s.noHTTP.IsZero() && s.facts.Cilium.EnvoyMissing() && s.persists(s.envoyMissing)
}

// istiodLost reports whether an istiod has had no available pod for longer than a restart takes.
func (s *dataplaneState) istiodLost() bool { return s.persists(s.istiodDown) }

// minMissing is how long pods of a DaemonSet or of istiod must be missing to be reported. A usual restart takes less time.
const minMissing = 30 * time.Second

// persists reports whether something that every check has found since some time, if not zero, is not just a restart.
func (s *dataplaneState) persists(since time.Time) bool {
	return !since.IsZero() && s.readAt.Sub(since) >= minMissing
}

// withoutRestarts returns the findings of a check without those about pods that may just be restarting.
func (i *Inspector) withoutRestarts(cluster string, findings []preflight.Finding) []preflight.Finding {
	i.mu.RLock()
	defer i.mu.RUnlock()
	m := i.members[cluster]
	return slices.DeleteFunc(findings, func(f preflight.Finding) bool {
		return f.Severity == preflight.Warns && (f.Code == preflight.AgentsNotReady && !m.persists(m.agentsMissing) ||
			f.Code == preflight.EnvoyNotReady && !m.persists(m.envoyMissing) || f.Code == preflight.IstiodNotAvailable && !m.istiodLost())
	})
}

// IgnoresClusterNetworkPolicies reports whether a member's agents are known to ignore ClusterNetworkPolicies. If it is
// not known, they may enforce them.
func (i *Inspector) IgnoresClusterNetworkPolicies(cluster string) bool {
	i.mu.RLock()
	defer i.mu.RUnlock()
	m := i.members[cluster]
	return m.known && m.facts.Cilium.IgnoresClusterNetworkPolicies()
}

// proxyDown reports whether the last check found a proxy not ready that was ready before.
func (i *Inspector) proxyDown(cluster string) bool {
	i.mu.RLock()
	defer i.mu.RUnlock()
	return i.members[cluster].proxyDown
}

// Pending reports whether a registered member has neither been read nor found unreadable since the start.
func (i *Inspector) Pending() bool {
	clusters := i.Clusters()
	i.mu.RLock()
	defer i.mu.RUnlock()
	return slices.ContainsFunc(clusters, func(c federation.Cluster) bool { return !i.contacted[c.Name] })
}

// withoutHarmless returns the findings that change the meaning of policies. The other findings only prevent a cluster from
// joining.
func withoutHarmless(findings []preflight.Finding) []preflight.Finding {
	return slices.DeleteFunc(slices.Clone(findings), func(f preflight.Finding) bool { return f.Invalidates() == 0 })
}
