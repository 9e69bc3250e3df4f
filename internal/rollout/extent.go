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

// Scope is the scope of a downgrade: one class, or everything.
type Scope struct{ Class string }

const (
	scopeAll   = "all"
	scopeClass = "class/"
)

// String returns the scope in the form that objects store.
func (s Scope) String() string {
	if s.Class == "" {
		return scopeAll
	}
	return scopeClass + s.Class
}

// ParseScope parses the form that objects store; false if the temporary audit is of the resource alone.
func ParseScope(text string) (Scope, bool) {
	if class, ok := strings.CutPrefix(text, scopeClass); ok && class != "" {
		return Scope{class}, true
	}
	return Scope{}, text == scopeAll
}

// Has reports whether resources of a class are in the scope.
func (s Scope) Has(class string) bool { return s.Class == "" || s.Class == class }

const (
	// writesPerSecond is the number of objects that KubeFed writes into each member per second (the default limit of
	// its client).
	writesPerSecond = 20
)

// Extent describes what a downgrade would open, and what one has opened.
type Extent struct {
	Resources int // onboarded
	// Enforced is the number of resources that a member enforces, or would without a temporary audit. Open is the
	// number of those that a temporary audit opens now.
	Enforced, Open int
	// Members are those that enforce one of them now, sorted.
	Members []string
	// Seconds is the time until KubeFed has written the last object.
	Seconds float64
	Classes []ClassExtent
	Active  []Downgrade
}

// ClassExtent is the extent of one class; without a name, of resources that no class covers.
type ClassExtent struct {
	Name           string
	Enforced, Open int
}

// Downgrade describes the resources in a scope that have the same temporary audit.
type Downgrade struct {
	Scope      Scope
	Until      time.Time
	Reason, By string
	Resources  int
	// Effective is the number of resources that no member was last seen to enforce.
	Effective int
}

// ExtentOf returns the extent of a downgrade of a scope. Classes and Active cover everything, regardless of the scope.
func ExtentOf(objects []*v1alpha1.ProtectedResource, classOf func(resource string) string, scope Scope, now time.Time) Extent {
	var out Extent
	var enforcing membertally.Tally
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

// opened reports whether every member was read back without Enforce. A list that lacks members does not show this.
func opened(s *v1alpha1.ProtectedResourceStatus) bool {
	for c := range s.Alike() {
		if c.Mode == v1alpha1.ModeEnforce || c.ObservedRevision != c.DesiredRevision {
			return false
		}
	}
	return s.Unlisted() == 0
}
