package dataplane

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/federation"
	"github.com/acp-io/acp/internal/policy"
)

func TestSeveral(t *testing.T) {
	for _, c := range []struct {
		reason string
		meshes []string
		want   bool
	}{
		{"no member", nil, false},
		{"one that is in no mesh", []string{federation.NoMesh}, false},
		{"two that declare nothing", []string{"", ""}, false},
		{"two in no mesh", []string{federation.NoMesh, federation.NoMesh}, true},
		{"two in one", []string{"east", "east"}, false},
		{"three in two", []string{"east", "west", "east"}, true},
		{"one that declares nothing", []string{"east", ""}, true},
	} {
		var clusters []federation.Cluster
		for i, m := range c.meshes {
			clusters = append(clusters, federation.Cluster{Name: string(rune('a' + i)), Mesh: m})
		}
		if got := Several(clusters); got != c.want {
			t.Errorf("%s: %v", c.reason, got)
		}
	}
}

// e1 and e2 are in one mesh, w1 in another, and n1 in none.
func TestApart(t *testing.T) {
	label := federation.Label{Key: "app", Value: "888"}
	ref := policy.Ref{Policy: "p", SID: "s"}
	ports := []v1alpha1.Port{{Port: 6379, Protocol: v1alpha1.ProtocolTCP}}
	for _, c := range []struct {
		reason string
		effect policy.Effect
		// pods are the members with pods of the subject, and unread those that nobody has read.
		pods, unread, audited []string
		addressed, class      bool
		// refused: the statement is. noted: something is said of it. denied are the members that deny all addresses.
		refused, noted bool
		denied         []string
	}{
		{reason: "an allow, and its pods are in every mesh", effect: policy.Allow, pods: []string{"e2", "w1", "n1"}},
		{reason: "they are nowhere", effect: policy.Allow},
		{reason: "they are in the meshes of some members", effect: policy.Allow, pods: []string{"e2"}, noted: true},
		{reason: "they are where the resource is not", effect: policy.Allow, pods: []string{"x1"}, refused: true},
		{reason: "they are, and have addresses", effect: policy.Allow, pods: []string{"x1"}, addressed: true},
		{reason: "it is not known where they are", effect: policy.Allow, unread: []string{"w1", "e2", "n1", "e1"}},
		{reason: "a whole class, of which some are elsewhere", effect: policy.Allow, pods: []string{"x1"}, class: true},
		{reason: "a deny, and its pods are in one of the meshes", effect: policy.Deny, pods: []string{"e2"}, noted: true, denied: []string{"n1", "w1"}},
		{reason: "its pods are nowhere", effect: policy.Deny},
		{reason: "they are in two", effect: policy.Deny, pods: []string{"e2", "w1"}, noted: true, denied: []string{"e1", "n1", "w1"}},
		{reason: "they have addresses", effect: policy.Deny, pods: []string{"w1"}, addressed: true},
		{reason: "a member that was not read may have them", effect: policy.Deny, unread: []string{"w1"}, noted: true, denied: []string{"e1", "n1"}},
		{reason: "a member in Audit denies nothing", effect: policy.Deny, pods: []string{"w1"}, audited: []string{"n1"}, noted: true, denied: []string{"e1"}},
		{reason: "a deny of a whole class", effect: policy.Deny, pods: []string{"w1"}, class: true, noted: true, denied: []string{"e1", "n1"}},
	} {
		t.Run(c.reason, func(t *testing.T) {
			in := func(list []string, name string) bool {
				return strings.Contains(" "+strings.Join(list, " ")+" ", " "+name+" ")
			}
			m := Meshes{Clusters: []federation.Cluster{{Name: "e1", Mesh: "east"}, {Name: "e2", Mesh: "east"}, {Name: "w1", Mesh: "west"}, {Name: "n1", Mesh: federation.NoMesh}, {Name: "x1", Mesh: federation.NoMesh}},
				Has: func(cluster string, _ federation.Label) (bool, bool) {
					return in(c.pods, cluster), !in(c.unread, cluster)
				}}
			st := policy.UnitStatement{Ref: ref, Effect: c.effect, Actions: []policy.UnitAction{{Name: "redis:connect", Ports: ports}}}
			client := Client{Name: "app/888", Label: label, Addressed: c.addressed}
			if c.class {
				st.Patterns, client.Label.Value = []string{"app/*"}, ""
			} else {
				st.Subjects = []policy.UnitSubject{{Name: "app/888"}}
			}
			targets := []string{"e1", "n1", "w1"}
			everyone := policy.UnitStatement{Ref: policy.Ref{Policy: "p", SID: "everyone"}, Effect: policy.Allow, Anyone: true, Actions: st.Actions}
			got := m.Apart(&policy.Unit{Resource: "r", Statements: []policy.UnitStatement{st, everyone}}, targets, func(cluster string) bool { return !in(c.audited, cluster) },
				func(string) (Client, bool) { return client, true })
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
			for _, r := range got.Refused {
				refused[r.Ref.SID] = true
			}
			// An allow of addresses has no effect where all addresses are denied.
			if refused["s"] != c.refused || refused["everyone"] != (len(c.denied) > 0) || (len(got.Notes) > 0) != c.noted {
				t.Errorf("refused %v, noted %v", got.Refused, got.Notes)
			}
		})
	}
}
