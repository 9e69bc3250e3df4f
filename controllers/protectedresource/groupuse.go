package protectedresource

import (
	"slices"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/controllers/policycache"
	"github.com/acp-io/acp/controllers/statuscache"
	"github.com/acp-io/acp/internal/policy"
)

// maxGroupUsers bounds the cost of GroupInUse: of a subject that more units allow, none is waited for.
const maxGroupUsers = 256

// GroupInUse reports whether every member that answers has every unit that allows an external subject, as the unit is now.
func (r *Reconciler) GroupInUse(view *policycache.View, subject string) bool {
	group := v1alpha1.ObjectPrefix + policy.UnitID(subject)
	units := view.UnitsAllowing(subject)
	if len(units) > maxGroupUsers {
		return true
	}
	for _, resource := range units {
		report, reported := r.Reports.Get(resource)
		if !reported || !slices.Contains(report.Groups, group) {
			unit, ok := view.CompileResource(resource, r.Clock.Now())
			if ok && slices.Contains(view.GroupsOf(&unit), subject) {
				return false
			}
			continue
		}
		if !r.isReadBack(&report) {
			return false
		}
	}
	return true
}

// isReadBack reports whether every reachable member was read with the objects of a unit as they have to be, except quarantined members, which get no
// changes.
func (r *Reconciler) isReadBack(report *statuscache.Report) bool {
	waited := map[string]bool{}
	for _, c := range r.Fleet.Clusters() {
		waited[c.Name] = !c.Quarantined
	}
	for key, members := range report.Desired {
		for member, revision := range members {
			seen := r.Fleet.Observe(member, key)
			if waited[member] && seen.Reachable && (seen.Object == nil || seen.Object.Revision != revision) {
				return false
			}
		}
	}
	return true
}
