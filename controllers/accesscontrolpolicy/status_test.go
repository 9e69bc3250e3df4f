package accesscontrolpolicy

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/controllers/statuscache"
	"github.com/acp-io/acp/internal/message"
	"github.com/acp-io/acp/internal/policy"
)

const resource = "trnv1:rsc:trip-com:redis:clusters:bobs"

func states(s ...v1alpha1.MemberState) []v1alpha1.ClusterState {
	var out []v1alpha1.ClusterState
	for i, state := range s {
		out = append(out, v1alpha1.ClusterState{Name: v1alpha1.ClusterName(rune('a' + i)), State: state, DesiredRevision: "r", Propagated: true})
	}
	return out
}

// TestStatusUnits checks which units a status lists, and the reason of its condition Realized.
func TestStatusUnits(t *testing.T) {
	const done, pending = v1alpha1.MemberRealized, v1alpha1.MemberPending
	for _, c := range []struct {
		reason string
		before []v1alpha1.PolicyUnit
		report statuscache.Report
		units  map[string][]string
		// realized is the reason of that condition.
		realized string
	}{
		{"a realized statement", nil,
			statuscache.Report{Wanted: true, SIDs: map[string][]string{"p": {"one"}}, Clusters: states(done, done)},
			map[string][]string{resource: {"one"}}, v1alpha1.ReasonRealized},
		{"a pending statement", nil,
			statuscache.Report{Wanted: true, SIDs: map[string][]string{"p": {"one"}}, Clusters: states(done, pending)},
			map[string][]string{resource: {"one"}}, v1alpha1.ReasonNotRealized},
		{"another policy's statement", nil,
			statuscache.Report{Wanted: true, SIDs: map[string][]string{"q": {"one"}}, Clusters: states(pending)},
			map[string][]string{}, v1alpha1.ReasonNotOnboarded},
		{"a revocation that a member lacks, from the annotation of the object", nil,
			statuscache.Report{Wanted: true, FormerPolicies: []string{"p"}, Clusters: states(done, pending)},
			map[string][]string{resource: nil}, v1alpha1.ReasonNotRealized},
		{"a revocation that a member lacks, from the former status", []v1alpha1.PolicyUnit{{Resource: resource, SIDs: []string{"one"}}},
			statuscache.Report{Wanted: true, Clusters: states(pending)},
			map[string][]string{resource: nil}, v1alpha1.ReasonNotRealized},
		{"a revocation that every member has", []v1alpha1.PolicyUnit{{Resource: resource}},
			statuscache.Report{Wanted: true, Clusters: states(done, done)},
			map[string][]string{}, v1alpha1.ReasonNotOnboarded},
		{"a statement that no member gets", nil,
			statuscache.Report{Wanted: true, SIDs: map[string][]string{"p": {"one"}}},
			map[string][]string{resource: {"one"}}, v1alpha1.ReasonNoTarget},
	} {
		t.Run(c.reason, func(t *testing.T) {
			c.report.Resource = resource
			f := &facts{Policy: &v1alpha1.AccessControlPolicy{ObjectMeta: metav1.ObjectMeta{Name: "p", Generation: 7},
				Status: v1alpha1.AccessControlPolicyStatus{Units: c.before}}, Now: time.Unix(1, 0), Reports: []statuscache.Report{c.report}}
			got := status(f)
			units := map[string][]string{}
			for _, u := range got.Units {
				units[string(u.Resource)] = u.SIDs
			}
			if diff := cmp.Diff(c.units, units); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
			if r := meta.FindStatusCondition(got.Conditions, v1alpha1.ConditionRealized); r.Reason != c.realized || r.ObservedGeneration != 7 {
				t.Errorf("Realized: %+v, want reason %s", r, c.realized)
			}
		})
	}
}

// TestPolicyWithoutUnitsNamesNoResource checks that a policy whose only statement was refused does not report its resource as unprotected.
func TestPolicyWithoutUnitsNamesNoResource(t *testing.T) {
	f := &facts{Policy: &v1alpha1.AccessControlPolicy{ObjectMeta: metav1.ObjectMeta{Name: "p"}},
		Reports: []statuscache.Report{{Resource: resource, Wanted: true, Clusters: states(v1alpha1.MemberRealized),
			Refused: []policy.Refusal{{Ref: policy.Ref{Policy: "p", SID: "one"}, Reason: v1alpha1.RefusedUnsupported, Message: message.Verbatim("m")}}}}}
	r := meta.FindStatusCondition(status(f).Conditions, v1alpha1.ConditionRealized)
	if r.Reason != v1alpha1.ReasonNotOnboarded || !strings.Contains(r.Message, "no statement in force") {
		t.Errorf("the resource is protected, and the only statement was refused; got %s: %s", r.Reason, r.Message)
	}
}

// TestRefusalsAreListedOnce checks that a refusal of the compiler and of a report is one, and that those of other policies are left out.
func TestRefusalsAreListedOnce(t *testing.T) {
	refusal := policy.Refusal{Ref: policy.Ref{Policy: "p", SID: "one"}, Reason: v1alpha1.RefusedUnsupported, Message: message.Verbatim("m")}
	other := policy.Refusal{Ref: policy.Ref{Policy: "q", SID: "one"}, Reason: v1alpha1.RefusedUnsupported, Message: message.Verbatim("m")}
	f := &facts{Policy: &v1alpha1.AccessControlPolicy{ObjectMeta: metav1.ObjectMeta{Name: "p"}}, Refusals: []policy.Refusal{refusal},
		Reports: []statuscache.Report{{Resource: resource, Refused: []policy.Refusal{refusal, other}}}}
	want := []v1alpha1.RefusedStatement{{SID: "one", Reason: v1alpha1.RefusedUnsupported, Message: "m"}}
	if diff := cmp.Diff(want, status(f).Refused); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

// TestStatusWaitsForEveryUnit checks which units are not yet reconciled with the current policy.
func TestStatusWaitsForEveryUnit(t *testing.T) {
	for _, c := range []struct {
		reason  string
		missing []string
		version uint64
		want    []string
	}{
		{"every unit was reconciled with the current spec", nil, 5, nil},
		{"a unit was last reconciled with an older spec", nil, 4, []string{resource}},
		{"a unit was never reconciled", []string{"other"}, 5, []string{"other"}},
	} {
		t.Run(c.reason, func(t *testing.T) {
			f := &facts{Since: 5, Missing: c.missing, Reports: []statuscache.Report{{Resource: resource, Version: c.version}}}
			if diff := cmp.Diff(c.want, f.stale()); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}
