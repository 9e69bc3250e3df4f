package membercluster

import (
	"fmt"
	"testing"
	"unique"

	"github.com/google/go-cmp/cmp"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/controllers/statuscache"
	"github.com/acp-io/acp/internal/federation"
	"github.com/acp-io/acp/internal/policy"
)

// TestCount checks the units of each member that are counted from the reports.
func TestCount(t *testing.T) {
	reports := statuscache.New()
	states := []v1alpha1.MemberState{v1alpha1.MemberRealized, v1alpha1.MemberRealized, v1alpha1.MemberPending, v1alpha1.MemberDrifted,
		v1alpha1.MemberUnreachable, v1alpha1.MemberLeaked, v1alpha1.MemberOverridden, v1alpha1.MemberQuarantined}
	for i, s := range states {
		r := statuscache.Report{Resource: fmt.Sprint("r", i), Entries: 10 * i, Clusters: []v1alpha1.ClusterState{{Name: "m1", State: s, DesiredRevision: "x"}}}
		if i == 0 {
			r.Entries = 70 // as many as the last resource
			r.Clusters = append(r.Clusters, v1alpha1.ClusterState{Name: "m2", State: v1alpha1.MemberLeaked})
		}
		reports.Put(r)
	}
	got := count(reports)
	want := map[string]*Units{
		"m1": {
			Objects: v1alpha1.MemberObjects{Managed: 8, Realized: 2, Pending: 3, Drifted: 1, Leaked: 1, Overridden: 1},
			States: map[v1alpha1.MemberState]int{
				v1alpha1.MemberRealized:    2,
				v1alpha1.MemberPending:     1,
				v1alpha1.MemberDrifted:     1,
				v1alpha1.MemberUnreachable: 1,
				v1alpha1.MemberLeaked:      1,
				v1alpha1.MemberOverridden:  1,
				v1alpha1.MemberQuarantined: 1,
			},
			Heaviest: &v1alpha1.MemberPolicyMap{Highest: 70, Limit: policy.MapEntries, Unit: "r0"},
		},
		// An object that should be gone does not count as the largest.
		"m2": {Objects: v1alpha1.MemberObjects{Managed: 1, Leaked: 1}, States: map[v1alpha1.MemberState]int{v1alpha1.MemberLeaked: 1}},
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

// TestIdentities checks the counts of identities and labels, and that unchanged identities are counted once.
func TestIdentities(t *testing.T) {
	var pods [][]federation.Handle
	reads := 0
	i := &Identities{
		Keys: func() map[string]bool { return map[string]bool{"app": true, "unused": true} },
		Each: func(cluster string, do func([]federation.Handle)) {
			if cluster != "m1" {
				return
			}
			reads++
			for _, p := range pods {
				do(p)
			}
		},
	}
	label := func(key string, value int) federation.Handle {
		return unique.Make(federation.Label{Key: key, Value: fmt.Sprint(value)})
	}
	for n := range 30 {
		labels := []federation.Handle{label("app", n/2), label("build", n), label("namespace", 0)}
		for k := range 12 {
			labels = append(labels, label(fmt.Sprintf("z%02d", k), 0))
		}
		pods = append(pods, labels)
	}
	if got := i.Count("m2", 100); got != nil {
		t.Errorf("the identities were not read, and %+v is reported", got)
	}
	for range 2 {
		got := i.Count("m1", 100)
		if got == nil || got.Used != 30 || got.Limit != 100 || len(got.Labels) != maxReportedLabels {
			t.Fatalf("%+v", got)
		}
		if d := cmp.Diff(
			[]v1alpha1.IdentityLabel{{Key: "build", Values: 30}, {Key: "app", Values: 15}, {Key: "namespace", Values: 1}},
			got.Labels[:3],
		); d != "" {
			t.Error(d)
		}
	}
	used, labels := i.Labels("m1")
	if d := cmp.Diff([]v1alpha1.MemberLabel{{Key: "app", Identities: 30, Most: 2}}, labels); d != "" || used != 30 {
		t.Errorf("%d identities; labels -want +got:\n%s", used, d)
	}
	if used, labels := i.Labels("m2"); used != 0 || labels != nil {
		t.Errorf("the identities were not read, and %d, %v are reported", used, labels)
	}
	if reads != 1 {
		t.Errorf("unchanged identities were counted %d times", reads)
	}
	pods = pods[:10]
	i.Changed("m1")
	if got := i.Count("m1", 100); got.Used != 10 || reads != 2 {
		t.Errorf("%+v after %d reads", got, reads)
	}
	i.Changed("")
	if i.Count("m1", 100); reads != 3 {
		t.Errorf("%d reads", reads)
	}
}
