package protectedresource

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/controllers/policycache"
	"github.com/acp-io/acp/controllers/statuscache"
	"github.com/acp-io/acp/internal/federation"
	"github.com/acp-io/acp/internal/policy"
	"github.com/acp-io/acp/internal/testenv"
)

// revisions is a fleet whose members have the unit with these revisions; a member that is not in it does not answer.
type revisions struct {
	federation.Members
	of map[string]string
}

func (revisions) Clusters() []federation.Cluster {
	return []federation.Cluster{{Name: "m1"}, {Name: "m2"}, {Name: "m3", Quarantined: true}}
}

func (r revisions) Observe(cluster, object string) federation.Observation {
	revision, ok := r.of[cluster]
	seen := federation.Observation{Registered: true, Reachable: ok}
	if revision != "" {
		seen.Object = &federation.Observed{Name: object, Revision: revision}
	}
	return seen
}

// TestGroupInUse checks that the group of an external subject is in use once every member that answers has the units that refer to it.
func TestGroupInUse(t *testing.T) {
	const subject = sceneApps + "1"
	group := v1alpha1.ObjectPrefix + policy.UnitID(subject)
	desired := func(m1, m2 string) map[string]map[string]string {
		return map[string]map[string]string{"acp-x": {"m1": m1, "m2": m2}}
	}
	for name, c := range map[string]struct {
		// report is the report about the unit; nil means that there is none.
		report *statuscache.Report
		// members are the revisions in the members.
		members map[string]string
		allowed bool
		want    bool
	}{
		"NotReported": {nil, nil, true, false},
		"NotReferred": {&statuscache.Report{Desired: desired("1", "1")}, map[string]string{"m1": "1", "m2": "1"}, true, false},
		"NotWritten":  {&statuscache.Report{Desired: desired("2", "2"), Groups: []string{group}}, map[string]string{"m1": "1", "m2": "1"}, true, false},
		"NotCarried":  {&statuscache.Report{Desired: desired("1", "2"), Groups: []string{group}}, map[string]string{"m1": "1", "m2": "1"}, true, false},
		"NotThere":    {&statuscache.Report{Desired: desired("1", "1"), Groups: []string{group}}, map[string]string{"m1": "1", "m2": ""}, true, false},
		"EveryMember": {&statuscache.Report{Desired: desired("1", "2"), Groups: []string{group}}, map[string]string{"m1": "1", "m2": "2"}, true, true},
		"Unreachable": {&statuscache.Report{Desired: desired("1", "1"), Groups: []string{group}}, map[string]string{"m1": "1"}, true, true},
		"Quarantined": {&statuscache.Report{Desired: map[string]map[string]string{"acp-x": {"m3": "2"}}, Groups: []string{group}},
			map[string]string{"m3": "1"}, true, true},
		"NoStatements": {nil, nil, false, true},
	} {
		t.Run(name, func(t *testing.T) {
			index, informers := policycache.New(policycache.NewQueues(clock.RealClock{})), &testenv.Objects{}
			if _, err := index.Listen(t.Context(), informers); err != nil {
				t.Fatal(err)
			}
			index.SetGroupsSupported(true)
			app := v1alpha1.Subject(sceneApps + "2")
			if c.allowed {
				app = subject
			}
			for _, o := range []client.Object{
				&v1alpha1.ResourceClass{ObjectMeta: metav1.ObjectMeta{Name: "redis"}, Spec: v1alpha1.ResourceClassSpec{
					Pattern: "trnv1:rsc:o:redis:clusters:*", LabelKey: redisKey, Placement: v1alpha1.Placement{ClusterSelector: &metav1.LabelSelector{}},
					Actions: []v1alpha1.ClassAction{{Name: "redis:connect", Ports: []v1alpha1.Port{{Port: 6379}}}}}},
				&v1alpha1.SubjectClass{ObjectMeta: metav1.ObjectMeta{Name: "app"},
					Spec: v1alpha1.SubjectClassSpec{Pattern: sceneApps + "*", LabelKey: appKey}},
				&v1alpha1.ProtectedResource{ObjectMeta: metav1.ObjectMeta{Name: "x"},
					Spec: v1alpha1.ProtectedResourceSpec{Resource: sceneResource, Mode: v1alpha1.ModeEnforce}},
				&v1alpha1.AccessControlPolicy{ObjectMeta: metav1.ObjectMeta{Name: "p"}, Spec: v1alpha1.AccessControlPolicySpec{
					Statements: []v1alpha1.Statement{{SID: "s", Effect: v1alpha1.EffectAllow, Subjects: []v1alpha1.Subject{app},
						Actions: []v1alpha1.Action{"redis:connect"}, Resources: []v1alpha1.ResourceName{sceneResource}}}}},
				&v1alpha1.ExternalWorkload{ObjectMeta: metav1.ObjectMeta{Name: "machine"},
					Spec: v1alpha1.ExternalWorkloadSpec{Subject: subject, Addresses: []string{"10.9.0.1"}}},
			} {
				if err := informers.Change(nil, o); err != nil {
					t.Fatal(err)
				}
			}
			reports := statuscache.New()
			if c.report != nil {
				c.report.Resource = sceneResource
				reports.Put(*c.report)
			}
			r := &Reconciler{Reports: reports, Fleet: revisions{of: c.members}, Clock: clock.RealClock{}}
			if got := r.GroupInUse(index.View(), subject); got != c.want {
				t.Errorf("in use: %t", got)
			}
		})
	}
}
