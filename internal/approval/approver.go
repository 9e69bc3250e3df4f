package approval

import (
	"strings"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/catalog"
)

// Approver expressions, or their prefixes.
const (
	FromLeader           = "requester.leader"
	FromResourceOwner    = "resource.owner"
	FromApplicationOwner = "application.owner"
	FromGroup            = "group"
	FromPerson           = "person"
	// FromOwnerOf names the owners of one of several resources that a registration of clients reaches, by the resource's
	// name. Approval policies cannot use it.
	FromOwnerOf = "owner-of"
)

// fromSecurity is the security team as an approver expression.
const fromSecurity = v1alpha1.Approver(FromGroup + ":" + catalog.GroupSecurity)

func splitApprover(a v1alpha1.Approver) (kind, name string) {
	kind, name, _ = strings.Cut(string(a), ":")
	return kind, name
}
