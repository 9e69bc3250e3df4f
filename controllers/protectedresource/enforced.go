package protectedresource

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/controllers/condition"
	"github.com/acp-io/acp/internal/federation"
)

// what an object is called beside the unit's Cilium policies, which are just the policy.
func what(key string) string {
	if name, ok := strings.CutPrefix(key, federation.IstioPolicy.Key("")); ok {
		return federation.IstioPolicy.Target.Kind + " " + name
	}
	return ""
}

// enforcedIn tells whether what was read back from a member is all that decides there.
func (f *facts) enforcedIn(cluster string) (v1alpha1.MemberState, string) {
	const nothing = "the policy is there, and the member enforces nothing of it: "
	for _, name := range slices.Sorted(maps.Keys(f.Lacking)) {
		if why := f.Lacking[name][cluster]; why != "" {
			return v1alpha1.MemberPending, condition.Truncate(nothing + why)
		}
	}
	if f.enforcedBy(v1alpha1.EnforcerCilium) {
		if why := f.Unenforced(cluster, f.Unit.Class); why != "" {
			return v1alpha1.MemberPending, condition.Truncate(nothing + why)
		}
	}
	for _, name := range []v1alpha1.EnforcerName{v1alpha1.EnforcerCilium, v1alpha1.EnforcerIstio} {
		if !f.enforcedBy(name) {
			continue
		}
		if by := f.Opened(name, cluster, f.Unit.LabelKey, f.Unit.LabelValue); by != "" {
			const lets = "%s is not of ACP and lets more in: ask who wrote it to remove it, and ask for what it is needed for as grants"
			return v1alpha1.MemberOverridden, condition.Truncate(fmt.Sprintf(lets, by))
		}
	}
	return v1alpha1.MemberRealized, ""
}

// readIn reports whether a member reads a policy that closes nothing as it says: that of a resource in Audit, or of a wildcard.
// Some settings make such a policy close workloads, open more than it says, or do nothing.
func (f *facts) readIn(cluster string) (v1alpha1.MemberState, string) {
	if f.enforcedBy(v1alpha1.EnforcerCilium) {
		if why := f.Misread(cluster); why != "" {
			return v1alpha1.MemberPending, condition.Truncate("the policy is there, and the member does not do what it says: " + why)
		}
	}
	return v1alpha1.MemberRealized, ""
}
