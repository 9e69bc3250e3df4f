package hostcluster

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/acp-io/acp/api/v1alpha1"
)

// TestShareMemberLists checks that equal lists share their memory, also of different kinds, and that the content stays the same.
func TestShareMemberLists(t *testing.T) {
	groups := func(without int) []v1alpha1.MemberGroup {
		var in []v1alpha1.ClusterState
		for m := range 100 {
			c := v1alpha1.ClusterState{Name: v1alpha1.ClusterName(fmt.Sprint("m", m)), State: v1alpha1.MemberRealized, DesiredRevision: "a"}
			if m == without {
				c.State = v1alpha1.MemberPending
			}
			in = append(in, c)
		}
		return v1alpha1.GroupMembers(in)
	}
	// read returns an object as it is read from the host, with strings of its own.
	read := func(o, into any) any {
		text, err := json.Marshal(o)
		if err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(text, into); err != nil {
			t.Fatal(err)
		}
		return into
	}
	share := ShareMemberLists()
	resource := func(without int) *v1alpha1.ProtectedResource {
		o := read(v1alpha1.ProtectedResource{Status: v1alpha1.ProtectedResourceStatus{Groups: groups(without)}}, &v1alpha1.ProtectedResource{})
		got, err := share(o)
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(groups(without), got.(*v1alpha1.ProtectedResource).Status.Groups); d != "" {
			t.Fatalf("the groups changed (-want +got):\n%s", d)
		}
		return got.(*v1alpha1.ProtectedResource)
	}
	list := func(groups []v1alpha1.MemberGroup, i int) *v1alpha1.ClusterName {
		return &groups[i].Revisions[0].Members[0]
	}
	a, b, c := resource(-1), resource(-1), resource(7)
	if list(a.Status.Groups, 0) != list(b.Status.Groups, 0) {
		t.Error("the lists of two resources in the same members are apart")
	}
	rest := 0
	if c.Status.Groups[0].State == v1alpha1.MemberPending {
		rest = 1
	}
	if list(a.Status.Groups, 0) == list(c.Status.Groups, rest) {
		t.Error("lists of different members are the same")
	}
	p := read(v1alpha1.AccessControlPolicy{Status: v1alpha1.AccessControlPolicyStatus{Units: []v1alpha1.PolicyUnit{{Groups: groups(-1)}}}},
		&v1alpha1.AccessControlPolicy{})
	if _, err := share(p); err != nil {
		t.Fatal(err)
	}
	if list(a.Status.Groups, 0) != list(p.(*v1alpha1.AccessControlPolicy).Status.Units[0].Groups, 0) {
		t.Error("the lists of a resource and of a policy are apart")
	}
	if got, err := share("other"); err != nil || got != "other" {
		t.Errorf("another object is %v, %v", got, err)
	}
}
