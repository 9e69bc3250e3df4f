package approval

import (
	"strings"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/catalog"
)

// Approver expressions, or their prefixes.
const (
	// FromLeader selects the leader of the requester.
	FromLeader = "requester.leader"
	// FromResourceOwner selects the owners of the item's resource.
	FromResourceOwner = "resource.owner"
	// FromApplicationOwner selects the owners of the item's application.
	FromApplicationOwner = "application.owner"
	// FromGroup followed by a colon and an id selects the members of a group.
	FromGroup = "group"
	// FromPerson followed by a colon and an id selects one person.
	FromPerson = "person"
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
