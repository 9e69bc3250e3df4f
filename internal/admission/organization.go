package admission

import (
	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/message"
	"github.com/acp-io/acp/internal/organization"
)

// OrganizationClass reviews a resource class that is created (old is nil) or updated against the bounds of its organization. A bound that
// the class exceeded before is a warning.
func OrganizationClass(old, now *v1alpha1.ResourceClass, all *organization.Index) Verdict {
	var before []message.Message
	if old != nil {
		before = all.ClassViolations(&old.Spec)
	}
	return violations(before, all.ClassViolations(&now.Spec))
}

// OrganizationPolicy reviews an approval policy that is created (old is nil) or updated against the bounds of its organization.
func OrganizationPolicy(old, now *v1alpha1.ApprovalPolicy, all *organization.Index) Verdict {
	var before []message.Message
	if old != nil {
		before = all.PolicyViolations(&old.Spec)
	}
	return violations(before, all.PolicyViolations(&now.Spec))
}

// Organization reviews an organization that is created or updated. Teams that another organization names are a warning, so that a team can
// be moved by two changes in any order; until both are made it belongs to none.
func Organization(now *v1alpha1.Organization, all *organization.Index) Verdict {
	var v Verdict
	if ok, why := all.Acceptance(now); !ok {
		v.warn("%s", why)
	}
	return v
}

func violations(before, now []message.Message) Verdict {
	var v Verdict
	had := map[string]bool{}
	for _, m := range before {
		had[m.Text] = true
	}
	for _, m := range now {
		v.fault(!had[m.Text], "%s", m)
	}
	return v
}
