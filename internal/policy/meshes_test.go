package policy

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/acp-io/acp/api/v1alpha1"
)

func TestSeveral(t *testing.T) {
	for _, c := range []struct {
		reason string
		meshes []string
		want   bool
	}{
		{"no member", nil, false},
		{"one that is in no mesh", []string{v1alpha1.NoMesh}, false},
		{"two that declare nothing", []string{"", ""}, false},
		{"two in no mesh", []string{v1alpha1.NoMesh, v1alpha1.NoMesh}, true},
		{"two in one", []string{"east", "east"}, false},
		{"three in two", []string{"east", "west", "east"}, true},
		{"one that declares nothing", []string{"east", ""}, true},
	} {
		var m Meshes
		for i, mesh := range c.meshes {
			m.Members = append(m.Members, MeshMember{Name: string(rune('a' + i)), Mesh: mesh})
		}
		if got := m.HasSeveral(); got != c.want {
			t.Errorf("%s: %v", c.reason, got)
		}
	}
}

// e1 and e2 are in one mesh, w1 in another, and n1 in none.
func TestApart(t *testing.T) {
	ref := Ref{Policy: "p", SID: "s"}
	ports := []v1alpha1.Port{{Port: 6379, Protocol: v1alpha1.ProtocolTCP}}
	for _, c := range []struct {
		reason string
		effect Effect
		// pods are the members with pods of the subject, and unread those that were not read.
		pods, unread, audited []string
		addressed, class      bool
		// refused: the statement is. noted: something is said of it. denied are the members that deny all addresses.
		refused, noted bool
		denied         []string
	}{
		{reason: "an allow, and its pods are in every mesh", effect: Allow, pods: []string{"e2", "w1", "n1"}},
		{reason: "they are nowhere", effect: Allow},
		{reason: "they are in the meshes of some members", effect: Allow, pods: []string{"e2"}, noted: true},
		{reason: "they are where the resource is not", effect: Allow, pods: []string{"x1"}, refused: true},
		{reason: "they are, and have addresses", effect: Allow, pods: []string{"x1"}, addressed: true},
		{reason: "it is not known where they are", effect: Allow, unread: []string{"w1", "e2", "n1", "e1"}},
		{reason: "a whole class, of which some are elsewhere", effect: Allow, pods: []string{"x1"}, class: true},
		{reason: "a deny, and its pods are in one of the meshes", effect: Deny, pods: []string{"e2"}, noted: true, denied: []string{"n1", "w1"}},
		{reason: "its pods are nowhere", effect: Deny},
		{reason: "they are in two", effect: Deny, pods: []string{"e2", "w1"}, noted: true, denied: []string{"e1", "n1", "w1"}},
		{reason: "they have addresses", effect: Deny, pods: []string{"w1"}, addressed: true},
		{reason: "a member that was not read may have them", effect: Deny, unread: []string{"w1"}, noted: true, denied: []string{"e1", "n1"}},
		{reason: "a member in Audit denies nothing", effect: Deny, pods: []string{"w1"}, audited: []string{"n1"}, noted: true, denied: []string{"e1"}},
		{reason: "a deny of a whole class", effect: Deny, pods: []string{"w1"}, class: true, noted: true, denied: []string{"e1", "n1"}},
	} {
		t.Run(c.reason, func(t *testing.T) {
			in := func(list []string, name string) bool {
				return strings.Contains(" "+strings.Join(list, " ")+" ", " "+name+" ")
			}
			m := Meshes{
				Members: []MeshMember{
					{Name: "e1", Mesh: "east"},
					{Name: "e2", Mesh: "east"},
					{Name: "w1", Mesh: "west"},
					{Name: "n1", Mesh: v1alpha1.NoMesh},
					{Name: "x1", Mesh: v1alpha1.NoMesh},
				},
				Has: func(cluster, _, _ string) (bool, bool) {
					return in(c.pods, cluster), !in(c.unread, cluster)
				},
			}
			st := UnitStatement{Ref: ref, Effect: c.effect, Actions: []UnitAction{{Name: "redis:connect", Ports: ports}}}
			client := Client{Name: "app/888", Key: "app", Value: "888", Addressed: c.addressed}
			if c.class {
				st.Patterns, client.Value = []string{"app/*"}, ""
			} else {
				st.Subjects = []UnitSubject{{Name: "app/888"}}
			}
			targets := []string{"e1", "n1", "w1"}
			everyone := UnitStatement{Ref: Ref{Policy: "p", SID: "everyone"}, Effect: Allow, Anyone: true, Actions: st.Actions}
			got := m.CrossMeshLimits(
				&Unit{Resource: "r", Statements: []UnitStatement{st, everyone}},
				targets,
				func(cluster string) bool { return !in(c.audited, cluster) },
				func(string) (Client, bool) { return client, true },
			)
			var denied []string
			for _, target := range targets {
				if d, ok := got.Denied[target]; ok {
					denied = append(denied, target)
					if diff := cmp.Diff(ports, d); diff != "" {
						t.Error(diff)
					}
				}
			}
			if d := cmp.Diff(c.denied, denied, cmpopts.EquateEmpty()); d != "" {
				t.Errorf("denied: %s", d)
			}
			refused := map[string]bool{}
			for _, in := range got.RefusedIn {
				for _, r := range in {
					refused[r.Ref.SID] = true
				}
			}
			// An allow of addresses has no effect where all addresses are denied.
			if refused["s"] != c.refused || refused["everyone"] != (len(c.denied) > 0) || (len(got.Notes) > 0) != c.noted {
				t.Errorf("refused %v, noted %v", got.RefusedIn, got.Notes)
			}
		})
	}
}
