package preflight

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metadatafake "k8s.io/client-go/metadata/fake"

	"github.com/acp-io/acp/internal/federation"
)

// TestListAgentPods checks which pods are agents, and which of them were made of an earlier template.
func TestListAgentPods(t *testing.T) {
	pod := func(namespace, name, app, template string, created int) *metav1.PartialObjectMetadata {
		return &metav1.PartialObjectMetadata{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"}, ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: name, Labels: map[string]string{"k8s-app": app, labelTemplateGeneration: template}, CreationTimestamp: at(created)}}
	}
	scheme := metadatafake.NewTestScheme()
	if err := metav1.AddMetaToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	deleted := pod("kube-system", "f", "cilium", "1", -1)
	deleted.DeletionTimestamp = new(at(0))
	pods := metadatafake.NewSimpleMetadataClient(scheme, pod("kube-system", "b", "cilium", "1", -5), pod("kube-system", "a", "cilium", "1", -10),
		pod("kube-system", "c", "cilium", "2", 5), pod("kube-system", "d", "envoy", "1", -2), pod("other", "e", "cilium", "1", -1), deleted)
	agents := &appsv1.DaemonSet{Spec: appsv1.DaemonSetSpec{Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"k8s-app": "cilium"}}}}
	for generation, template := range map[string]time.Time{"": {}, "1": at(5).Time, "2": at(-5).Time} {
		agents.Annotations = map[string]string{templateGeneration: generation}
		got := listAgentPods(t.Context(), pods, agents, federation.DefaultLocations())
		if want := []time.Time{at(-10).Time, at(-5).Time, at(5).Time}; !got.Unread.IsZero() || !slices.EqualFunc(got.Created, want, time.Time.Equal) {
			t.Errorf("%v, %q, want %v", got.Created, got.Unread, want)
		}
		if !got.Template.Equal(template) {
			t.Errorf("template %q: the newest earlier pod is of %s, want %s", generation, got.Template, template)
		}
	}
}

// TestChangedAt checks which agents are older than a change of the ConfigMap or of the template.
func TestChangedAt(t *testing.T) {
	for _, c := range []struct {
		reason   string
		changed  int
		template *metav1.Time
		want     int
	}{
		{"all are newer", -20, nil, 0},
		{"one is older", -7, nil, 1},
		{"two are older", 0, nil, 2},
		{"one started at that time", 5, nil, 2},
		{"all are older", 10, nil, 3},
		{"an earlier template", -20, new(at(-5)), 2},
		{"an earlier template, and a later change", 10, new(at(-5)), 3},
	} {
		x := Cilium{Pods: AgentPods{Created: []time.Time{at(-10).Time, at(-5).Time, at(5).Time}}}
		if c.template != nil {
			x.Pods.Template = c.template.Time
		}
		if x.ChangedAt(at(c.changed).Time); x.Outdated.Agents != c.want || x.Outdated.Known {
			t.Errorf("%s: %+v, want %d", c.reason, x.Outdated, c.want)
		}
	}
}

// TestAfter checks which earlier settings count, and whether all of them are known.
func TestAfter(t *testing.T) {
	source := func(where, value string) Source {
		return Source{Where: where, Settings: map[string]string{"policy-audit-mode": value}, Base: where == "map"}
	}
	old := func(s Source) Source { s.Earlier = true; return s }
	made := func(changed int, created []int, sources ...Source) Cilium {
		c := Cilium{Sources: sources}
		for _, minute := range created {
			c.Pods.Created = append(c.Pods.Created, at(minute).Time)
		}
		c.ChangedAt(at(changed).Time)
		return c
	}
	known := func(c Cilium) Cilium { c.Outdated.Known = true; return c }
	agents, audited, enforced := []int{-20, -10}, source("map", "true"), source("map", "false")
	var many []Source
	for i := range maxEarlier + 1 {
		many = append(many, old(source(fmt.Sprint("node", i), "true")))
	}
	for _, c := range []struct {
		reason      string
		before, now Cilium
		want        []Source
		older       int
		known       bool
	}{
		{"no agent is older", made(-30, agents, audited), made(-30, agents, audited), []Source{audited}, 0, false},
		{"the ConfigMap was changed", made(-30, agents, audited), made(5, agents, enforced),
			[]Source{enforced, old(audited)}, 2, true},
		{"only its annotations were", made(-30, agents, audited), made(5, agents, audited), []Source{audited}, 2, true},
		{"a CiliumNodeConfig was deleted", made(-30, agents, enforced, source("node", "true")), made(-30, agents, enforced),
			[]Source{enforced, old(source("node", "true"))}, 2, true},
		{"and was before, and one agent restarted since", known(made(0, agents, enforced, old(source("node", "true")))),
			made(-30, []int{-10, 3}, enforced), []Source{enforced, old(source("node", "true"))}, 1, true},
		{"all agents restarted since", known(made(0, agents, enforced, old(source("node", "true")))),
			made(-30, []int{2, 3}, enforced), []Source{enforced}, 0, false},
		{"an agent started after the earlier read, and a change followed", made(-30, agents, audited), made(8, []int{-10, 6}, enforced),
			[]Source{enforced, old(audited)}, 2, false},
		{"the earlier settings were not known", made(-5, agents, audited), made(5, agents, enforced),
			[]Source{enforced, old(audited)}, 2, false},
		{"too many", known(made(0, agents, append([]Source{audited}, many...)...)), made(0, agents, audited),
			append([]Source{audited}, many[:maxEarlier]...), 2, false},
	} {
		got := c.now.After(c.before, at(4).Time)
		if d := cmp.Diff(c.want, got.Sources); d != "" || got.Outdated.Agents != c.older || got.Outdated.Known != c.known {
			t.Errorf("%s: %d agents, known %v, %s", c.reason, got.Outdated.Agents, got.Outdated.Known, d)
		}
	}
}

// TestConfigChange checks that the creation of a ConfigMap by the installation of the agents is no change of it.
func TestConfigChange(t *testing.T) {
	for _, c := range []struct {
		reason           string
		created, written int // minutes after the DaemonSet was created
		want             bool
	}{
		{"created before the agents", -1, -1, true},
		{"created at the same time", 0, 0, false},
		{"created soon after them", 1, 1, false},
		{"changed after that", 1, 2, true},
		{"created again much later", 60, 60, true},
	} {
		config := &metav1.ObjectMeta{CreationTimestamp: at(c.created), ManagedFields: []metav1.ManagedFieldsEntry{{Time: new(at(c.written))}}}
		got := configChange(config, &metav1.ObjectMeta{CreationTimestamp: at(0)})
		if got.IsZero() == c.want || c.want && !got.Equal(at(c.written).Time) {
			t.Errorf("%s: %s", c.reason, got)
		}
	}
}

// at returns the time some minutes after noon.
func at(minutes int) metav1.Time {
	return metav1.Time{Time: time.Date(2026, 11, 26, 12, minutes, 0, 0, time.UTC)}
}
