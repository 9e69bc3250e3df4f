package direct

import (
	"maps"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/federation"
)

// action is the change that an object in a member needs.
type action int

const (
	// none means that the member has what is recorded.
	none action = iota
	// apply means that the member needs the recorded object.
	apply
	// remove means that the member has an object that is not placed there.
	remove
	// refuse means that the record cannot be read in full. The member stays as it is.
	refuse
)

// plan compares a record with what the member has. It is pure. want is the revision of the recorded spec for the member. wrote is the
// revision that the engine wrote last, which the observation may not show yet; nil means that it wrote nothing since it started.
func plan(o *federation.Object, cluster, want string, seen *federation.Observed, wrote *string) action {
	switch {
	case o.ForeignFields:
		return refuse
	case !o.IsPlacedIn(cluster):
		if seen != nil || wrote != nil && *wrote != "" {
			return remove
		}
		return none
	}
	if seen == nil || seen.Revision != want || wrote != nil && *wrote != want {
		return apply
	}
	if label := labelsIn(o, cluster)[v1alpha1.LabelRevision]; seen.Label != label || !seen.Managed || !seen.KubeFed {
		return apply
	}
	return none
}

// labelsIn returns the labels that the object has to have in a member.
func labelsIn(o *federation.Object, cluster string) map[string]string {
	labels := maps.Clone(o.TemplateLabels)
	if labels == nil {
		labels = map[string]string{}
	}
	maps.Copy(labels, o.Overrides[cluster].Labels)
	return labels
}
