package memberhealth

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/acp-io/acp/internal/federation/preflight"
	"github.com/acp-io/acp/internal/message"
)

// record stores the facts of a member, of which the read began at some time, and triggers the controllers of units if the
// result changed. If the configuration was not read, the previous result is kept, until expire finds it outdated. The settings that outdated
// agents may use are added to the facts.
func (i *Inspector) record(ctx context.Context, cluster string, facts *preflight.Facts, began time.Time) {
	if !facts.ConfigRead() {
		i.recordUnread(cluster, facts.UnreachableReason())
		return
	}
	if i.Pauses.Since(began) > i.Timing.MaxAge {
		i.recordUnread(cluster, message.MemberAnswersSlowly())
		return
	}
	i.mu.RLock()
	before := i.members[cluster]
	i.mu.RUnlock()
	podsOld := keepAgentPods(&facts.Cilium, &before)
	i.addEarlierSettings(ctx, cluster, &facts.Cilium, &before) // not under the lock, because it may read
	i.mu.Lock()
	before = i.members[cluster]
	now := dataplaneState{known: true, facts: *facts, config: before.config, configAt: before.configAt, agentsOld: podsOld, readAt: began}
	if facts.Cilium.Complete() && facts.Cilium.Pods.Unread.IsZero() {
		now.config, now.configAt = facts.Cilium, began
	}
	now.keepUnread(&before)
	now.agentsMissing = missingSince(before.agentsMissing, facts.Cilium.Agents, began)
	now.envoyMissing = missingSince(before.envoyMissing, facts.Cilium.Envoy, began)
	if !now.facts.Istio.Config.Down.IsZero() {
		now.istiodDown = earliest(before.istiodDown, began)
	}
	facts = &now.facts
	now.invalidating, now.noHTTP = i.invalidating(facts), facts.Cilium.NoHTTP()
	if facts.Cilium.ProxyRestarts() && before.known && before.noHTTP.IsZero() && !before.proxyDown {
		// A restart of the proxy is over at the next check, and refusing all requests because of it would cut off every
		// client.
		now.noHTTP, now.proxyDown = message.Message{}, true
	}
	changed := before.differsFrom(&now)
	i.store(cluster, now)
	i.contacted[cluster] = true
	i.mu.Unlock()
	if !changed {
		return
	}
	for _, f := range now.invalidating {
		i.Log.Info(
			"Pushed policies do not have their intended effect in this member",
			"member",
			cluster,
			"code",
			f.Code,
			"class",
			f.Class,
			"message",
			f.Message.Text,
			"do",
			f.Remedy.Text,
		)
	}
	if i.Changed != nil {
		i.Changed(cluster)
	}
}

// differsFrom reports whether the state of a member differs from the next one in what units depend on.
func (s *dataplaneState) differsFrom(next *dataplaneState) bool {
	was, is := &s.facts, &next.facts
	return !s.known || s.requestsIncomplete() != next.requestsIncomplete() || s.istiodLost() != next.istiodLost() || !s.outdated.IsZero() ||
		!slices.Equal(s.invalidating, next.invalidating) ||
		s.noHTTP != next.noHTTP ||
		was.Cilium.IgnoresClusterNetworkPolicies() != is.Cilium.IgnoresClusterNetworkPolicies() ||
		!maps.EqualFunc(was.HostPods.Pods, is.HostPods.Pods, slices.Equal[[]string]) ||
		!slices.Equal(was.HostPods.Keys, is.HostPods.Keys) ||
		!preflight.EqualMeshPods(was.MeshPods, is.MeshPods) ||
		was.Istio.PlainText() != is.Istio.PlainText() ||
		was.Istio.Config.Ignored != is.Istio.Config.Ignored ||
		was.Istio.Config.Unread != is.Istio.Config.Unread ||
		was.Istio.Config.Old != is.Istio.Config.Old
}

// keepAgentPods keeps the pods of the agents of an earlier read when they could not be read once, and reports whether it does.
func keepAgentPods(now *preflight.Cilium, before *dataplaneState) bool {
	earlier := before.config.Pods
	if now.Pods.Unread.IsZero() || !before.config.Complete() || !earlier.Unread.IsZero() || before.agentsOld {
		return false
	}
	now.Pods = earlier
	now.ChangedAt(now.Outdated.Changed)
	return true
}

// addEarlierSettings adds the settings that outdated agents use to the configuration of a member. Settings from before the start of this
// process are known to change nothing if the last status of the member has no finding about them.
func (i *Inspector) addEarlierSettings(ctx context.Context, cluster string, now *preflight.Cilium, before *dataplaneState) {
	switch {
	case !now.Complete():
	case before.config.Complete():
		*now = now.After(before.config, before.configAt)
	case now.Outdated.Agents > 0 && i.Recorded != nil:
		findings, read := i.Recorded(ctx, cluster)
		now.Outdated.Known = read && !slices.ContainsFunc(findings, preflight.ChangesMeaning)
	}
}

// recordUnread records that a check could not read the configuration of a member.
func (i *Inspector) recordUnread(cluster string, why message.Message) {
	i.mu.Lock()
	i.contacted[cluster] = true
	m := i.members[cluster]
	first := !m.known && !i.neverAnswered(cluster)
	if first {
		i.lacking.Insert(cluster) // nothing is known about the member
	}
	if m.known {
		m.unread = why
		i.members[cluster] = m
	}
	i.mu.Unlock()
	if first && i.Changed != nil {
		i.Changed(cluster)
	}
}

// expire marks the facts of a member as outdated if its configuration was not read for longer than MaxAge. The configuration
// may have changed since, so nothing counts as enforced there. Shorter outages have no consequence. Two facts stay as they
// were last read, the labels in identities and whether rules about requests work, because other values would change the
// policies that are distributed, and the states of units in other members.
func (i *Inspector) expire() {
	now := i.Pauses.Now()
	outdated := map[string]message.Message{}
	i.mu.Lock()
	for cluster, m := range i.members {
		if !m.known || !m.outdated.IsZero() || now.Sub(m.readAt) <= i.Timing.MaxAge {
			continue
		}
		why := m.unread
		if why.IsZero() {
			why = message.MemberAnswersSlowly()
		}
		m.outdated = message.MemberConfigOutdated(int(i.Timing.MaxAge.Seconds()), why)
		i.members[cluster], outdated[cluster] = m, m.outdated
	}
	i.mu.Unlock()
	for _, cluster := range slices.Sorted(maps.Keys(outdated)) {
		i.Log.Info("A member's configuration cannot be read, so its policies count as not enforced", "member", cluster, "because", outdated[cluster].Text)
		if i.Changed != nil {
			i.Changed(cluster)
		}
	}
}

// keepUnread takes facts that could not be read from the check before, once: one failed list must not make every unit of the
// member unknown; the next check decides.
func (s *dataplaneState) keepUnread(before *dataplaneState) {
	keep := func(now, earlier message.Message, old bool) bool {
		return before.known && !now.IsZero() && earlier.IsZero() && !old
	}
	now, earlier := &s.facts, &before.facts
	if keep(now.HostPods.Unread, earlier.HostPods.Unread, before.hostPodsOld) {
		now.HostPods, s.hostPodsOld = earlier.HostPods, true
	}
	if keep(now.Unproxied.Unread, earlier.Unproxied.Unread, before.meshPodsOld) {
		now.MeshPods, s.meshPodsOld = earlier.MeshPods, true
	} else if keep(now.BehindWaypoint.Unread, earlier.BehindWaypoint.Unread, before.meshPodsOld) {
		now.BehindWaypoint, now.Dedicated, now.Direct, now.Gateways, s.meshPodsOld =
			earlier.BehindWaypoint, earlier.Dedicated, earlier.Direct, earlier.Gateways, true
	}
	if keep(now.Istio.MTLS.Unread, earlier.Istio.MTLS.Unread, before.mtlsOld) {
		now.Istio.MTLS, s.mtlsOld = earlier.Istio.MTLS, true
	}
	// A read that found an istiod without ACP's policies is complete enough, whatever it could not read of others.
	if now.Istio.Config.Ignored.IsZero() && keep(now.Istio.Config.Unread, earlier.Istio.Config.Unread, before.meshConfigOld) {
		now.Istio.Config, s.meshConfigOld = earlier.Istio.Config, true
	}
}

// neverAnswered reports whether the member is recorded as never having answered. The caller must hold the lock.
func (i *Inspector) neverAnswered(cluster string) bool {
	return i.lacking.Has(cluster)
}

// forget removes members that are not registered.
func (i *Inspector) forget(registered map[string]history) {
	i.mu.Lock()
	var pendingElsewhere []string
	for c := range i.contacted {
		if _, ok := registered[c]; !ok {
			if i.neverAnswered(c) {
				pendingElsewhere = append(pendingElsewhere, c)
			}
			delete(i.contacted, c)
			delete(i.members, c)
			i.lacking.Delete(c)
		}
	}
	for c := range i.lastResults {
		if _, ok := registered[c]; !ok {
			delete(i.lastResults, c)
		}
	}
	i.mu.Unlock()
	for _, c := range pendingElsewhere {
		// Units in other members may not have been realized because of it.
		if i.Changed != nil {
			i.Changed(c)
		}
	}
}

// missingSince returns since when pods of a DaemonSet are missing, by the result of an earlier check and of one at a time.
func missingSince(earlier time.Time, now preflight.Workload, at time.Time) time.Time {
	if now.Missing() == 0 {
		return time.Time{}
	}
	return earliest(earlier, at)
}

// earliest returns the time of an earlier check, or that of this one if it is zero.
func earliest(earlier, at time.Time) time.Time {
	if earlier.IsZero() {
		return at
	}
	return earlier
}
