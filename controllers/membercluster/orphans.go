package membercluster

import (
	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/message"
)

// maxOrphans is the number of orphans that are reported individually.
const maxOrphans = 10

// orphanFindings reports objects that look like ACP's and that nothing on the host requires. ACP removes none of them: an
// object that it did not write may be needed, and the objects that it wrote are recorded on the host until every member
// was seen without them.
func orphanFindings(names []string) []v1alpha1.MemberFinding {
	var out []v1alpha1.MemberFinding
	for i, name := range names {
		if i == maxOrphans {
			out = append(out, finding(v1alpha1.FindingOrphan, v1alpha1.FindingWarns, "", message.MemberMoreOrphans(len(names)-maxOrphans)))
			break
		}
		out = append(out, finding(v1alpha1.FindingOrphan, v1alpha1.FindingWarns, name, message.MemberOrphan(name)))
	}
	return out
}
