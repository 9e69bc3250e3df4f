// Package enforcer owns the seam between a compiled unit and a dataplane: what a translation takes and gives. Each
// dataplane has a package below it.
//
// It is pure: values in, values out, no client, no clock. It knows nothing of KubeFed; a Rendering says what has to be
// in the members, and the distributor says how it gets there.
package enforcer

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/policy"
)

// Object is a dataplane object for the members.
type Object struct {
	// GroupVersion and Kind, for example cilium.io/v2 and CiliumClusterwideNetworkPolicy.
	GroupVersion, Kind string
	// Namespace in the members; "": the kind is cluster-scoped.
	Namespace string
	// Name begins with v1alpha1.ObjectPrefix.
	Name string
	// Labels say who manages the object, which unit it is, and the revision of Spec.
	Labels map[string]string
	// Spec holds what JSON holds, integers as int64.
	Spec map[string]any
}

// Rendered is an object with the members that get another spec.
type Rendered struct {
	Object Object
	// Overrides are whole specs by member, only where they differ from the object's.
	Overrides map[string]map[string]any
	// Revision is that of the object's spec; Revisions are those of Overrides.
	Revision  string
	Revisions map[string]string
}

// RevisionIn is what a member has to have.
func (r *Rendered) RevisionIn(cluster string) string {
	if rev, ok := r.Revisions[cluster]; ok {
		return rev
	}
	return r.Revision
}

// Rendering is a unit as one dataplane understands it.
type Rendering struct {
	// Objects, the one that closes the resource first. An object that a later Rendering of the unit lacks is not needed
	// for keeping the resource as closed as that Rendering says, once what is there of it is realised; so it can go then,
	// by the ordinary protocol for removing.
	Objects []Rendered
	// Refused is what this dataplane cannot express, beside what the unit itself lacks. A refusal without statement is
	// about the unit.
	Refused []policy.Refusal
	// RefusedIn holds the members in which it is not Refused, but this.
	RefusedIn map[string][]policy.Refusal
	// Unenforced are sentences about what this dataplane leaves open whatever the statements say.
	Unenforced []string
}

// RefusedBy is what a member cannot express.
func (r *Rendering) RefusedBy(cluster string) []policy.Refusal {
	if refused, ok := r.RefusedIn[cluster]; ok {
		return refused
	}
	return r.Refused
}

// Enforcer translates units for one dataplane. Render is a pure function; an error means that the unit itself is
// unusable, never that a statement is.
type Enforcer interface {
	Name() v1alpha1.EnforcerName
	Render(u policy.Unit) (Rendering, error)
}

// Revision is the first 16 hexadecimal digits of the SHA-256 of the spec as JSON with sorted keys. A spec that was
// written to an API server and read back has the same revision, whatever types its numbers came back in. A spec that
// JSON cannot hold has the revision "", which is that of no object.
func Revision(spec map[string]any) string {
	text, err := json.Marshal(spec)
	if err != nil {
		return ""
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:8])
}

// Render makes a Rendered of a spec for the base mode and the specs of the members that differ from it.
func Render(o Object, unit string, byCluster map[string]map[string]any) (Rendered, error) {
	r := Rendered{Object: o, Revision: Revision(o.Spec)}
	if r.Revision == "" {
		return Rendered{}, fmt.Errorf("render %s %s: the spec is not JSON", o.Kind, o.Name)
	}
	r.Object.Labels = map[string]string{
		v1alpha1.LabelManagedBy: v1alpha1.ManagedBy,
		v1alpha1.LabelUnit:      unit,
		v1alpha1.LabelRevision:  r.Revision,
	}
	for cluster, spec := range byCluster {
		rev := Revision(spec)
		switch rev {
		case "":
			return Rendered{}, fmt.Errorf("render %s %s for %s: the spec is not JSON", o.Kind, o.Name, cluster)
		case r.Revision:
			continue
		}
		if r.Overrides == nil {
			r.Overrides, r.Revisions = map[string]map[string]any{}, map[string]string{}
		}
		r.Overrides[cluster], r.Revisions[cluster] = spec, rev
	}
	return r, nil
}
