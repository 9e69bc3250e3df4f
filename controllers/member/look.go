package member

import "github.com/acp-io/acp/internal/federation/preflight"

// Look is what a look at a member found. What a member that did not answer told before is not in it.
type Look struct {
	// Findings of the preflight, the worst first.
	Findings []preflight.Finding
	// Versions; "": not known, or not there.
	Kubernetes, Cilium, Istio string
	// IdentityLimit is how many identities of pods the member can have.
	IdentityLimit int32
}

// Last is the last look at a member; false: there was none.
func (i *Inspector) Last(cluster string) (Look, bool) {
	i.mu.RLock()
	defer i.mu.RUnlock()
	l, ok := i.looks[cluster]
	return l, ok
}

// remember keeps a look for who tells how members stand.
func (i *Inspector) remember(f preflight.Facts, findings []preflight.Finding) {
	l := Look{Findings: findings, Kubernetes: f.Version, Cilium: f.Cilium.Version, Istio: f.Istio.Version, IdentityLimit: f.Cilium.IdentityLimit()}
	i.mu.Lock()
	defer i.mu.Unlock()
	if f.Silent != "" { // its configuration was not read
		l.Kubernetes, l.Cilium, l.Istio = "", "", ""
		if before, ok := i.looks[f.Member]; ok {
			l.IdentityLimit = before.IdentityLimit
		}
	}
	i.looks[f.Member] = l
}
