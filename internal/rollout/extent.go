package rollout

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/acp-io/acp/api/v1alpha1"
)

// Scope of a downgrade: one class, or everything.
type Scope struct{ Class string }

const (
	scopeAll   = "all"
	scopeClass = "class/"
)

// String is the scope as objects have it.
func (s Scope) String() string {
	if s.Class == "" {
		return scopeAll
	}
	return scopeClass + s.Class
}

// ParseScope reads what objects have; false: the temporary audit is of the resource alone.
func ParseScope(text string) (Scope, bool) {
	if class, ok := strings.CutPrefix(text, scopeClass); ok && class != "" {
		return Scope{class}, true
	}
	return Scope{}, text == scopeAll
}

// Has tells whether resources of a class are in the scope.
func (s Scope) Has(class string) bool { return s.Class == "" || s.Class == class }

const (
	// writesPerSecond is how many objects KubeFed writes into each member in a second (its client's default limit).
	writesPerSecond = 20
)

// Extent is what a downgrade would open, and what is open by one.
type Extent struct {
	Resources int // onboarded
	// Enforced are those that some member enforces, or would but for a temporary audit; Open those of them that a temporary
	// audit opens now.
	Enforced, Open int
	// Members that enforce one of them now, sorted.
	Members []string
	// Seconds until KubeFed has written the last one.
	Seconds float64
	Classes []ClassExtent
	Active  []Downgrade
}

// ClassExtent is that of one class; without name: resources that no class covers.
type ClassExtent struct {
	Name           string
	Enforced, Open int
}

// Downgrade are the resources in a scope that have the same temporary audit.
type Downgrade struct {
	Scope      Scope
	Until      time.Time
	Reason, By string
	Resources  int
	// Effective are those of which no member was last seen to enforce.
	Effective int
}

// ExtentOf a downgrade of a scope. Classes and Active are of the whole, whatever the scope.
func ExtentOf(objects []*v1alpha1.ProtectedResource, classOf func(resource string) string, scope Scope, now time.Time) Extent {
	var out Extent
	perMember := map[string]int{}
	classes := map[string]*ClassExtent{}
	active := map[Downgrade]*Downgrade{}
	for _, o := range objects {
		class := classOf(string(o.Spec.Resource))
		enforces, open := Enforces(o.Spec), Active(o.Spec, now)
		c := classes[class]
		if c == nil {
			c = &ClassExtent{Name: class}
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
		for m := range o.Status.All() {
			if m.Mode == v1alpha1.ModeEnforce {
				perMember[string(m.Name)]++
			}
		}
	}
	most := 0
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
	slices.SortFunc(out.Active, func(a, b Downgrade) int {
		return cmp.Or(a.Until.Compare(b.Until), cmp.Compare(a.Scope.String(), b.Scope.String()), cmp.Compare(a.Reason, b.Reason), cmp.Compare(a.By, b.By))
	})
	return out
}

func countActive(active map[Downgrade]*Downgrade, o *v1alpha1.ProtectedResource) {
	audit := o.Spec.TemporaryAudit
	scope, ok := ParseScope(audit.Scope)
	if !ok {
		return
	}
	key := Downgrade{Scope: scope, Until: audit.Until.UTC(), Reason: audit.Reason, By: audit.By}
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

// opened reports whether every member was read back without Enforce. A list that lacks members does not show it.
func opened(s *v1alpha1.ProtectedResourceStatus) bool {
	for c := range s.All() {
		if c.Mode == v1alpha1.ModeEnforce || c.ObservedRevision != c.DesiredRevision {
			return false
		}
	}
	return s.Unlisted() == 0
}
