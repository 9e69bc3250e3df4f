package policy

import (
	"net/netip"
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/acp-io/acp/api/v1alpha1"
)

func FuzzDecide(f *testing.F) {
	f.Add(app888, "redis:connect", bobs, "Deny", app888, bobs, "10.5.0.9", uint16(6379), "GET", "/", int64(0))
	f.Add("*", "redis:*", allRedis, "Allow", "", "", "::1", uint16(0), "", "", int64(1))
	f.Add(cidrHead+"10.0.0.0/8", ":", "x:*", "", "*", "*", "fe80::1%eth0", uint16(65535), "(", "[", int64(-1))
	f.Fuzz(func(t *testing.T, subject, action, resource, effect, who, where, addr string, portNumber uint16, method, path string, skew int64) {
		start := metav1.NewTime(noon.Add(time.Duration(skew)))
		st := v1alpha1.Statement{SID: subject, Effect: Effect(effect), NotBefore: &start, Subjects: []v1alpha1.Subject{v1alpha1.Subject(subject)},
			Actions: []v1alpha1.Action{v1alpha1.Action(action)}, Resources: []v1alpha1.ResourceName{v1alpha1.ResourceName(resource)}}
		end := int32(portNumber) - int32(skew)
		in := world(
			acp(resource, st),
			protect(where, v1alpha1.Mode(effect)),
			protect(bobs, v1alpha1.ModeEnforce),
			protect(resource, v1alpha1.ModeAudit),
			workload(who, subject, addr, resource),
			&v1alpha1.ResourceClass{
				ObjectMeta: named("x"),
				Spec: v1alpha1.ResourceClassSpec{
					Pattern:  v1alpha1.NamePattern(where),
					LabelKey: v1alpha1.LabelKey(who),
					Actions: []v1alpha1.ClassAction{
						{Name: action, Ports: []v1alpha1.Port{{Port: int32(skew), EndPort: &end, Protocol: v1alpha1.Protocol(effect)}, port(int32(portNumber))},
							HTTP: []v1alpha1.HTTPMatch{{Method: method, Path: path}}},
					},
				},
			},
			&v1alpha1.SubjectClass{
				ObjectMeta: named("x"),
				Spec:       v1alpha1.SubjectClassSpec{Pattern: v1alpha1.NamePattern(subject), LabelKey: v1alpha1.LabelKey(who)},
			},
		)
		in.Policies, in.Resources, in.Workloads = append(in.Policies, nil), append(in.Resources, nil), append(in.Workloads, nil)
		s := NewSnapshot(in)
		source, _ := netip.ParseAddr(addr)
		d := s.Decide(Query{Subjects: []string{who}, Resources: []string{where, bobs}, Source: source, Cluster: where,
			Protocol: v1alpha1.ProtocolTCP, Port: portNumber, Method: method, Path: path, At: noon})
		if !slices.Contains([]Verdict{Allowed, Denied, DefaultDenied, Audited}, d.Verdict) {
			t.Fatalf("a decision about an enforced resource is %q", d.Verdict)
		}
		for _, u := range s.Compile(noon) {
			for _, r := range u.Rules {
				if !r.HasPeers() || len(r.Ports) == 0 || len(r.From) == 0 {
					t.Fatalf("a rule that would match more than it says: %+v", r)
				}
			}
		}
		for _, g := range s.ExternalGroups() {
			if g.ID == "" || g.ClassID == "" {
				t.Fatalf("a group without name: %+v", g)
			}
		}
		s.Analyze(noon)
		less := in
		less.Policies = nil
		Compare(s, s.Next(less), noon)
		ChangedUnits(s, NewSnapshot(less))
		s.ChangedUnitsBetween(noon, noon.Add(time.Hour))
		s.WhoCanReach(where, noon)
		s.WhatCanReach(who, noon)
		s.NextChange(noon)
		s.SubjectOfAddress(source)
		s.ActionsOn(where, v1alpha1.Protocol(effect), portNumber)
		s.SubjectsOf(map[string]string{who: where})
		s.ResourcesOf(map[string]string{who: where})
	})
}
