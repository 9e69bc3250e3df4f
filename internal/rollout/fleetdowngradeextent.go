package rollout

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/membertally"
)

// FleetDowngradeScope is the set of resources that a fleet downgrade concerns: those of one class, or all, for which Class is empty.
type FleetDowngradeScope struct{ Class string }

const (
	scopeAll   = "all"
	scopeClass = "class/"
)

// String returns the scope in the form that objects store.
func (s FleetDowngradeScope) String() string {
	if s.Class == "" {
		return scopeAll
	}
	return scopeClass + s.Class
}

// ParseFleetDowngradeScope parses the form that objects store; false if the temporary audit is of the resource alone.
func ParseFleetDowngradeScope(text string) (FleetDowngradeScope, bool) {
	if class, ok := strings.CutPrefix(text, scopeClass); ok && class != "" {
		return FleetDowngradeScope{class}, true
	}
	return FleetDowngradeScope{}, text == scopeAll
}

// Has reports whether resources of a class are in the scope.
func (s FleetDowngradeScope) Has(class string) bool { return s.Class == "" || s.Class == class }

// covers reports whether all resources of another scope are in the scope.
func (s FleetDowngradeScope) covers(other FleetDowngradeScope) bool {
	return s.Class == "" || s == other
}

const (
	// writesPerSecond is the number of objects that KubeFed writes into each member per second (the default limit of
	// its client).
	writesPerSecond = 20
)

// FleetDowngradeExtent counts what a fleet downgrade of a scope would open, and what fleet downgrades have opened.
type FleetDowngradeExtent struct {
	Resources int // onboarded
	// Enforced is the number of resources that a member enforces, or would without a temporary audit. Open is the
	// number of those that a temporary audit opens now.
	Enforced, Open int
	// Members contains the members that enforce one of the resources now, sorted.
	Members []string
	// Seconds is the time until KubeFed has written the last object.
	Seconds float64
	Classes []FleetDowngradeClass
	Active  []ActiveFleetDowngrade
}

// FleetDowngradeClass is the extent of a fleet downgrade of one class. With an empty name it is about the resources that no class covers.
type FleetDowngradeClass struct {
	Name           string
	Enforced, Open int
}

// ActiveFleetDowngrade is a fleet downgrade in effect, as it is read from the objects: the resources whose temporary audits have the same scope, end,
// reason and person.
type ActiveFleetDowngrade struct {
	Scope      FleetDowngradeScope
	Until      time.Time
	Reason, By string
	Resources  int
	// Effective is the number of resources that no member was last seen to enforce.
	Effective int
}

// FleetDowngradeExtentOf returns the extent of a fleet downgrade of a scope at an instant. Classes and Active cover all resources, regardless of the
// scope. It is pure.
func FleetDowngradeExtentOf(
	objects []*v1alpha1.ProtectedResource,
	classOf func(resource string) string,
	scope FleetDowngradeScope,
	now time.Time,
) FleetDowngradeExtent {
	var out FleetDowngradeExtent
	var enforcing membertally.Tally
	classes := map[string]*FleetDowngradeClass{}
	active := map[ActiveFleetDowngrade]*ActiveFleetDowngrade{}
	for _, o := range objects {
		class := classOf(string(o.Spec.Resource))
		enforces, open := Enforces(o.Spec), InTemporaryAudit(o.Spec, now)
		c := classes[class]
		if c == nil {
			c = &FleetDowngradeClass{Name: class}
			classes[class] = c
		}
		if enforces {
			c.Enforced++
			if open {
				c.Open++
			}
		}
		if open {
			countActive(active, o)
		}
		if !scope.Has(class) {
			continue
		}
		out.Resources++
		if !enforces {
			continue
		}
		out.Enforced++
		if open {
			out.Open++
			continue
		}
		for m, names := range o.Status.Alike() {
			if m.Mode == v1alpha1.ModeEnforce {
				enforcing.Add(names, 1)
			}
		}
	}
	most, perMember := 0, enforcing.Counts()
	for _, n := range perMember {
		most = max(most, n)
	}
	out.Members = slices.Sorted(maps.Keys(perMember))
	out.Seconds = float64(most) / writesPerSecond
	for _, name := range slices.Sorted(maps.Keys(classes)) {
		out.Classes = append(out.Classes, *classes[name])
	}
	for _, d := range active {
		out.Active = append(out.Active, *d)
	}
	slices.SortFunc(out.Active, func(a, b ActiveFleetDowngrade) int {
		return cmp.Or(a.Until.Compare(b.Until), cmp.Compare(a.Scope.String(), b.Scope.String()), cmp.Compare(a.Reason, b.Reason), cmp.Compare(a.By, b.By))
	})
	return out
}

func countActive(active map[ActiveFleetDowngrade]*ActiveFleetDowngrade, o *v1alpha1.ProtectedResource) {
	audit := o.Spec.TemporaryAudit
	scope, ok := ParseFleetDowngradeScope(audit.Scope)
	if !ok {
		return
	}
	key := ActiveFleetDowngrade{Scope: scope, Until: audit.Until.UTC(), Reason: audit.Reason, By: audit.By}
	d := active[key]
	if d == nil {
		d = new(key)
		active[key] = d
	}
	d.Resources++
	if opened(&o.Status) {
		d.Effective++
	}
}

// opened reports whether every member was read back without Enforce. A list that lacks members does not show this.
func opened(s *v1alpha1.ProtectedResourceStatus) bool {
	for c := range s.Alike() {
		if c.Mode == v1alpha1.ModeEnforce || c.ObservedRevision != c.DesiredRevision {
			return false
		}
	}
	return s.Unlisted() == 0
}
