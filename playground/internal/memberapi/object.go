package memberapi

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
)

// object is one version of an object in a member. It is immutable. Everything that equal objects of several members have in common is
// shared, because 100 members have the same 10,000 policies.
type object struct {
	*content
	managers []owner
	// status is the encoded status, or nil.
	status []byte
	// uid, version (the resource version) and generation are the member's own; the kinds of the core group have no generation. created and
	// deleted are seconds, 0 for not deleted.
	uid, version     uint64
	generation       int64
	created, deleted int64
	// gone reports whether the object does not exist any more. This is its last version.
	gone bool
}

// content is what a client wrote: everything but the status and what the API server adds to the metadata.
type content struct {
	namespace, name string
	labels          labels.Set
	finalizers      []string
	// head, metadata and rest are parts of the encoded object: the beginning up to the fields of metadata, these fields, and the fields
	// beside metadata, each with a comma before it.
	head, metadata, rest []byte
}

// owner is a field manager of an object, with the time of its last change in seconds.
type owner struct {
	*manager
	at int64
}

// manager is an entry of managedFields without its time.
type manager struct {
	name      string
	operation metav1.ManagedFieldsOperationType
	// encoded is the entry without the opening brace.
	encoded []byte
}

// systemFields are the fields of metadata that only the API server writes.
var systemFields = []string{"creationTimestamp", "deletionGracePeriodSeconds", "deletionTimestamp", "generation", "managedFields", "resourceVersion",
	"selfLink", "uid"}

// newContent returns the content of an object.
func newContent(u *unstructured.Unstructured) (*content, error) {
	meta, _, err := unstructured.NestedMap(u.Object, "metadata")
	if err != nil {
		return nil, err
	}
	maps.DeleteFunc(meta, func(k string, _ any) bool { return slices.Contains(systemFields, k) })
	c := &content{namespace: u.GetNamespace(), name: u.GetName(), labels: u.GetLabels(), finalizers: u.GetFinalizers()}
	c.head = fmt.Appendf(nil, `{"apiVersion":%q,"kind":%q,"metadata":{`, u.GetAPIVersion(), u.GetKind())
	encoded, err := json.Marshal(meta)
	if err != nil {
		return nil, err
	}
	c.metadata = bytes.TrimSuffix(bytes.TrimPrefix(encoded, []byte("{")), []byte("}"))
	for _, k := range slices.Sorted(maps.Keys(u.Object)) {
		if k == "apiVersion" || k == "kind" || k == "metadata" || k == "status" {
			continue
		}
		value, err := json.Marshal(u.Object[k])
		if err != nil {
			return nil, err
		}
		c.rest = fmt.Appendf(c.rest, `,%q:`, k)
		c.rest = append(c.rest, value...)
	}
	return c, nil
}

// equal reports whether two contents are the same object with the same content.
func (c *content) equal(d *content) bool {
	return c == d || bytes.Equal(c.head, d.head) && bytes.Equal(c.metadata, d.metadata) && bytes.Equal(c.rest, d.rest)
}

// key is the key of the object among those of its kind, in the order in which they are listed.
func (c *content) key() string { return keyOf(c.namespace, c.name) }

func keyOf(namespace, name string) string {
	if namespace == "" {
		return name
	}
	return namespace + "/" + name
}

// newOwners returns the managers of an object.
func newOwners(u *unstructured.Unstructured) ([]owner, error) {
	var out []owner
	for _, entry := range u.GetManagedFields() {
		o := owner{manager: &manager{name: entry.Manager, operation: entry.Operation}}
		if entry.Time != nil {
			o.at = entry.Time.Unix()
		}
		entry.Time = nil
		encoded, err := json.Marshal(entry)
		if err != nil {
			return nil, err
		}
		o.encoded = encoded[1:]
		out = append(out, o)
	}
	return out, nil
}

// sameOwners reports whether two lists have the same managers with the same fields.
func sameOwners(a, b []owner) bool {
	return slices.EqualFunc(a, b, func(a, b owner) bool { return a.manager == b.manager || bytes.Equal(a.encoded, b.encoded) })
}

// encode appends the object as JSON.
func (o *object) encode(out []byte) []byte {
	out = append(append(out, o.head...), o.metadata...)
	out = append(out, `,"creationTimestamp":`...)
	out = appendTime(out, o.created)
	if o.deleted != 0 {
		out = append(out, `,"deletionGracePeriodSeconds":0,"deletionTimestamp":`...)
		out = appendTime(out, o.deleted)
	}
	if o.generation != 0 {
		out = append(out, `,"generation":`...)
		out = strconv.AppendInt(out, o.generation, 10)
	}
	for i, m := range o.managers {
		if i == 0 {
			out = append(out, `,"managedFields":[`...)
		} else {
			out = append(out, ',')
		}
		out = append(out, `{"time":`...)
		out = appendTime(out, m.at)
		out = append(append(out, ','), m.encoded...)
	}
	if len(o.managers) > 0 {
		out = append(out, ']')
	}
	out = append(out, `,"resourceVersion":"`...)
	out = strconv.AppendUint(out, o.version, 10)
	out = fmt.Appendf(out, `","uid":"%08x-0000-4000-8000-%012x"}`, o.uid>>48, o.uid&(1<<48-1))
	out = append(out, o.rest...)
	if o.status != nil {
		out = append(append(out, `,"status":`...), o.status...)
	}
	return append(out, '}')
}

func appendTime(out []byte, seconds int64) []byte {
	out = append(out, '"')
	out = time.Unix(seconds, 0).UTC().AppendFormat(out, time.RFC3339)
	return append(out, '"')
}

// encodeMetadata appends the object as a PartialObjectMetadata.
func (o *object) encodeMetadata(out []byte) []byte {
	partial := o.headed(`{"apiVersion":"meta.k8s.io/v1","kind":"PartialObjectMetadata","metadata":{`)
	partial.rest, partial.status = nil, nil
	return partial.encode(out)
}

// encodeItem appends the object as an item of a list, which has neither apiVersion nor kind in the lists of built-in kinds.
func (o *object) encodeItem(out []byte) []byte { return o.headed(`{"metadata":{`).encode(out) }

// headed returns a copy of the object with another beginning.
func (o *object) headed(head string) *object {
	out, c := *o, *o.content
	c.head, out.content = []byte(head), &c
	return &out
}

// unstructured returns the object for functions of the API machinery.
func (o *object) unstructured() (*unstructured.Unstructured, error) {
	u := &unstructured.Unstructured{}
	if err := u.UnmarshalJSON(o.encode(nil)); err != nil {
		return nil, fmt.Errorf("decode %s: %w", o.key(), err)
	}
	return u, nil
}
