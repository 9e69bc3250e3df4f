package memberhealth

import (
	"cmp"
	"maps"
	"slices"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/federation"
	"github.com/acp-io/acp/internal/federation/preflight"
)

// unknownYet is said of a member that was never looked at, or never answered.
const unknownYet = "how its dataplane is configured is not known: it has not been read since the adapter started"

// fitness is what a member's dataplane makes of policies, as far as it was found out.
type fitness struct {
	// known: the member was read at least once.
	known bool
	// facts are what was read last.
	facts preflight.Facts
	// podsOld: of the pods on their node's network it is what was read at the look before.
	podsOld bool
	// void are the findings by which policies mean something else than they say.
	void []preflight.Finding
	// noHTTP says why rules about requests do not work; "": they do.
	noHTTP string
	// proxyDown: the last look found the proxy not ready, and the one before did not.
	proxyDown bool
}

// Lack is a member whose pods a selector over some label keys may not match.
type Lack struct {
	Member, Why string
	// Unknown is true when the member's identities could not be read, so that the selector may match all the same.
	Unknown bool
}

// Unenforced returns why a member would not enforce a policy whose selectors use some pod label keys; "" means that it
// does, as far as the last look found. What was never looked at is not known, and what is not known is not enforced.
func (i *Inspector) Unenforced(cluster string, keys []string) string {
	i.learn(keys)
	return i.void(cluster, keys, v1alpha1.ModeEnforce)
}

// Misread says why policies that close nothing mean something else in a member than they say: those of resources in Audit, and
// of wildcards; "": as far as is known they do not.
func (i *Inspector) Misread(cluster string) string { return i.void(cluster, nil, v1alpha1.ModeAudit) }

func (i *Inspector) void(cluster string, keys []string, mode v1alpha1.Mode) string {
	i.mu.RLock()
	defer i.mu.RUnlock()
	m := i.members[cluster]
	if !m.known {
		return unknownYet
	}
	for _, f := range m.void {
		if f.Voids().In(mode) && about(&f, keys) {
			return f.Message
		}
	}
	return ""
}

// HostPods names the pods of a member that have a label and use the network of their node, a few if there are many; "": the
// last look found none.
func (i *Inspector) HostPods(cluster, key, value string) string {
	i.mu.RLock()
	defer i.mu.RUnlock()
	return i.members[cluster].facts.HostPods.Named(key, value)
}

// Takes returns why a member's identities may lack one of some label keys; "" means that they have all of them.
func (i *Inspector) Takes(cluster string, keys []string) string {
	i.learn(keys)
	i.mu.RLock()
	defer i.mu.RUnlock()
	m := i.members[cluster]
	return m.lacks(keys).Why
}

// Without returns the members whose identities may lack one of some label keys, by name. A member that is being looked at
// for the first time is not among them.
func (i *Inspector) Without(keys []string) []Lack {
	if len(keys) == 0 {
		return nil
	}
	i.learn(keys)
	i.mu.RLock()
	defer i.mu.RUnlock()
	var out []Lack
	for cluster := range i.lacking {
		m := i.members[cluster]
		if l := m.lacks(keys); l.Why != "" {
			l.Member = cluster
			out = append(out, l)
		}
	}
	slices.SortFunc(out, func(a, b Lack) int { return cmp.Compare(a.Member, b.Member) })
	return out
}

// learn judges the members by label keys that no look has judged them by: those of a class that is new, or that another
// dataplane enforces. What was read at the last look is enough for that.
func (i *Inspector) learn(keys []string) {
	i.mu.RLock()
	unknown := slices.ContainsFunc(keys, func(k string) bool { return !i.judged[k] })
	i.mu.RUnlock()
	if !unknown {
		return
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	for _, k := range keys {
		i.judged[k] = true
	}
	for cluster, m := range i.members {
		m.void = i.judge(&m.facts)
		i.put(cluster, m)
	}
}

// judge returns the findings that void policies, by every label key that anybody asked about; the caller holds the lock.
func (i *Inspector) judge(f *preflight.Facts) []preflight.Finding {
	needs := preflight.Needs{Kinds: i.Kinds(), Keys: i.Keys()}
	looked := map[string]bool{}
	for _, k := range needs.Keys {
		if !k.GuardedOnly {
			i.judged[k.Label], looked[k.Label] = true, true
		}
	}
	for _, label := range slices.Sorted(maps.Keys(i.judged)) {
		if !looked[label] {
			needs.Keys = append(needs.Keys, preflight.Key{Label: label})
		}
	}
	return void(preflight.Assess(*f, needs))
}

// put keeps what is known of a member that was read; the caller holds the lock.
func (i *Inspector) put(cluster string, m fitness) {
	i.members[cluster] = m
	delete(i.lacking, cluster)
	if slices.ContainsFunc(m.void, ofLabels) {
		i.lacking[cluster] = struct{}{}
	}
}

// lacks returns the first finding about one of the keys, that of a known fault before that of something unread.
func (m *fitness) lacks(keys []string) Lack {
	if !m.known {
		return Lack{Why: unknownYet, Unknown: true}
	}
	var out Lack
	for _, f := range m.void {
		unknown := f.Label == ""
		if ofLabels(f) && about(&f, keys) && (out.Why == "" || out.Unknown && !unknown) {
			out = Lack{Why: f.Message, Unknown: unknown}
		}
	}
	return out
}

// about tells whether a finding concerns selectors over some keys.
func about(f *preflight.Finding, keys []string) bool {
	return f.Label == "" || slices.Contains(keys, f.Label)
}

// ofLabels tells whether a selector over a label may match nothing because of a finding.
func ofLabels(f preflight.Finding) bool {
	return slices.Contains([]string{preflight.LabelNotIdentity, preflight.LabelsUnreadable, preflight.ConfigUnread}, f.Code)
}

// NoHTTP says why rules about requests do not work in a member; "": they do. What is not known does not work.
func (i *Inspector) NoHTTP(cluster string) string {
	i.mu.RLock()
	defer i.mu.RUnlock()
	m := i.members[cluster]
	if !m.known {
		return unknownYet
	}
	return m.noHTTP
}

// IgnoresClusterNetworkPolicies reports whether a member's agents are known not to take ClusterNetworkPolicies. What is not
// known may take them.
func (i *Inspector) IgnoresClusterNetworkPolicies(cluster string) bool {
	i.mu.RLock()
	defer i.mu.RUnlock()
	m := i.members[cluster]
	return m.known && m.facts.Cilium.IgnoresClusterNetworkPolicies()
}

// proxyDown reports whether the last look found a proxy not ready that was ready before.
func (i *Inspector) proxyDown(cluster string) bool {
	i.mu.RLock()
	defer i.mu.RUnlock()
	return i.members[cluster].proxyDown
}

// Waits reports whether a registered member has neither been read nor found unreadable since the start.
func (i *Inspector) Waits() bool {
	clusters := i.Clusters()
	i.mu.RLock()
	defer i.mu.RUnlock()
	return slices.ContainsFunc(clusters, func(c federation.Cluster) bool { return !i.met[c.Name] })
}

// void are the findings by which policies mean something else than they say. The others keep a cluster from joining, but what
// is pushed to one that has joined is enforced all the same.
func void(findings []preflight.Finding) []preflight.Finding {
	return slices.DeleteFunc(slices.Clone(findings), func(f preflight.Finding) bool { return f.Voids() == 0 })
}

// note keeps what was found in a member, and tells whoever decides about units when that changed. A member that does not
// answer is as it was.
func (i *Inspector) note(cluster string, facts *preflight.Facts) {
	if facts.Silent != "" {
		i.mu.Lock()
		i.met[cluster] = true
		first := !i.members[cluster].known && !i.silent(cluster)
		if first {
			i.lacking[cluster] = struct{}{} // nothing is known of it
		}
		i.mu.Unlock()
		if first && i.Changed != nil {
			i.Changed(cluster)
		}
		return
	}
	i.mu.Lock()
	before, podsOld := i.members[cluster], false
	if before.known && facts.HostPods.Unread != "" && before.facts.HostPods.Unread == "" && !before.podsOld {
		// One failed list is no reason to call every unit of the member unknown; the next look decides.
		kept := *facts
		kept.HostPods = before.facts.HostPods
		facts = &kept
		podsOld = true
	}
	now := fitness{known: true, podsOld: podsOld, facts: *facts, void: i.judge(facts), noHTTP: facts.Cilium.NoHTTP()}
	if facts.Cilium.ProxyRestarts() && before.known && before.noHTTP == "" && !before.proxyDown {
		// A restart of the proxy is over at the next look, and to refuse all requests for its sake would cut every client.
		now.noHTTP, now.proxyDown = "", true
	}
	changed := !before.known || !slices.Equal(before.void, now.void) || before.noHTTP != now.noHTTP ||
		before.facts.Cilium.IgnoresClusterNetworkPolicies() != now.facts.Cilium.IgnoresClusterNetworkPolicies() ||
		!maps.EqualFunc(before.facts.HostPods.Pods, now.facts.HostPods.Pods, slices.Equal[[]string])
	i.put(cluster, now)
	i.met[cluster] = true
	i.mu.Unlock()
	if !changed {
		return
	}
	for _, f := range now.void {
		i.Log.Info("Member does not enforce what is pushed as it says", "member", cluster, "code", f.Code, "class", f.About, "message", f.Message, "do", f.Do)
	}
	if i.Changed != nil {
		i.Changed(cluster)
	}
}

// silent tells whether it was noted that a member answered no look; the caller holds the lock.
func (i *Inspector) silent(cluster string) bool {
	_, ok := i.lacking[cluster]
	return ok
}

// forget drops what is known of members that are not registered.
func (i *Inspector) forget(registered map[string]history) {
	i.mu.Lock()
	var heldBack []string
	for c := range i.met {
		if _, ok := registered[c]; !ok {
			if i.silent(c) {
				heldBack = append(heldBack, c)
			}
			delete(i.met, c)
			delete(i.members, c)
			delete(i.lacking, c)
		}
	}
	for c := range i.looks {
		if _, ok := registered[c]; !ok {
			delete(i.looks, c)
		}
	}
	i.mu.Unlock()
	for _, c := range heldBack {
		// Units in other members were not realized because of it.
		if i.Changed != nil {
			i.Changed(c)
		}
	}
}
