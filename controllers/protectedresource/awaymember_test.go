package protectedresource

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/enforcer"
	"github.com/acp-io/acp/internal/federation"
)

// recordedIn returns the specs that a member is to have, by the names of the objects, as JSON.
func (s *scene) recordedIn(member string) map[string]string {
	s.Helper()
	out := map[string]string{}
	for _, e := range s.existing {
		if !slices.Contains(e.Placement, member) {
			continue
		}
		spec := e.SpecIn(member)
		text, err := json.Marshal(spec)
		if err != nil {
			s.Fatal(err)
		}
		if got := e.RevisionIn(member); got != "" && got != enforcer.Revision(spec) {
			s.Errorf("%s has the revision label %s in %s, want %s", e.Meta.Name, got, member, enforcer.Revision(spec))
		}
		out[e.Meta.Name] = string(text)
	}
	return out
}

// TestMemberThatIsAwayDoesNotOpenItsOtherPorts checks that an object which only opened something is not recorded any more for a member that cannot be
// reached, and never had it: the member would get it when it is back.
func TestMemberThatIsAwayDoesNotOpenItsOtherPorts(t *testing.T) {
	const everybody = `"fromEntities":["all"]`
	s := newScene(t, "m1", "m2")
	s.settle()
	s.away, s.other = []string{"m1"}, v1alpha1.OtherPortsAllow
	s.settle()
	name := objectName(sceneResource)
	if !strings.Contains(s.recordedIn("m1")[name+"-other-ports"], everybody) {
		t.Fatalf("the other ports are not open to begin with: %v", s.recordedIn("m1"))
	}
	s.other = v1alpha1.OtherPortsDeny
	s.settle()
	for _, m := range []string{"m1", "m2"} {
		for object, spec := range s.recordedIn(m) {
			if strings.Contains(spec, everybody) {
				t.Errorf("%s opens every other port in %s: %s", object, m, spec)
			}
		}
	}
	if diff := cmp.Diff([]string{"m1", "m2"}, s.closed(federation.CiliumPolicy)); diff != "" {
		t.Errorf("closed: -want +got\n%s", diff)
	}
	if record := s.existing[slices.IndexFunc(s.existing, func(e *federation.Object) bool { return e.Meta.Name != name })]; !record.WasPlacedIn("m1") {
		t.Error("the record does not remember that m1 may have the object")
	}
	s.away = nil
	s.settle()
	if len(s.existing) != 1 {
		t.Errorf("%d objects are recorded, want 1", len(s.existing))
	}
}

// TestSecondPartOfAMemberThatIsAwayAllowsNobody checks that a part which the unit does not need any more closes a member that cannot be reached, and
// does not allow a client there that was revoked meanwhile.
func TestSecondPartOfAMemberThatIsAwayAllowsNobody(t *testing.T) {
	s := newScene(t, "m1", "m2", "m3")
	s.allowed = []string{"1", "2"}
	s.settle()
	first := s.existing[0]
	part := first.PlacedIn([]string{"m1", "m2", "m3"}, []string{"m1", "m2", "m3"})
	part.Meta.Name += "-part-2"
	s.existing = append(s.existing, part)
	name := part.Meta.Name
	s.allowed, s.away = []string{"1"}, []string{"m1"}
	s.odd = map[string]func(*federation.Observation){"m3": func(o *federation.Observation) {
		if o.Object != nil && o.Object.Name == first.Meta.Name {
			o.Object.Invalid = "the agent refuses it"
		}
	}}

	s.settle()
	text := s.recordedIn("m1")[name]
	if strings.Contains(text, `"2"`) || !strings.Contains(text, `"enableDefaultDeny":{"egress":false,"ingress":true}`) {
		t.Errorf("m1 is to have %q, want a spec that closes and lets nobody in", text)
	}
	if _, has := s.recordedIn("m2")[name]; has {
		t.Error("the part stays in m2, where the other object was read back")
	}
	if text := s.recordedIn("m3")[name]; !strings.Contains(text, `"2"`) {
		t.Errorf("m3 is to have %q, want the part as it is, because m3 can be read", text)
	}

	s.away, s.odd = nil, nil
	s.settle()
	if len(s.existing) != 1 {
		t.Errorf("%d objects are recorded, want 1", len(s.existing))
	}
}

// TestMemberThatWasNotReadYetKeepsItsParts checks that nothing changes in a member that has neither answered nor failed, as after a start of the
// adapter.
func TestMemberThatWasNotReadYetKeepsItsParts(t *testing.T) {
	s := newScene(t, "m1", "m2")
	s.settle()
	part := s.existing[0].PlacedIn([]string{"m1", "m2"}, []string{"m1", "m2"})
	part.Meta.Name += "-part-2"
	s.existing = append(s.existing, part)
	before := s.recordedIn("m1")
	s.away = []string{"m1"}
	s.odd = map[string]func(*federation.Observation){"m1": func(o *federation.Observation) { o.Unknown = true }}
	s.settle()
	if diff := cmp.Diff(before, s.recordedIn("m1")); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
}

// TestVersionsOfAMemberThatIsAway checks the same for an object that only some versions of the unit have.
func TestVersionsOfAMemberThatIsAway(t *testing.T) {
	s := newScene(t, "m1", "m2")
	s.other = v1alpha1.OtherPortsAllow
	s.settle()
	s.away = []string{"m1"}
	f := s.facts()
	key := objectName(sceneResource) + "-other-ports"
	f.RenderedIn = map[string][]string{key: {"m2"}}
	i := slices.IndexFunc(f.Rendered, func(r enforcer.Rendered) bool { return renderedKey(&r) == key })
	p := plan{Desired: map[string]map[string]string{}}
	common := map[string]map[string]string{objectName(sceneResource): {"m1": "r", "m2": "r"}}
	if err := p.placePartial(f, i, f.targets(), common); err != nil {
		t.Fatal(err)
	}
	if len(p.Writes) != 1 || !slices.Equal(p.Writes[0].Placement, []string{"m2"}) || !p.Writes[0].WasPlacedIn("m1") {
		t.Errorf("writes %+v, want the object in m2 alone", p.Writes)
	}
}
