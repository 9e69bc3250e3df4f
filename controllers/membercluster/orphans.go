package membercluster

import (
	"fmt"

	"github.com/acp-io/acp/api/v1alpha1"
)

// mostOrphans are told one by one.
const mostOrphans = 10

// orphaned tells of objects that look like ACP's and that nothing asks for. ACP removes none of them: what it did not write it
// cannot tell from what somebody needs, and what it wrote it remembers on the host until every member was seen without it.
func orphaned(names []string) []v1alpha1.MemberFinding {
	var out []v1alpha1.MemberFinding
	for i, name := range names {
		if i == mostOrphans {
			out = append(out, v1alpha1.MemberFinding{Code: v1alpha1.FindingOrphan, Severity: v1alpha1.FindingWarns,
				Message: fmt.Sprintf("and %d more policies there that nothing asks for", len(names)-mostOrphans)})
			break
		}
		out = append(out, v1alpha1.MemberFinding{Code: v1alpha1.FindingOrphan, Severity: v1alpha1.FindingWarns, Object: name,
			Message: fmt.Sprintf("policy %s has ACP's reserved name or label, and nothing asks for it: find out who wrote it, and let somebody of acp:break-glass delete it there", name)})
	}
	return out
}
