package v1alpha1_test

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/acp-io/acp/api/v1alpha1"
)

// TestTheServerKeepsMembersInGroups writes statuses with members in groups, each in a revision of its own, and reads them back: nothing is
// pruned, and lists have an end.
func TestTheServerKeepsMembersInGroups(t *testing.T) {
	members := func(n int) (out []v1alpha1.ClusterState) {
		states := []v1alpha1.MemberState{v1alpha1.MemberRealized, v1alpha1.MemberPending, v1alpha1.MemberUnreachable, v1alpha1.MemberQuarantined,
			v1alpha1.MemberLeaked, v1alpha1.MemberDrifted, v1alpha1.MemberDowngraded, v1alpha1.MemberOverridden}
		for i := range n {
			at := metav1.NewMicroTime(time.Date(2026, 1, 1, 0, 0, i, 0, time.UTC))
			out = append(
				out,
				v1alpha1.ClusterState{Name: v1alpha1.ClusterName(fmt.Sprintf("m%05d", i)), State: states[i%8], Mode: v1alpha1.ModeAudit, Since: &at,
					DesiredRevision: fmt.Sprintf("d%d", i), ObservedRevision: fmt.Sprintf("o%d", i), Propagated: i%3 == 0},
			)
		}
		return out
	}
	all := members(500)
	same := members(10_001)
	for i := range same {
		same[i].State, same[i].DesiredRevision, same[i].ObservedRevision, same[i].Propagated = v1alpha1.MemberPending, "d", "o", false
	}
	counts := v1alpha1.CountMembers(all)
	unit := v1alpha1.PolicyUnit{Resource: "trnv1:rsc:trip-com:redis:clusters:bobs", SIDs: []string{"one"}, Statements: 1, Revision: "r", Members: &counts,
		Clusters: all[:3], Groups: v1alpha1.GroupMembers(all[3:]), Details: "ProtectedResource/bobs"}
	for _, tc := range []struct {
		reason, kind string
		status       any
		want         string
	}{
		{
			"a resource's members", "ProtectedResource",
			v1alpha1.ProtectedResourceStatus{Members: &counts, Clusters: all[:20], Groups: v1alpha1.GroupMembers(all[20:])}, "",
		},
		{"what an earlier version wrote", "ProtectedResource", v1alpha1.ProtectedResourceStatus{Clusters: all}, ""},
		{"a group without end", "ProtectedResource", v1alpha1.ProtectedResourceStatus{Groups: v1alpha1.GroupMembers(same)}, "must have at most 10000 items"},
		{"a policy's units", "AccessControlPolicy", v1alpha1.AccessControlPolicyStatus{Units: []v1alpha1.PolicyUnit{unit}, UnitsTotal: 9, UnitsRealized: 3,
			Refused: []v1alpha1.RefusedStatement{{SID: "one", Reason: "Unsupported", Message: "no"}}, RefusedOthers: []string{"two", "three"}}, ""},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			o := object(t, tc.kind, nil)
			if err := host.Create(context.Background(), o); err != nil {
				t.Fatal(err)
			}
			defer func() {
				if err := host.Delete(context.Background(), o); err != nil {
					t.Error(err)
				}
			}()
			var want, got any
			text, err := json.Marshal(tc.status)
			if err != nil {
				t.Fatal(err)
			}
			if err := json.Unmarshal(text, &want); err != nil {
				t.Fatal(err)
			}
			o.Object["status"] = want
			err = host.Status().Update(context.Background(), o)
			verdict(t, err, tc.want)
			if err != nil {
				return
			}
			if err := host.Get(context.Background(), client.ObjectKeyFromObject(o), o); err != nil {
				t.Fatal(err)
			}
			if text, err = json.Marshal(o.Object["status"]); err != nil {
				t.Fatal(err)
			}
			if err := json.Unmarshal(text, &got); err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(want, got); d != "" {
				t.Errorf("the server keeps something else (-want +got):\n%s", d)
			}
		})
	}
}
