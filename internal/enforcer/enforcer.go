// Package enforcer defines the interface between compiled units and dataplanes: the input and the output of a
// translation. Each dataplane has a package below it.
//
// The package is pure: values in, values out, without clients or clock. It does not depend on KubeFed: a Rendering
// contains the objects for the members, and the distributor decides how they are pushed.
package enforcer

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/message"
	"github.com/acp-io/acp/internal/policy"
)

// Object is a dataplane object for the members.
type Object struct {
	// GroupVersion and Kind identify the type, for example cilium.io/v2 and CiliumClusterwideNetworkPolicy.
	GroupVersion, Kind string
	// Namespace is the namespace in the members, or "" for a cluster-scoped kind.
	Namespace string
	// Name begins with v1alpha1.ObjectPrefix.
	Name string
	// Labels contain the manager, the unit, and the revision of Spec.
	Labels map[string]string
	// Spec contains JSON values, with integers as int64.
	Spec map[string]any
}

// Rendered is an object with the specs of the members that differ.
type Rendered struct {
	Object Object
	// Overrides are complete specs by member, for members whose spec differs from the object's.
	Overrides map[string]map[string]any
	// Revision is the revision of the object's spec. Revisions are the revisions of Overrides.
	Revision  string
	Revisions map[string]string
	// Only are the members that have the object, sorted; nil means every member in which the unit is placed.
	Only []string
	// Interim contains, by member, the spec that it must have until other objects of the unit are in force there.
	Interim map[string]InterimSpec
}

// InterimSpec is the spec that a member has until other objects are in force there, which restrict what the final spec opens.
type InterimSpec struct {
	// Objects are the names of the other objects, never empty.
	Objects []string
	// Rule is the rule of the unit's final specs, as a JSON value, that opens what the other objects restrict. No spec before has it.
	Rule any
	// Spec is the spec before, and Revision its revision.
	Spec     map[string]any
	Revision string
}

// RevisionIn returns the revision that a member must have.
func (r *Rendered) RevisionIn(cluster string) string {
	if rev, ok := r.Revisions[cluster]; ok {
		return rev
	}
	return r.Revision
}

// IsIn reports whether a member in which the unit is placed has the object.
func (r *Rendered) IsIn(cluster string) bool {
	return r.Only == nil || slices.Contains(r.Only, cluster)
}

// Rendering is the translation of a unit for one dataplane.
type Rendering struct {
	// Objects are ordered; the object that closes the resource is first. If a later Rendering of the unit lacks an
	// object, the resource stays closed as that Rendering says without the object once the rest is realized, so the
	// object can then be removed by the ordinary protocol.
	Objects []Rendered
	// Refused are the statements that this dataplane cannot express, in addition to those that the unit itself lacks. A
	// refusal without statement concerns the whole unit.
	Refused []policy.Refusal
	// RefusedIn contains the refusals of the members in which they differ from Refused.
	RefusedIn map[string][]policy.Refusal
	// Unenforced are sentences about what this dataplane leaves open regardless of the statements.
	Unenforced []message.Message
}

// RefusedBy returns the refusals in a member.
func (r *Rendering) RefusedBy(cluster string) []policy.Refusal {
	if refused, ok := r.RefusedIn[cluster]; ok {
		return refused
	}
	return r.Refused
}

// Enforcer translates units for one dataplane. Render must be a pure function. It returns an error only if the unit
// itself is unusable, never because of a single statement.
type Enforcer interface {
	Name() v1alpha1.EnforcerName
	Render(u policy.Unit) (Rendering, error)
}

// Revision returns the first 16 hexadecimal digits of the SHA-256 of the spec as JSON with sorted keys. A spec that was
// written to an API server and read back has the same revision, regardless of the Go types of its numbers. For a spec
// that is not valid JSON it returns "", which no object has. Labels that WithRuleLabel added are not part of the revision,
// unless they contain another one.
func Revision(spec map[string]any) string {
	labels, labelled := spec[ruleLabels]
	if !labelled {
		return digest(spec)
	}
	rest := maps.Clone(spec)
	delete(rest, ruleLabels)
	if r := digest(rest); r != "" && reflect.DeepEqual(labels, ruleLabelsOf(r)) {
		return r
	}
	return digest(spec)
}

func digest(spec map[string]any) string {
	text, err := json.Marshal(spec)
	if err != nil {
		return ""
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:8])
}

// ruleLabels is the field of a spec with labels that the dataplane keeps with the rules, and that select nothing.
const ruleLabels = "labels"

// RuleLabelSource is the source of the label of WithRuleLabel, in the sense of Cilium's labels.
const RuleLabelSource = "acp"

func ruleLabelsOf(revision string) []any {
	return []any{map[string]any{"key": v1alpha1.LabelRevision, "source": RuleLabelSource, "value": revision}}
}

// WithRuleLabel returns the spec with its revision as the label of its rules, in place of other labels. The agents of a
// dataplane that keeps such labels report them with the rules that they have read, which identifies the revision that they have.
func WithRuleLabel(spec map[string]any) map[string]any {
	out := maps.Clone(spec)
	delete(out, ruleLabels)
	if r := digest(out); r != "" {
		out[ruleLabels] = ruleLabelsOf(r)
	}
	return out
}

// SetRuleLabel sets the label of WithRuleLabel in a spec without labels whose revision is known.
func SetRuleLabel(spec map[string]any, revision string) { spec[ruleLabels] = ruleLabelsOf(revision) }

// HasRuleLabel reports whether the spec has a label of WithRuleLabel, of this or of another revision.
func HasRuleLabel(spec map[string]any) bool {
	labels, _ := spec[ruleLabels].([]any)
	for _, l := range labels {
		if label, ok := l.(map[string]any); ok && label["key"] == v1alpha1.LabelRevision {
			return true
		}
	}
	return false
}

// Render combines a spec for the base mode and the specs of the members that differ into a Rendered.
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
