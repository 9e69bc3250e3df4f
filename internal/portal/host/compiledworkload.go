package host

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/approval"
	"github.com/acp-io/acp/internal/enforcer/registry"
	"github.com/acp-io/acp/internal/policy"
)

// WorkloadLines returns the lines of the registration of a client outside the fleet: its addresses, the access of its application, and
// what the addresses may connect to in the members, as if each resource were in Enforce and no other client had addresses or access.
// base is the snapshot of the input. Other registrations do not affect the lines; grants to the application, classes and properties of
// members do.
func WorkloadLines(base *policy.Snapshot, in policy.Input, it approval.Item, at time.Time) ([]string, error) {
	var spec v1alpha1.ExternalWorkloadSpec
	if err := json.Unmarshal(it.Change.After, &spec); err != nil {
		return nil, fmt.Errorf("read the addresses of %s: %w", it.Change.Name, err)
	}
	subject := string(spec.Subject)
	access := accessOf(base, subject, at)
	alone := policy.Objects{ResourceClasses: in.ResourceClasses, SubjectClasses: in.SubjectClasses,
		Workloads: []*v1alpha1.ExternalWorkload{{ObjectMeta: metav1.ObjectMeta{Name: it.Change.Name}, Spec: spec}}}
	all := &v1alpha1.AccessControlPolicy{ObjectMeta: metav1.ObjectMeta{Name: "shown"}}
	found := map[string]bool{}
	for i, resource := range slices.Sorted(maps.Keys(access)) {
		s := v1alpha1.Statement{
			SID:       fmt.Sprintf("shown-%d", i),
			Effect:    v1alpha1.EffectAllow,
			Subjects:  []v1alpha1.Subject{v1alpha1.Subject(subject)},
			Resources: []v1alpha1.ResourceName{v1alpha1.ResourceName(resource)},
		}
		for _, a := range slices.Sorted(maps.Keys(access[resource])) {
			s.Actions = append(s.Actions, v1alpha1.Action(a))
			found[fmt.Sprintf(approval.LineAllow+"workloads outside the fleet of %s: %s on %s", subject, a, resource)] = true
		}
		all.Spec.Statements = append(all.Spec.Statements, s)
		if !strings.HasSuffix(resource, "*") {
			alone.Resources = append(alone.Resources, &v1alpha1.ProtectedResource{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("shown-%d", i)},
				Spec: v1alpha1.ProtectedResourceSpec{Resource: v1alpha1.ResourceName(resource), Mode: v1alpha1.ModeEnforce}})
		}
	}
	if len(all.Spec.Statements) > 0 {
		alone.Policies = []*v1alpha1.AccessControlPolicy{all}
	}
	s := policy.NewSnapshot(policy.NewInput(alone, in.Fleet()))
	for _, g := range s.ExternalGroups() {
		for _, p := range g.Prefixes {
			found["workloads outside the fleet of "+g.Subject+": "+p.String()] = true
		}
	}
	for _, u := range s.Compile(at) {
		l := unitLines{u: &u, outside: subject}
		for _, r := range append(u.Refused, registry.Refused(s, &u, s.Targets(&u), at)...) {
			found[approval.LineRefused+r.Message.Text] = true
		}
		for _, line := range l.access() {
			found[line] = true
		}
		for _, line := range placementLines(u) { // each of several resources may be placed in other members
			found["allow connections to "+l.target()+" "+line] = true
		}
	}
	return bounded(slices.Sorted(maps.Keys(found))), nil
}

// accessOf returns the actions of a subject by the allows that have not ended, by resource as written.
func accessOf(s *policy.Snapshot, subject string, at time.Time) map[string]map[string]bool {
	out := map[string]map[string]bool{}
	for _, g := range s.WhatCanReach(subject, at) {
		if g.Effect != policy.Allow || g.Subject == anyone {
			continue
		}
		if out[g.Resource] == nil {
			out[g.Resource] = map[string]bool{}
		}
		for _, a := range g.Actions {
			out[g.Resource][a] = true
		}
	}
	return out
}

// anyone is the subject of statements about every source.
const anyone = "*"

// bounded returns the first lines, and one line with the digest of the others.
func bounded(lines []string) []string {
	if len(lines) <= mostLines {
		return lines
	}
	sum := sha256.Sum256([]byte(strings.Join(lines[mostLines:], "\n")))
	return append(lines[:mostLines:mostLines], fmt.Sprintf("and %d more: %s", len(lines)-mostLines, hex.EncodeToString(sum[:])))
}
