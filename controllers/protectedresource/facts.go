package protectedresource

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/controllers/externalgroup"
	"github.com/acp-io/acp/controllers/policycache"
	"github.com/acp-io/acp/controllers/statuscache"
	"github.com/acp-io/acp/internal/enforcer"
	"github.com/acp-io/acp/internal/federation"
	"github.com/acp-io/acp/internal/federation/guard"
	"github.com/acp-io/acp/internal/policy"
)

// facts is everything that a decision about one resource rests on.
type facts struct {
	// Resource is an exact name, or the wildcard of a unit that only allows.
	Resource string
	Now      time.Time
	// Asked is when somebody asked for a change of the unit that is not answered yet; zero: nobody waits.
	Asked time.Time
	View  *policycache.View
	// Objects are the ProtectedResources that name the resource.
	Objects []*v1alpha1.ProtectedResource

	// Unit is set when Wanted: some member has to have it.
	Wanted bool
	Unit   policy.Unit
	// Rendered is the unit in the dataplane's terms, Refused what could not be expressed.
	Rendered []enforcer.Rendered
	Refused  []policy.Refusal
	// Leaves says what a dataplane leaves open whatever is said.
	Leaves []string
	// Retained is the unit in the terms of dataplanes that its class does not name any more and that still close a member.
	Retained []enforcer.Rendered
	// waiting says where Enforce waits.
	waiting waiting
	// sources caches unmatched.
	sources *string
	// Stays are the kinds of which nothing could be rendered though the class asks for it: what is there stays.
	Stays []federation.Kind
	// Lacking says of members, by enforcer, why they enforce nothing of what they are given.
	Lacking map[v1alpha1.EnforcerName]map[string]string
	// Groups are those that the unit refers to, and those that its rules select though they have to go.
	Groups []externalgroup.Object
	// Subjects are the external ones whose groups the unit refers to.
	Subjects []string
	// Open is the unit without rules in Audit, by object name: what a resource gets on its way to Observe, and a wildcard
	// after its last statement.
	Open map[string]enforcer.Rendered
	// Existing are the Federated objects about the resource.
	Existing []*federation.Object
	// Placement are the members that the class names, sorted.
	Placement []string
	// Clusters are the registered members.
	Clusters []federation.Cluster
	// Problem keeps the unit from being written.
	Problem *statuscache.Problem

	// Observe tells what a member has.
	Observe func(cluster, object string) federation.Observation
	// Members tells what was found in the members themselves.
	Members Members
	// Opened names a policy that is not ACP's and opens the pods with a label for a dataplane in a member; "": there is none.
	Opened func(dataplane v1alpha1.EnforcerName, cluster, key, value string) string
	// Unjudged says why nobody knows whether a policy that is not ACP's opens something for a dataplane in a member; "": it is known.
	Unjudged func(dataplane v1alpha1.EnforcerName, cluster string) string
	// Mark is that of a downgrade in a member, as it was read there; nil: none was.
	Mark func(cluster string) *guard.Downgrade
	// ObserveGroup tells what a member has of a group.
	ObserveGroup func(cluster, object string) federation.Observation
	// Revision computes the revision of a spec.
	Revision func(map[string]any) string
	// Before is the last report, if any. Told is what statuses say, for the time before it.
	Before statuscache.Report
	Told   [][]v1alpha1.ClusterState

	// names caches listed.
	names *[]string
	// memory caches before, by member.
	memory map[string]v1alpha1.ClusterState
}

// wildcard tells that the unit is one of a wildcard. It never closes anything, nobody onboards it, and it goes with its
// last statement.
func (f *facts) wildcard() bool { return strings.HasSuffix(f.Resource, "*") }

// released tells that every ProtectedResource of the name, if there is any, asks for nothing.
func (f *facts) released() bool {
	return !slices.ContainsFunc(f.Objects, func(o *v1alpha1.ProtectedResource) bool { return asks(o) })
}

// asks tells whether the object asks for protection in some member. A temporary audit does not change that.
func asks(o *v1alpha1.ProtectedResource) bool {
	return o.Spec.Mode != v1alpha1.ModeObserve ||
		slices.ContainsFunc(o.Spec.ClusterModes, func(m v1alpha1.ClusterMode) bool { return m.Mode != v1alpha1.ModeObserve })
}

// downgraded says that somebody opened a member by hand; "": nobody did.
func (f *facts) downgraded(cluster string) string {
	var mark *guard.Downgrade
	if f.Mark != nil {
		mark = f.Mark(cluster)
	}
	for i := range f.Clusters {
		if c := &f.Clusters[i]; mark == nil && c.Name == cluster {
			mark = c.Downgrade
		}
	}
	if mark == nil {
		return ""
	}
	return fmt.Sprintf("member %s is %s: it lets everything through and gets no changes until kubectl acp resume", cluster, mark)
}

// held tells whether KubeFed is kept from a member, or will be.
func (f *facts) held(cluster string) bool {
	return f.quarantined(cluster) != "" || f.downgraded(cluster) != ""
}

// quarantined says why KubeFed is kept from a member that was not downgraded; "": it is not.
func (f *facts) quarantined(cluster string) string {
	for i := range f.Clusters {
		if c := &f.Clusters[i]; c.Name == cluster && c.Held && c.Downgrade == nil {
			return fmt.Sprintf("member %s is quarantined and gets no changes: %s; it comes back by itself when that is mended", cluster, c.Why)
		}
	}
	return ""
}

// placeable are the targets that an object can be placed in now: a held member stays where it is, in or out.
func (f *facts) placeable(e *federation.Object, targets []string) []string {
	return slices.DeleteFunc(slices.Clone(targets), func(c string) bool {
		return f.held(c) && (e == nil || !slices.Contains(e.Placement, c))
	})
}

// mode is the effective mode in a member; "" is the base mode. A wildcard has none.
func (f *facts) mode(cluster string) v1alpha1.Mode {
	if f.wildcard() {
		return ""
	}
	return f.View.EffectiveMode(f.Resource, cluster, f.Now)
}

// targets are the placed members in which the resource is in Audit or Enforce; of a wildcard, all of them.
func (f *facts) targets() []string {
	if f.wildcard() {
		return f.Placement
	}
	return slices.DeleteFunc(slices.Clone(f.Placement), func(c string) bool { return f.mode(c) == v1alpha1.ModeObserve })
}

// firstGroups tells that the unit refers to a group that it did not refer to when it was last reported.
func (f *facts) firstGroups() bool {
	return slices.ContainsFunc(f.Groups, func(g externalgroup.Object) bool { return !slices.Contains(f.Before.Groups, g.Name) })
}

// foldWildcards minds that only Cilium has objects for wildcards: others fold what they allow into the units of the resources
// that they cover, whose objects hold these statements, too.
func (f *facts) foldWildcards() {
	if !f.Wanted {
		return
	}
	if f.wildcard() {
		f.Wanted = f.enforcedBy(v1alpha1.EnforcerCilium)
		return
	}
	from := slices.Clone(f.Unit.From)
	for i := range f.Unit.Statements {
		if ref := f.Unit.Statements[i].Ref; !slices.Contains(from, ref) {
			from = append(from, ref)
		}
	}
	slices.SortFunc(from, func(a, b policy.Ref) int {
		return cmp.Or(strings.Compare(a.Policy, b.Policy), strings.Compare(a.SID, b.SID))
	})
	f.Unit.From = from
}

// enforcedBy tells whether the unit's class names an enforcer.
func (f *facts) enforcedBy(name v1alpha1.EnforcerName) bool {
	return slices.Contains(f.Unit.Enforcers, name) || len(f.Unit.Enforcers) == 0 && name == v1alpha1.EnforcerCilium
}

// kinds of the enforcers' objects; all are written by one rule.
var kinds = map[v1alpha1.EnforcerName]federation.Kind{v1alpha1.EnforcerCilium: federation.CiliumPolicy, v1alpha1.EnforcerIstio: federation.IstioPolicy}

func kindOf(name v1alpha1.EnforcerName) federation.Kind { return kinds[name] }

// renderedKind is the kind that carries a rendered object.
func renderedKind(r *enforcer.Rendered) federation.Kind {
	for _, k := range kinds {
		if k.Target.Kind == r.Object.Kind {
			return k
		}
	}
	return federation.CiliumPolicy
}

func renderedKey(r *enforcer.Rendered) string { return renderedKind(r).Key(r.Object.Name) }

// objectKeys are what the unit's objects, or the first of each kind, are found by.
func objectKeys(resource string) []string {
	name := objectName(resource)
	return []string{federation.CiliumPolicy.Key(name), federation.IstioPolicy.Key(name)}
}

// objectName is what the unit's object, or the first of them, is called in the host and in the members.
func objectName(resource string) string { return v1alpha1.ObjectPrefix + policy.UnitID(resource) }
