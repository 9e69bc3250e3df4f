package memberhealth

import (
	"github.com/acp-io/acp/internal/federation/guard"
	"github.com/acp-io/acp/internal/federation/preflight"
)

// Look is what a look at a member found. What a member that did not answer told before is not in it.
type Look struct {
	// Findings of the preflight, the worst first.
	Findings []preflight.Finding
	// Versions; "": not known, or not there.
	Kubernetes, Cilium, Istio string
	// IdentityLimit is how many identities of pods the member can have.
	IdentityLimit int32
	// PolicyMapMax is how many entries the policy map of a workload has there.
	PolicyMapMax int
	// Guard is how the policies stand that guard the managed objects.
	Guard guard.State
	// Marked: it is known whether somebody turned the member to audit by hand, and Mark is who; nil: nobody did.
	Marked bool
	Mark   *guard.Downgrade
}

// Last is the last look at a member; false: there was none.
func (i *Inspector) Last(cluster string) (Look, bool) {
	i.mu.RLock()
	defer i.mu.RUnlock()
	l, ok := i.looks[cluster]
	return l, ok
}

// remember keeps a look for who tells how members stand.
func (i *Inspector) remember(f preflight.Facts, n preflight.Needs, findings []preflight.Finding) {
	l := Look{Findings: findings, Kubernetes: f.Version, Cilium: f.Cilium.Version, Istio: f.Istio.Version, IdentityLimit: f.Cilium.IdentityLimit(), PolicyMapMax: f.Cilium.PolicyMapMax(),
		Marked: f.Silent == "" && f.MarkUnread == "", Mark: f.Mark}
	l.Guard, _ = preflight.GuardState(f, n)
	i.mu.Lock()
	defer i.mu.Unlock()
	if f.Silent != "" { // its configuration was not read
		l.Kubernetes, l.Cilium, l.Istio = "", "", ""
		if before, ok := i.looks[f.Member]; ok {
			l.IdentityLimit, l.PolicyMapMax = before.IdentityLimit, before.PolicyMapMax
		}
	}
	i.looks[f.Member] = l
}
