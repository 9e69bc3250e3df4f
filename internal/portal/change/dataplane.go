package change

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/approval"
	"github.com/acp-io/acp/internal/enforcer"
	"github.com/acp-io/acp/internal/enforcer/istio"
	"github.com/acp-io/acp/internal/enforcer/registry"
	"github.com/acp-io/acp/internal/policy"
)

// key of one dataplane object in one member, or in all others.
type key struct {
	enforcer                                      v1alpha1.EnforcerName
	groupVersion, kind, namespace, name, ofMember string
}

// side is what the dataplanes are given on one side of the change.
type side struct {
	objects map[key]string
	// goes tells of an object for all others whether a member gets it, unless it has one of its own.
	goes map[key]func(member string) bool
	// refused are messages by what they are about: two statements may be refused for the same reason.
	refused map[string]string
	members []Member
	// capabilities are what the members declare, as the enforcer reads it; nil: nothing is known of any.
	capabilities []byte
	unknown      map[v1alpha1.EnforcerName]bool // rendering needs what nobody knows here
}

// dataplane adds the objects that differ.
func (v *View) dataplane(old, new *policy.Snapshot, units map[string]bool, members []Member, at time.Time) {
	names := sortedKeys(units)
	if len(names) > mostUnits {
		v.Say(fmt.Sprintf("%d resources are concerned; the dataplane objects of the first %d are shown.", len(names), mostUnits))
		names = names[:mostUnits]
	}
	before, after := newSide(members), newSide(members)
	for _, name := range names {
		before.render(old, name, at)
		after.render(new, name, at)
	}
	keys := maps.Clone(before.objects)
	maps.Copy(keys, after.objects)
	for _, k := range slices.SortedFunc(maps.Keys(keys), compareKeys) {
		a, b := before.object(k), after.object(k)
		if a == b {
			continue
		}
		o := Object{Layer: LayerDataplane, Kind: k.kind, Name: k.name, Enforcer: string(k.enforcer), Before: a, After: b}
		if k.namespace != "" {
			o.Name = k.namespace + "/" + k.name
		}
		if k.ofMember != "" {
			o.Clusters = []string{k.ofMember}
		}
		v.Objects = append(v.Objects, o)
	}
	for _, what := range slices.Sorted(maps.Keys(after.refused)) {
		if message := after.refused[what]; before.refused[what] != message {
			v.refuse(message)
		}
	}
	for _, e := range slices.Sorted(maps.Keys(after.unknown)) {
		v.Say(fmt.Sprintf("What %s is given depends on what each member can do, and no member is known yet.", e))
	}
}

// refuse adds a message, once.
func (v *View) refuse(message string) {
	if !slices.Contains(v.Refused, message) {
		v.Refused = append(v.Refused, message)
		slices.Sort(v.Refused)
	}
}

// Refuse adds why statements of the items would be left out of the members by what is in the input: also by statements that
// the view does not show.
func (v *View) Refuse(base *policy.Snapshot, in policy.Input, kind approval.Kind, items []approval.Item, at time.Time) {
	_, after, resources := Snapshots(base, in, kind, items)
	own := map[policy.Ref]bool{}
	for _, it := range items {
		if kind.Access() {
			own[policy.Ref{Policy: policy.PolicyNameFor(it.ResourceName), SID: it.SID}] = true
		}
	}
	for _, name := range resources {
		u, ok := after.CompileResource(name, at)
		for i := 0; ok && i < len(u.Refused); i++ {
			if r := &u.Refused[i]; own[r.Ref] {
				v.refuse(r.Message)
			}
		}
	}
}

// Say adds to the message.
func (v *View) Say(message string) {
	if v.Message != "" {
		v.Message += " "
	}
	v.Message += message
}

// capabilitiesOf the members; nil: there are none, or they cannot be written down.
func capabilitiesOf(members []Member) []byte {
	if len(members) == 0 {
		return nil
	}
	declared := map[string]string{}
	for _, m := range members {
		declared[m.Name] = m.Istio
	}
	text, err := json.Marshal(istio.Declared(declared))
	if err != nil {
		return nil
	}
	return text
}

func newSide(members []Member) *side {
	return &side{members: members, capabilities: capabilitiesOf(members), objects: map[key]string{}, goes: map[key]func(string) bool{}, refused: map[string]string{}, unknown: map[v1alpha1.EnforcerName]bool{}}
}

// refuse keeps a message that says by itself what it is about.
func (s *side) refuse(message string) { s.refused[message] = message }

func (s *side) render(snap *policy.Snapshot, resource string, at time.Time) {
	u, ok := snap.CompileResource(resource, at)
	if !ok {
		return
	}
	for _, r := range u.Refused {
		s.refused[r.Ref.String()+" "+r.Reason+" "+r.Resource] = r.Message
	}
	for _, name := range u.Enforcers {
		job := registry.Job{Snapshot: snap, Units: []policy.Unit{u}, At: at}
		if name == v1alpha1.EnforcerIstio {
			if s.capabilities == nil {
				s.unknown[name] = true
				continue
			}
			job.Declared = s.capabilities
		}
		plan, err := registry.Prepare(name, job)
		if err != nil {
			s.refuse(fmt.Sprintf("%s cannot be used: %v", name, err))
			continue
		}
		for i := range plan.Units {
			r, err := plan.Enforcer.Render(plan.Units[i])
			if err != nil {
				s.refuse(fmt.Sprintf("%s cannot enforce %s: %v", name, resource, err))
				continue
			}
			s.add(name, &u, &r)
		}
	}
}

func (s *side) add(name v1alpha1.EnforcerName, u *policy.Unit, r *enforcer.Rendering) {
	for _, f := range r.RefusedAmong(targets(u, s.members)) {
		s.refuse(f.Message)
	}
	for _, o := range r.Objects {
		k := key{enforcer: name, groupVersion: o.Object.GroupVersion, kind: o.Object.Kind, namespace: o.Object.Namespace, name: o.Object.Name}
		s.objects[k] = manifest(o.Object, o.Object.Spec)
		s.goes[k] = func(member string) bool { return placed(u, member, s.members) }
		for member, spec := range o.Overrides {
			if !placed(u, member, s.members) {
				continue
			}
			k.ofMember = member
			s.objects[k] = manifest(o.Object, spec)
		}
	}
}

// object that is at a key: a member may get one of its own on one side of the change only.
func (s *side) object(k key) string {
	if own, ok := s.objects[k]; ok || k.ofMember == "" {
		return own
	}
	others, member := k, k.ofMember
	if others.ofMember = ""; s.goes[others] != nil && s.goes[others](member) {
		return s.objects[others]
	}
	return ""
}

// manifest leaves out the labels, which say only who manages the object and which revision it is.
func manifest(o enforcer.Object, spec map[string]any) string {
	meta := map[string]any{"name": o.Name}
	if o.Namespace != "" {
		meta["namespace"] = o.Namespace
	}
	return text(map[string]any{"apiVersion": o.GroupVersion, "kind": o.Kind, "metadata": meta, "spec": spec})
}

func compareKeys(a, b key) int {
	return cmp.Or(cmp.Compare(a.enforcer, b.enforcer), strings.Compare(a.kind, b.kind), strings.Compare(a.namespace, b.namespace), strings.Compare(a.name, b.name),
		strings.Compare(a.ofMember, b.ofMember), strings.Compare(a.groupVersion, b.groupVersion))
}

func sortedKeys(m map[string]bool) []string { return slices.Sorted(maps.Keys(m)) }
