package memberhealth

import (
	"github.com/acp-io/acp/internal/federation/guard"
	"github.com/acp-io/acp/internal/federation/preflight"
)

// CheckResult is the result of one check of a member. It contains nothing from earlier checks.
type CheckResult struct {
	// Findings contains the findings of the preflight, the worst first.
	Findings []preflight.Finding
	// Kubernetes, Cilium and Istio are versions; "" means not known, or not installed.
	Kubernetes, Cilium, Istio string
	// IdentityLimit is the number of pod identities that the member can have.
	IdentityLimit int32
	// PolicyMapMax is the size of a workload's policy map in the member.
	PolicyMapMax int
	// Guard is the state of the policies that guard the managed objects.
	Guard guard.State
	// Marked reports whether it is known whether the member was downgraded manually. Mark is the downgrade, or nil.
	Marked bool
	Mark   *guard.DowngradeMark
}

// LastResult returns the result of the last check of a member; false if there was none.
func (i *Inspector) LastResult(cluster string) (CheckResult, bool) {
	i.mu.RLock()
	defer i.mu.RUnlock()
	l, ok := i.lastResults[cluster]
	return l, ok
}

// storeResult stores a result for the reports about members.
func (i *Inspector) storeResult(f preflight.Facts, n preflight.Needs, findings []preflight.Finding) {
	l := CheckResult{
		Findings:      findings,
		Kubernetes:    f.Version,
		Cilium:        f.Cilium.Version,
		Istio:         f.Istio.Version,
		IdentityLimit: f.Cilium.IdentityLimit(),
		PolicyMapMax:  f.Cilium.PolicyMapMax(),
		Marked:        f.Unreachable == "" && f.MarkUnread.IsZero(),
		Mark:          f.Mark,
	}
	l.Guard, _ = preflight.GuardState(f, n)
	i.mu.Lock()
	defer i.mu.Unlock()
	if !f.ConfigRead() {
		l.Kubernetes, l.Cilium, l.Istio = "", "", ""
		if before, ok := i.lastResults[f.Member]; ok {
			l.IdentityLimit, l.PolicyMapMax = before.IdentityLimit, before.PolicyMapMax
		}
	}
	i.lastResults[f.Member] = l
}
