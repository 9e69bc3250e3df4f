package federation

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

// Object is a Federated object: the template of one object for the members, its placement and its overrides.
type Object struct {
	Kind Kind
	// Meta is the host object's own metadata. Its annotations are not copied to members.
	Meta metav1.ObjectMeta
	// TemplateLabels and TemplateSpec are the labels and the spec in every placed member.
	TemplateLabels map[string]string
	TemplateSpec   map[string]any
	// Placement lists the members explicitly. An empty placement is written as an empty list and never omitted, because
	// KubeFed interprets a missing list with an empty selector as all members.
	Placement []string
	// Overrides are the differences by member.
	Overrides map[string]Override
	// Propagation is KubeFed's status, which is only read. It says nothing about members of other engines: see ReportIn.
	Propagation Propagation
	// Reporter returns the reports of the members' engines; nil means that KubeFed is the only engine.
	Reporter Reporter
	// ForeignFields reports whether the object has content that ACP never writes (a cluster selector, other override
	// paths) or that cannot be parsed. The object must be written again even if the rest is as wanted.
	ForeignFields bool
	// Written is the time of the adapter's last write, with a resolution of one second. It is only read.
	Written time.Time
}

// Key returns the key of the object among those of several kinds.
func (o *Object) Key() string { return o.Kind.Key(o.Meta.Name) }

// Override replaces parts of the template for one member.
type Override struct {
	Spec   map[string]any
	Labels map[string]string
}

type wire struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Spec              wireSpec   `json:"spec"`
	Status            wireStatus `json:"status,omitzero"`
}

type wireSpec struct {
	Template  wireTemplate   `json:"template"`
	Placement wirePlacement  `json:"placement"`
	Overrides []wireOverride `json:"overrides,omitempty"`
}

type wireTemplate struct {
	Metadata wireTemplateMeta `json:"metadata"`
	Spec     map[string]any   `json:"spec"`
}

type wireTemplateMeta struct {
	Labels map[string]string `json:"labels,omitempty"`
}

// wirePlacement deliberately has no omitempty; see Object.Placement.
type wirePlacement struct {
	Clusters        []wireCluster         `json:"clusters"`
	ClusterSelector *metav1.LabelSelector `json:"clusterSelector,omitempty"`
}

type wireCluster struct {
	Name string `json:"name"`
}

type wireOverride struct {
	ClusterName      string      `json:"clusterName"`
	ClusterOverrides []wirePatch `json:"clusterOverrides"`
}

type wirePatch struct {
	Op    string `json:"op,omitempty"`
	Path  string `json:"path"`
	Value any    `json:"value"`
}

const (
	opReplace  = "replace"
	pathSpec   = "/spec"
	pathLabels = "/metadata/labels/"
)

// jsonPointer escapes a key for use in a JSON pointer.
var jsonPointer = strings.NewReplacer("~", "~0", "/", "~1")

// jsonPointerBack is the inverse of jsonPointer.
var jsonPointerBack = strings.NewReplacer("~1", "/", "~0", "~")

// Unstructured returns the object in the form in which it is written.
func (o *Object) Unstructured() (*unstructured.Unstructured, error) {
	w := wire{ObjectMeta: o.Meta, Spec: o.wireSpec()}
	w.APIVersion, w.Kind = o.Kind.Federated.ToAPIVersionAndKind()
	raw, err := json.Marshal(w)
	if err != nil {
		return nil, fmt.Errorf("encode %s %s: %w", o.Kind.Federated.Kind, o.Meta.Name, err)
	}
	u := &unstructured.Unstructured{}
	if err := u.UnmarshalJSON(raw); err != nil {
		return nil, fmt.Errorf("encode %s %s: %w", o.Kind.Federated.Kind, o.Meta.Name, err)
	}
	unstructured.RemoveNestedField(u.Object, "metadata", "creationTimestamp")
	return u, nil
}

// SpecIn returns the spec that a member must have according to the object, or nil if the object is not placed there.
func (o *Object) SpecIn(cluster string) map[string]any {
	if !slices.Contains(o.Placement, cluster) {
		return nil
	}
	if own := o.Overrides[cluster].Spec; own != nil {
		return own
	}
	return o.TemplateSpec
}

// SameSpec reports whether the specs of two Federated objects are equal. They are compared as JSON, so that numbers are
// equal regardless of their Go types.
func SameSpec(a, b *Object) (bool, error) {
	x, err := json.Marshal(a.wireSpec())
	if err != nil {
		return false, fmt.Errorf("encode %s: %w", a.Meta.Name, err)
	}
	y, err := json.Marshal(b.wireSpec())
	if err != nil {
		return false, fmt.Errorf("encode %s: %w", b.Meta.Name, err)
	}
	return bytes.Equal(x, y), nil
}

func (o *Object) wireSpec() wireSpec {
	s := wireSpec{
		Template:  wireTemplate{Metadata: wireTemplateMeta{Labels: o.TemplateLabels}, Spec: o.TemplateSpec},
		Placement: wirePlacement{Clusters: []wireCluster{}},
	}
	for _, c := range slices.Sorted(slices.Values(o.Placement)) {
		s.Placement.Clusters = append(s.Placement.Clusters, wireCluster{Name: c})
	}
	for _, c := range slices.Sorted(maps.Keys(o.Overrides)) {
		ov := wireOverride{ClusterName: c}
		if o.Overrides[c].Spec != nil {
			ov.ClusterOverrides = append(ov.ClusterOverrides, wirePatch{Op: opReplace, Path: pathSpec, Value: o.Overrides[c].Spec})
		}
		for _, k := range slices.Sorted(maps.Keys(o.Overrides[c].Labels)) {
			ov.ClusterOverrides = append(ov.ClusterOverrides,
				wirePatch{Op: opReplace, Path: pathLabels + jsonPointer.Replace(k), Value: o.Overrides[c].Labels[k]})
		}
		s.Overrides = append(s.Overrides, ov)
	}
	return s
}

// ParseObject parses a Federated object. It always returns an object; content that cannot be parsed sets ForeignFields.
func ParseObject(kind Kind, u *unstructured.Unstructured) *Object {
	var w wire
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(withoutManagedFields(u), &w); err != nil {
		return &Object{Kind: kind, ForeignFields: true, Meta: metav1.ObjectMeta{Name: u.GetName(), UID: u.GetUID(),
			ResourceVersion: u.GetResourceVersion(), Generation: u.GetGeneration(), Labels: u.GetLabels(),
			Annotations: u.GetAnnotations(), Finalizers: u.GetFinalizers(), DeletionTimestamp: u.GetDeletionTimestamp()}}
	}
	o := &Object{Kind: kind, Meta: w.ObjectMeta, TemplateLabels: w.Spec.Template.Metadata.Labels,
		TemplateSpec: w.Spec.Template.Spec, Propagation: w.Status.propagation(w.Generation)}
	o.Written = written(u, o.Meta.CreationTimestamp.Time)
	o.ForeignFields = w.Spec.Placement.Clusters == nil || w.Spec.Placement.ClusterSelector != nil
	o.ForeignFields = o.ForeignFields || moreThanWritten(u)
	o.Placement = slices.Grow(o.Placement, len(w.Spec.Placement.Clusters))
	for _, c := range w.Spec.Placement.Clusters {
		o.Placement = append(o.Placement, shared.share(c.Name))
	}
	for _, ov := range w.Spec.Overrides {
		parsed, known := parseOverride(ov.ClusterOverrides)
		_, twice := o.Overrides[ov.ClusterName]
		o.ForeignFields = o.ForeignFields || !known || twice
		if o.Overrides == nil {
			o.Overrides = map[string]Override{}
		}
		o.Overrides[ov.ClusterName] = parsed
	}
	return o
}

// withoutManagedFields returns the content of an object without its managed fields, which shares the rest with the object. Managed fields are
// most of a small object, and only the time of the last write is used of them; an update without them does not change them.
func withoutManagedFields(u *unstructured.Unstructured) map[string]any {
	metadata, ok := u.Object["metadata"].(map[string]any)
	if !ok {
		return u.Object
	}
	out, rest := maps.Clone(u.Object), maps.Clone(metadata)
	delete(rest, "managedFields")
	out["metadata"] = rest
	return out
}

// moreThanWritten reports whether the template has content that ACP never writes and KubeFed would copy to the members.
func moreThanWritten(u *unstructured.Unstructured) bool {
	only := func(m map[string]any, keys ...string) bool {
		for k := range m {
			if !slices.Contains(keys, k) {
				return false
			}
		}
		return true
	}
	spec, _ := u.Object["spec"].(map[string]any)
	template, _ := spec["template"].(map[string]any)
	metadata, _ := template["metadata"].(map[string]any)
	return !only(template, "metadata", "spec") || !only(metadata, "labels")
}

func parseOverride(patches []wirePatch) (o Override, known bool) {
	known = true
	for _, p := range patches {
		spec, isSpec := p.Value.(map[string]any)
		label, isLabel := p.Value.(string)
		key, underLabels := strings.CutPrefix(p.Path, pathLabels)
		switch {
		case p.Op == opReplace && p.Path == pathSpec && isSpec && o.Spec == nil:
			o.Spec = spec
		case p.Op == opReplace && underLabels && isLabel:
			if o.Labels == nil {
				o.Labels = map[string]string{}
			}
			o.Labels[jsonPointerBack.Replace(key)] = label
		default:
			known = false
		}
	}
	return o, known
}

// SplitNames parses an annotation with comma-separated names. The result is sorted and has no duplicates.
func SplitNames(s string) []string {
	var names []string
	for n := range strings.SplitSeq(s, ",") {
		if n = strings.TrimSpace(n); n != "" {
			names = append(names, n)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// containsName reports whether SplitNames of an annotation contains a name, which is not empty.
func containsName(s, name string) bool {
	for n := range strings.SplitSeq(s, ",") {
		if strings.TrimSpace(n) == name {
			return true
		}
	}
	return false
}

// JoinNames formats names for an annotation, sorted and without duplicates.
func JoinNames(names []string) string {
	sorted := slices.Sorted(slices.Values(names))
	return strings.Join(slices.Compact(sorted), ",")
}
