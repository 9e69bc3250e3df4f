package member

import (
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
	// void are the findings by which policies mean something else than they say.
	void []preflight.Finding
	// noHTTP says why rules about requests do not work; "": they do.
	noHTTP string
	// proxyDown: the last look found the proxy not ready, and the one before did not.
	proxyDown bool
}

// Unenforced says why what a member has of a class would refuse nobody there; "": as far as is known it would. What was
// never looked at is not known, and what is not known is not enforced.
func (i *Inspector) Unenforced(cluster, class string) string {
	return i.void(cluster, class, v1alpha1.ModeEnforce)
}

// Misread says why policies that close nothing mean something else in a member than they say: those of resources in Audit, and
// of wildcards; "": as far as is known they do not.
func (i *Inspector) Misread(cluster string) string { return i.void(cluster, "", v1alpha1.ModeAudit) }

func (i *Inspector) void(cluster, class string, mode v1alpha1.Mode) string {
	i.mu.RLock()
	defer i.mu.RUnlock()
	m := i.members[cluster]
	if !m.known {
		return unknownYet
	}
	for _, f := range m.void {
		if f.Voids().In(mode) && (f.About == "" || f.About == class) {
			return f.Message
		}
	}
	return ""
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
func (i *Inspector) note(cluster string, facts *preflight.Facts, findings []preflight.Finding) {
	if len(findings) > 0 && findings[0].Code == preflight.Unreachable {
		i.mu.Lock()
		i.met[cluster] = true
		i.mu.Unlock()
		return
	}
	i.mu.Lock()
	before := i.members[cluster]
	now := fitness{known: true, void: void(findings), noHTTP: facts.Cilium.NoHTTP()}
	if facts.Cilium.ProxyRestarts() && before.known && before.noHTTP == "" && !before.proxyDown {
		// A restart of the proxy is over at the next look, and to refuse all requests for its sake would cut every client.
		now.noHTTP, now.proxyDown = "", true
	}
	changed := !before.known || !slices.Equal(before.void, now.void) || before.noHTTP != now.noHTTP
	i.members[cluster], i.met[cluster] = now, true
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

// forget drops what is known of members that are not registered.
func (i *Inspector) forget(registered map[string]history) {
	i.mu.Lock()
	defer i.mu.Unlock()
	for c := range i.met {
		if _, ok := registered[c]; !ok {
			delete(i.met, c)
			delete(i.members, c)
		}
	}
	for c := range i.looks {
		if _, ok := registered[c]; !ok {
			delete(i.looks, c)
		}
	}
}
