package approvaltest

import (
	"context"
	"encoding/json"
	"slices"
	"strconv"
	"sync"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/approval"
	"github.com/acp-io/acp/internal/policy"
)

// Host is a host cluster in memory in which every application has a class and every resource the same actions. Its zero
// value is ready.
type Host struct {
	mu sync.Mutex
	// Actions of every resource; nil: nothing has a class.
	Actions []string
	// Extra is what every grant brings beside its own line; changing it makes waiting requests grow.
	Extra    []string
	Policies []*v1alpha1.ApprovalPolicy
	About    map[string]approval.Facts
	Down     func() error // what writing policies gives; nil: nothing
	objects  map[string]*hostObject
	policies map[string]*v1alpha1.AccessControlPolicy
	made     int64
}

type hostObject struct {
	uid        string
	generation int64
	spec       json.RawMessage
}

// ResourceActions implements approval.Classes.
func (h *Host) ResourceActions(string) ([]string, bool, error) {
	return h.Actions, h.Actions != nil, nil
}

// SubjectCovered implements approval.Classes.
func (h *Host) SubjectCovered(string) (bool, error) { return h.Actions != nil, nil }

// Facts implements approval.Host.
func (h *Host) Facts(resource string) (approval.Facts, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	f, ok := h.About[resource]
	if !ok {
		f = approval.Facts{Class: "class"}
	}
	name := policy.PolicyNameFor(resource) // as the Service names what it creates
	if o := h.objects[approval.ObjectProtectedResource+"/"+name]; o != nil && f.Protection == nil {
		f.Protection = &v1alpha1.ProtectedResource{}
		f.Protection.Name, f.Protection.ResourceVersion = name, strconv.FormatInt(o.generation, 10)
		if err := json.Unmarshal(o.spec, &f.Protection.Spec); err != nil {
			return f, err
		}
	}
	return f, nil
}

// ApprovalPolicies implements approval.Host.
func (h *Host) ApprovalPolicies() ([]*v1alpha1.ApprovalPolicy, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.Policies), nil
}

// Compiled implements approval.Host.
func (h *Host) Compiled(it approval.Item) ([]string, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if it.Change != nil {
		return slices.Clone(h.Extra), nil
	}
	return append([]string{compiledLine(it)}, h.Extra...), nil
}

func compiledLine(it approval.Item) string {
	return "allow " + it.ApplicationName + " to " + it.ResourceName
}

// Grow adds a line to what every grant brings.
func (h *Host) Grow(line string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.Extra = append(slices.Clone(h.Extra), line)
}

// Shrink makes grants bring nothing but themselves.
func (h *Host) Shrink() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.Extra = nil
}

// Object implements approval.Host.
func (h *Host) Object(kind, name string) (approval.Object, bool, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	o := h.objects[kind+"/"+name]
	if o == nil {
		return approval.Object{}, false, nil
	}
	return approval.Object{ResourceVersion: strconv.FormatInt(o.generation, 10), Spec: o.spec}, true, nil
}

// SetObject is a change that somebody makes outside the portal; nil deletes.
func (h *Host) SetObject(kind, name string, spec json.RawMessage) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.set(kind+"/"+name, spec)
}

func (h *Host) set(key string, spec json.RawMessage) *hostObject {
	if h.objects == nil {
		h.objects = map[string]*hostObject{}
	}
	if spec == nil {
		delete(h.objects, key)
		return nil
	}
	o := h.objects[key]
	if o == nil {
		h.made++
		o = &hostObject{uid: "uid-" + strconv.FormatInt(h.made, 10)}
	}
	h.objects[key] = &hostObject{uid: o.uid, generation: o.generation + 1, spec: spec}
	return h.objects[key]
}

// DryRun implements approval.Host.
func (h *Host) DryRun(_ context.Context, c approval.Change) (json.RawMessage, error) {
	if c.Verb == approval.VerbDelete {
		return nil, nil
	}
	return c.After, nil
}

// Apply implements approval.ObjectWriter.
func (h *Host) Apply(ctx context.Context, c approval.Change, check approval.Check) (approval.Written, error) {
	key := c.Kind + "/" + c.Name
	h.mu.Lock()
	before := h.objects[key]
	h.mu.Unlock()
	var spec json.RawMessage
	if before != nil {
		spec = before.spec
	}
	switch {
	case c.Verb == approval.VerbDelete && before == nil:
		return approval.Written{Generation: 1}, check(ctx)
	case c.Verb != approval.VerbDelete && before != nil && string(spec) == string(c.After):
		return approval.Written{Generation: before.generation, UID: before.uid}, check(ctx)
	case string(spec) != string(c.Before):
		return approval.Written{}, &approval.RefusedError{Message: key + " was changed since this was asked for", Final: true}
	}
	if err := check(ctx); err != nil {
		return approval.Written{}, err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if c.Verb == approval.VerbDelete {
		h.set(key, nil)
		return approval.Written{Generation: before.generation, UID: before.uid}, nil
	}
	o := h.set(key, c.After)
	return approval.Written{Generation: o.generation, UID: o.uid}, nil
}

// Seen implements a part of approval.Policies: the adapter does everything at once.
func (h *Host) Seen(_ context.Context, kind, name string) (approval.ObjectSeen, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	o := h.objects[kind+"/"+name]
	if o == nil {
		return approval.ObjectSeen{}, nil
	}
	return approval.ObjectSeen{Exists: true, UID: o.uid, Generation: o.generation, Observed: o.generation, Spec: o.spec, Ready: true}, nil
}
