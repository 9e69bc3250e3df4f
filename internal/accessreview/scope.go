package accessreview

import (
	"slices"
	"time"

	"github.com/acp-io/acp/internal/approval"
	"github.com/acp-io/acp/internal/catalog"
)

// includes reports whether a scope selects an access: by one of its resources, which has to have one of the classes and one of the sensitivities, and
// which one of the teams has to own unless they own an application of the access. classOf returns the class of a name, or of a prefix of names.
func (s Scope) includes(a access, classOf func(string) string, g approval.StandingGrant, now time.Time) bool {
	if g.Since.After(now.Add(-s.OlderThan)) {
		return false
	}
	byApplication := len(s.Teams) == 0
	if !byApplication {
		for e := range a.applications() {
			if byApplication = s.ofTeam(e); byApplication {
				break
			}
		}
	}
	selects := func(name string, e catalog.Entity) bool {
		return (byApplication || s.ofTeam(e)) && (len(s.Classes) == 0 || slices.Contains(s.Classes, classOf(name))) &&
			(len(s.Sensitivities) == 0 || slices.Contains(s.Sensitivities, e.Sensitivity))
	}
	if a.statement == nil {
		return selects(g.ResourceName, a.resource)
	}
	// Names that cover nothing in the catalog have a class as well.
	if slices.ContainsFunc(a.statement.Resources, func(name string) bool { return selects(name, catalog.Entity{}) }) {
		return true
	}
	for e := range a.resources() {
		if selects(e.Name, e) {
			return true
		}
	}
	return false
}

// ofTeam reports whether one of the teams owns an application or a resource.
func (s Scope) ofTeam(e catalog.Entity) bool {
	return slices.ContainsFunc(e.Owners, func(o catalog.Owner) bool { return o.Kind == catalog.OwnerGroup && slices.Contains(s.Teams, o.ID) })
}

// classes returns the classes of the resources of an access, each once; none if no class covers them.
func (a access) classes(classOf func(string) string, g approval.StandingGrant) []string {
	names := []string{g.ResourceName}
	if a.statement != nil {
		names = a.statement.Resources
	}
	var out []string
	for _, name := range names {
		if class := classOf(name); class != "" && !slices.Contains(out, class) {
			out = append(out, class)
		}
	}
	return out
}

// sensitivity returns the highest sensitivity of the resources of an access; empty if the catalog has none of them.
func (a access) sensitivity() catalog.Sensitivity {
	var out catalog.Sensitivity
	for e := range a.resources() {
		if out = higher(out, e.Sensitivity); out == catalog.SensitivityHigh {
			break
		}
	}
	return out
}

// higher returns the higher one of two sensitivities.
func higher(a, b catalog.Sensitivity) catalog.Sensitivity {
	order := []catalog.Sensitivity{catalog.SensitivityLow, catalog.SensitivityMedium, catalog.SensitivityHigh}
	if slices.Index(order, b) > slices.Index(order, a) {
		return b
	}
	return a
}
