package accesscontrolpolicy

import (
	"slices"
	"sync"

	"github.com/acp-io/acp/controllers/statuscache"
	"github.com/acp-io/acp/internal/federation"
)

// recordedUnits contains the units whose objects on the host name a policy in their annotation, as they were when the adapter started. Until such a
// unit is decided for the first time, only the annotation shows that a member may have statements of the policy that neither its spec nor its
// status names any more: the status may never have been written, or the policy may have been created again. The units that are written after
// the start have a report.
type recordedUnits struct {
	mu sync.Mutex
	// byPolicy contains the resources of the units that are not known to be decided; nil until the objects were read.
	byPolicy map[string][]string
}

// undecided returns the units that the host's objects record for a policy and that have not been decided since the start. listed is false while
// the host's objects are being listed.
func (u *recordedUnits) undecided(policy string, host Federated, reports *statuscache.Cache) (resources []string, listed bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.byPolicy == nil {
		listed, err := host.State()
		if !listed {
			return nil, err != nil // nothing is distributed if the objects cannot be listed
		}
		u.byPolicy = map[string][]string{}
		for _, o := range host.List() {
			resource := o.Resource()
			if resource == "" {
				continue
			}
			for _, name := range federation.SplitNames(o.Meta.Annotations[federation.AnnotationPolicies]) {
				if !slices.Contains(u.byPolicy[name], resource) {
					u.byPolicy[name] = append(u.byPolicy[name], resource)
				}
			}
		}
	}
	left := slices.DeleteFunc(u.byPolicy[policy], reports.Decided)
	if len(left) == 0 {
		delete(u.byPolicy, policy)
		return nil, true
	}
	u.byPolicy[policy] = left
	return slices.Clone(left), true
}
