package approvaltest

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"sync"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/approval"
	"github.com/acp-io/acp/internal/catalog/workloads"
	"github.com/acp-io/acp/internal/message"
	"github.com/acp-io/acp/internal/policy"
)

// Host is a host cluster in memory in which every application has a class and every resource the same actions. Its zero
// value is ready.
type Host struct {
	mu sync.Mutex
	// Actions contains the actions of every resource. Without actions no resource has a class.
	Actions []string
	// Extra are the lines of every grant besides its own; a change of it makes pending requests grow.
	Extra    []string
	Policies []*v1alpha1.ApprovalPolicy
	// Organized are the organizations.
	Organized []*v1alpha1.Organization
	About     map[string]approval.Facts
	Reaches   map[string]approval.Reached // by application; see also Reached
	// Affects are the resources that a change of an object affects, by Kind/name.
	Affects map[string][]string
	Down    func() error // returns the error of writing policies, unless nil
	// Contested are addresses of another application.
	Contested map[string]bool
	objects   map[string]*hostObject
	policies  map[string]*v1alpha1.AccessControlPolicy
	made      int64
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

// Reached implements approval.Host. It returns Reaches, and the resources of the statements that are in the policies.
func (h *Host) Reached(application string) (approval.Reached, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.reached(application), nil
}

func (h *Host) reached(application string) approval.Reached {
	r := approval.Reached{Resources: slices.Clone(h.Reaches[application].Resources), Wildcards: h.Reaches[application].Wildcards}
	for _, p := range h.policies {
		for _, s := range p.Spec.Statements {
			if slices.Contains(s.Subjects, v1alpha1.Subject(application)) {
				for _, resource := range s.Resources {
					r.Resources = append(r.Resources, string(resource))
				}
			}
		}
	}
	slices.Sort(r.Resources)
	r.Resources = slices.Compact(r.Resources)
	return r
}

// Affected implements approval.Host. It returns the entry of Affects for the object.
func (h *Host) Affected(c approval.Change) ([]string, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.Affects[c.Kind+"/"+c.Name], nil
}

// Propose implements approval.Registrations: everybody may register everything, in the form in which it is given, but what
// Contested names.
func (h *Host) Propose(_ string, w workloads.Workload) (workloads.Workload, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	w.Source = workloads.Portal
	for _, a := range w.Addresses {
		if h.Contested[a] {
			return w, fmt.Errorf("%s is registered for another application", a)
		}
	}
	return w, nil
}

// ApprovalPolicies implements approval.Host.
func (h *Host) ApprovalPolicies() ([]*v1alpha1.ApprovalPolicy, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.Policies), nil
}

// Organizations implements approval.Host.
func (h *Host) Organizations() ([]*v1alpha1.Organization, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.Organized), nil
}

// Compiled implements approval.Host.
func (h *Host) Compiled(it approval.Item) ([]string, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if it.Change != nil {
		lines := slices.Clone(h.Extra)
		if it.Change.Kind == approval.ObjectExternalWorkload {
			for _, r := range h.reached(it.ApplicationName).Resources {
				lines = append(lines, "allow workloads outside the fleet of "+it.ApplicationName+" to "+r)
			}
		}
		return lines, nil
	}
	return append([]string{compiledLine(it)}, h.Extra...), nil
}

func compiledLine(it approval.Item) string {
	return "allow " + it.ApplicationName + " to " + it.ResourceName
}

// Grow adds a line to every grant.
func (h *Host) Grow(line string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.Extra = append(slices.Clone(h.Extra), line)
}

// Shrink removes all lines of grants except their own.
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

// SetObject changes an object as a user outside the portal would; a nil spec deletes it.
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
		return approval.Written{Generation: 1}, check(ctx, true)
	case c.Verb != approval.VerbDelete && before != nil && string(spec) == string(c.After):
		return approval.Written{Generation: before.generation, UID: before.uid}, check(ctx, true)
	case string(spec) != string(c.Before):
		return approval.Written{}, &approval.RefusedError{Message: message.Verbatim(key + " was changed since the request was submitted"), Final: true}
	}
	if err := check(ctx, false); err != nil {
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
