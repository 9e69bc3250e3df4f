package policy

import (
	"fmt"
	"testing"

	"github.com/acp-io/acp/api/v1alpha1"
)

// The estimate counts as Cilium does: identities times masked ranges of ports. In conformance it is compared with Cilium.
func TestEntries(t *testing.T) {
	redis := func(subjects ...string) []*v1alpha1.AccessControlPolicy {
		st := say("s", Allow, subjects[0], "redis:connect", bobs)
		for _, subject := range subjects[1:] {
			st.Subjects = append(st.Subjects, v1alpha1.Subject(subject))
		}
		return []*v1alpha1.AccessControlPolicy{acp("p", st)}
	}
	for name, c := range map[string]struct {
		reason string
		change func(in *Input)
		want   int
	}{
		"Anyone":  {"an entry for each aggregate identity", func(in *Input) { in.Policies = redis("*") }, everyoneEntries},
		"Name":    {"one identity", func(in *Input) { in.Policies = redis(app888) }, 1},
		"Members": {"one in each member", func(in *Input) { in.Policies, in.Members = redis(app888), 3 }, 3},
		"Counted": {"as many as there are", func(in *Input) { in.Policies, in.Identities = redis(app888), map[string]int{app888: 9} }, 9},
		"Fewer":   {"never fewer than members", func(in *Input) { in.Policies, in.Members, in.Identities = redis(app888), 3, map[string]int{app888: 1} }, 3},
		"Ranges":  {"one for each range", func(in *Input) { in.Policies = redis(cidrHead+"10.9.0.0/16", cidrHead+"10.8.0.0/16") }, 2},
		"Group":   {"one for a group of any size", func(in *Input) { in.Policies, in.Workloads = redis(app888), machines(30_000) }, 2},
		"InGroup": {"a range cuts the group into two, and is one itself", func(in *Input) {
			in.Policies, in.Workloads = redis(app888, cidrHead+"172.16.3.0/24"), machines(30_000)
		}, 1 + 1 + 2},
		"AnyCount": {"the class's names", func(in *Input) {
			in.Policies, in.KnownNames, in.Identities = redis(appHead+"*"), []string{app888, app889}, map[string]int{app888: 4}
		}, 5},
	} {
		t.Run(name, func(t *testing.T) {
			in := world(protect(bobs, v1alpha1.ModeEnforce))
			c.change(&in)
			u, ok := NewSnapshot(in).CompileResource(bobs, noon)
			if !ok || u.Entries != c.want || len(u.Refused) > 0 {
				t.Errorf("%s: %d entries, want %d; refused %v", c.reason, u.Entries, c.want, u.Refused)
			}
		})
	}
}

// The member with the smallest policy map decides how much fits.
func TestRoomOfTheSmallestMember(t *testing.T) {
	in := world(protect(bobs, v1alpha1.ModeEnforce), acp("p", say("one", Allow, app888, "redis:connect", bobs), say("two", Allow, app889, "redis:connect", bobs)))
	in.Members, in.MapEntries = 100, 256
	u, _ := NewSnapshot(in).CompileResource(bobs, noon)
	if len(u.Refused) != 0 || len(u.Warnings) != 1 {
		t.Errorf("200 of 256 entries: refused %v, warnings %v, want a warning", u.Refused, u.Warnings)
	}
	in.MapEntries = 160
	u, _ = NewSnapshot(in).CompileResource(bobs, noon)
	if len(u.Refused) != 1 || u.Refused[0].Ref.SID != "two" {
		t.Errorf("100 of 160 entries for each: refused %v, want the second", u.Refused)
	}
}

// machines are an application's, in /24s of 172.16.0.0/12.
func machines(n int) []*v1alpha1.ExternalWorkload {
	w := &v1alpha1.ExternalWorkload{Spec: v1alpha1.ExternalWorkloadSpec{Subject: v1alpha1.ResourceName(app888)}}
	w.Name = "machines"
	for i := range n {
		w.Spec.Addresses = append(w.Spec.Addresses, fmt.Sprintf("172.%d.%d.%d", 16+i>>16, i>>8&255, i&255))
	}
	return []*v1alpha1.ExternalWorkload{w}
}
