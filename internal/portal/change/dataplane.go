package change

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/approval"
	"github.com/acp-io/acp/internal/enforcer"
	"github.com/acp-io/acp/internal/enforcer/cilium"
	"github.com/acp-io/acp/internal/enforcer/registry"
	"github.com/acp-io/acp/internal/message"
	"github.com/acp-io/acp/internal/policy"
)

// key identifies a dataplane object in one member, or in all others.
type key struct {
	enforcer                                      v1alpha1.EnforcerName
	groupVersion, kind, namespace, name, ofMember string
}

// side contains the objects of the dataplanes before or after the change.
type side struct {
	objects map[key]string
	// goes returns, for an object of all other members, whether a member without an object of its own gets it.
	goes map[key]func(member string) bool
	// refused contains messages by statement, because several may be refused for the same reason.
	refused map[string]message.Message
	members []Member
	unknown map[v1alpha1.EnforcerName]bool // rendering needs properties of members that are not known
}

// dataplane adds the objects that differ.
func (v *View) dataplane(old, new *policy.Snapshot, units map[string]bool, members []Member, at time.Time) {
	names := sortedKeys(units)
	if len(names) > mostUnits {
		v.Note(message.ChangeResourcesNotShown(len(names), mostUnits))
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
		if why := after.refused[what]; before.refused[what] != why {
			v.refuse(why)
		}
	}
	for _, e := range slices.Sorted(maps.Keys(after.unknown)) {
		v.Note(message.ChangeMembersUnknown(string(e)))
	}
}

// groups adds the address groups of Cilium for the applications of the items.
func (v *View) groups(old, new *policy.Snapshot, items []approval.Item) {
	subjects := map[string]bool{}
	for _, it := range items {
		subjects[it.ApplicationName] = true
		var was v1alpha1.ExternalWorkloadSpec
		if it.Change != nil && len(it.Change.Before) > 0 && json.Unmarshal(it.Change.Before, &was) == nil {
			subjects[string(was.Subject)] = true // it may have been another application's
		}
	}
	before, after := newSide(nil), newSide(nil)
	if !before.groups(old, subjects) || !after.groups(new, subjects) {
		v.Note(message.ChangeGroupNotShown(mostPrefixes))
	}
	keys := maps.Clone(before.objects)
	maps.Copy(keys, after.objects)
	for _, k := range slices.SortedFunc(maps.Keys(keys), compareKeys) {
		if a, b := before.objects[k], after.objects[k]; a != b {
			v.Objects = append(v.Objects, Object{Layer: LayerDataplane, Kind: k.kind, Name: k.name, Enforcer: string(k.enforcer), Before: a, After: b})
		}
	}
}

// mostPrefixes is the maximum number of prefixes of an address group that is shown.
const mostPrefixes = 2000

// groups adds the address groups of subjects. It returns false if one is too large to be shown.
func (s *side) groups(snap *policy.Snapshot, subjects map[string]bool) bool {
	whole := true
	for _, g := range snap.ExternalGroups() {
		if !subjects[g.Subject] {
			continue
		}
		if len(g.Prefixes)+len(g.Contested) > mostPrefixes {
			whole = false
			continue
		}
		r, err := cilium.RenderGroup(g)
		if err != nil {
			continue // the lines of the ticket contain what is refused
		}
		for _, o := range r.Objects {
			k := key{
				enforcer:     v1alpha1.EnforcerCilium,
				groupVersion: o.Object.GroupVersion,
				kind:         o.Object.Kind,
				namespace:    o.Object.Namespace,
				name:         o.Object.Name,
			}
			s.objects[k] = manifest(o.Object, o.Object.Spec)
		}
	}
	return whole
}

// refuse adds a message unless it is present.
func (v *View) refuse(why message.Message) {
	if !slices.Contains(v.Refused, why) {
		v.Refused = append(v.Refused, why)
		slices.SortFunc(v.Refused, func(a, b message.Message) int { return strings.Compare(a.Text, b.Text) })
	}
}

// Refuse adds the reasons why members would not have statements of the items. The reasons may be statements of the input that the view
// does not show.
func (v *View) Refuse(base *policy.Snapshot, in policy.Input, members []Member, kind approval.Kind, items []approval.Item, at time.Time) {
	_, after, resources := Snapshots(base, in, kind, items)
	_, written, _, _ := sides(base, in, kind, items)
	own := map[policy.Ref]bool{}
	for _, it := range items {
		if kind.Access() {
			sid := approval.Statement(it).SID
			own[policy.Ref{Policy: shardOf(written.Policies, baseOf(it), sid), SID: sid}] = true
		}
	}
	for _, name := range resources {
		u, ok := after.CompileResource(name, at)
		if !ok {
			continue
		}
		for _, r := range append(u.Refused, registry.Refused(after, &u, targets(&u, members), at)...) {
			if own[r.Ref] {
				v.refuse(r.Message)
			}
		}
	}
}

// Note appends a note about what the view does not show.
func (v *View) Note(m message.Message) { v.Notes = append(v.Notes, m) }

func newSide(members []Member) *side {
	return &side{
		members: members,
		objects: map[key]string{},
		goes:    map[key]func(string) bool{},
		refused: map[string]message.Message{},
		unknown: map[v1alpha1.EnforcerName]bool{},
	}
}

// refuse adds a message that names its subject itself.
func (s *side) refuse(why message.Message) { s.refused[why.Text] = why }

func (s *side) render(snap *policy.Snapshot, resource string, at time.Time) {
	u, ok := snap.CompileResource(resource, at)
	if !ok {
		return
	}
	for _, r := range u.Refused {
		s.refused[r.Ref.String()+" "+r.Reason+" "+r.Resource] = r.Message
	}
	for _, name := range u.Enforcers {
		if name == v1alpha1.EnforcerIstio && len(s.members) == 0 {
			s.unknown[name] = true
			continue
		}
		plan, err := registry.Prepare(name, registry.Job{Snapshot: snap, Units: []policy.Unit{u}, At: at})
		if err != nil {
			s.refuse(message.ChangeEnforcerUnusable(string(name), message.Of(err)))
			continue
		}
		for i := range plan.Units {
			r, err := plan.Enforcer.Render(plan.Units[i])
			if err != nil {
				s.refuse(message.ChangeNotEnforceable(string(name), resource, message.Of(err)))
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
		if o.Only == nil {
			s.objects[k] = manifest(o.Object, o.Object.Spec)
			s.goes[k] = func(member string) bool { return gets(name, u, member, s.members) }
		}
		for _, member := range o.Only {
			if _, own := o.Overrides[member]; !own && gets(name, u, member, s.members) {
				of := k
				of.ofMember = member
				s.objects[of] = manifest(o.Object, o.Object.Spec)
			}
		}
		for member, spec := range o.Overrides {
			if !gets(name, u, member, s.members) {
				continue
			}
			k.ofMember = member
			s.objects[k] = manifest(o.Object, spec)
		}
	}
}

// object returns the object of a key. A member may have an object of its own on one side of the change only.
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

// manifest returns the object as YAML without its labels, which contain only the manager and the revision.
func manifest(o enforcer.Object, spec map[string]any) string {
	meta := map[string]any{"name": o.Name}
	if o.Namespace != "" {
		meta["namespace"] = o.Namespace
	}
	return text(map[string]any{"apiVersion": o.GroupVersion, "kind": o.Kind, "metadata": meta, "spec": spec})
}

func compareKeys(a, b key) int {
	return cmp.Or(
		cmp.Compare(a.enforcer, b.enforcer),
		strings.Compare(a.kind, b.kind),
		strings.Compare(a.namespace, b.namespace),
		strings.Compare(a.name, b.name),
		strings.Compare(a.ofMember, b.ofMember),
		strings.Compare(a.groupVersion, b.groupVersion),
	)
}

func sortedKeys(m map[string]bool) []string { return slices.Sorted(maps.Keys(m)) }
