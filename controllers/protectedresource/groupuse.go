package protectedresource

import (
	"slices"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/controllers/policycache"
	"github.com/acp-io/acp/internal/federation"
	"github.com/acp-io/acp/internal/policy"
)

// GroupInUse reports whether every member that answers has every unit whose rules refer to the group of an external subject, as the
// unit is now.
func (r *Reconciler) GroupInUse(view *policycache.View, subject string) bool {
	group := v1alpha1.ObjectPrefix + policy.UnitID(subject)
	for _, resource := range view.UnitsNaming(subject) {
		report, reported := r.Reports.Get(resource)
		if !reported || !slices.Contains(report.Groups, group) {
			unit, ok := view.CompileResource(resource, r.Clock.Now())
			if ok && slices.Contains(view.GroupsOf(&unit), subject) {
				return false
			}
			continue
		}
		objects := slices.DeleteFunc(slices.Clone(r.Federated.Of(resource)), func(e *federation.Object) bool { return e.Kind != federation.CiliumPolicy })
		if len(objects) == 1 && objects[0].TemplateLabels[v1alpha1.LabelRevision] != report.Revision && !r.rendersSeveral(resource) {
			return false // the unit is not written yet
		}
		if slices.ContainsFunc(objects, r.awaitsMember) {
			return false
		}
	}
	return true
}

// rendersSeveral reports whether a unit has objects of several dataplanes, whose revisions a report combines into one.
func (r *Reconciler) rendersSeveral(resource string) bool {
	return slices.ContainsFunc(r.Federated.Of(resource), func(e *federation.Object) bool { return e.Kind != federation.CiliumPolicy })
}

// awaitsMember reports whether a member that answers does not have the version of an object that it has to have.
func (r *Reconciler) awaitsMember(e *federation.Object) bool {
	return slices.ContainsFunc(e.Placement, func(c string) bool {
		seen := r.Fleet.Observe(c, e.Key())
		return seen.Reachable && (seen.Object == nil || seen.Object.Revision != e.RevisionIn(c))
	})
}
