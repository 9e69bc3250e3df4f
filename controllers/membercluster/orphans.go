package membercluster

import (
	"fmt"

	"github.com/acp-io/acp/api/v1alpha1"
)

// maxOrphans is the number of orphans that are reported individually.
const maxOrphans = 10

// orphanFindings reports objects that look like ACP's and that nothing on the host wants. ACP removes none of them: an
// object that it did not write may be needed, and the objects that it wrote are recorded on the host until every member
// was seen without them.
func orphanFindings(names []string) []v1alpha1.MemberFinding {
	var out []v1alpha1.MemberFinding
	for i, name := range names {
		if i == maxOrphans {
			out = append(out, v1alpha1.MemberFinding{Code: v1alpha1.FindingOrphan, Severity: v1alpha1.FindingWarns,
				Message: fmt.Sprintf("and %d more policies there that nothing asks for", len(names)-maxOrphans)})
			break
		}
		out = append(out, v1alpha1.MemberFinding{Code: v1alpha1.FindingOrphan, Severity: v1alpha1.FindingWarns, Object: name,
			Message: fmt.Sprintf("policy %s has ACP's reserved name or label, and nothing asks for it: find out who wrote it, and let somebody of acp:break-glass delete it there", name)})
	}
	return out
}
