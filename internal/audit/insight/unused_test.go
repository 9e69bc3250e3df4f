package insight

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/audit"
	"github.com/acp-io/acp/internal/policy"
)

func TestUnused(t *testing.T) {
	month := watched(31, "m1")
	granted := func(at time.Time) func(policy.Ref) (time.Time, bool) {
		return func(policy.Ref) (time.Time, bool) { return at, true }
	}
	created := func(at time.Time) func(*v1alpha1.AccessControlPolicy) {
		return func(p *v1alpha1.AccessControlPolicy) { p.CreationTimestamp = metav1.NewTime(at) }
	}
	from := func(at time.Time) func(*v1alpha1.AccessControlPolicy) {
		return func(p *v1alpha1.AccessControlPolicy) { p.Spec.Statements[0].NotBefore = &metav1.Time{Time: at} }
	}
	until := func(at time.Time) func(*v1alpha1.AccessControlPolicy) {
		return func(p *v1alpha1.AccessControlPolicy) { p.Spec.Statements[0].NotAfter = &metav1.Time{Time: at} }
	}
	never := "Never seen in use, though the last 30d were watched: propose its removal."
	for name, tc := range map[string]struct {
		reason string
		add    []func(*policy.Input)
		flows  []*audit.Batch
		in     UnusedInput
		want   []string
	}{
		"Never": {
			reason: "no connection is any that it allows",
			add:    []func(*policy.Input){allow("a", app+"1", "redis:connect", bobs)},
			flows:  []*audit.Batch{month, flows(edge(app+"2", bobs, 6379, policy.Unmanaged), 1, 1), flows(edge(app+"1", bobs, 6380, policy.Unmanaged), 1, 1)},
			want:   []string{"p-a/a " + never},
		},
		"UnknownAddress": {
			reason: "a connection from an address that is not known may be a use of the range, and is none of the application",
			add: []func(*policy.Input){allow("a", "trnv1:rsc:trip-com:net:cidr:203.0.113.0/24", "redis:connect", bobs),
				allow("b", app+"1", "redis:connect", bobs)},
			flows: []*audit.Batch{month, flows(audit.Edge{Cluster: "m1", Source: "outside", Resource: bobs, Port: 6379, Protocol: v1alpha1.ProtocolTCP,
				Decision: policy.Unmanaged, Verdict: audit.VerdictForwarded}, 1, 1)},
			want: []string{"p-b/b " + never},
		},
		"Used": {
			reason: "also in Observe, where no statement decides",
			add:    []func(*policy.Input){allow("a", app+"1", "redis:connect", bobs)},
			flows:  []*audit.Batch{month, flows(edge(app+"1", bobs, 6379, policy.Unmanaged), 1, 29)},
		},
		"LongAgo": {
			reason: "the last use is reported, however old",
			add:    []func(*policy.Input){allow("a", app+"1", "redis:connect", bobs)},
			flows:  []*audit.Batch{month, flows(edge(app+"1", bobs, 6379, policy.Allowed), 1, 45, 60)},
			want:   []string{"p-a/a Last used 45d 1h ago, though the last 30d were watched: propose its removal."},
		},
		"SharedUse": {
			reason: "both let it in, so both are used; which of them is redundant is another question",
			add:    []func(*policy.Input){allow("a", app+"1", "redis:connect", bobs), allow("b", app+"*", "redis:*", bobs)},
			flows:  []*audit.Batch{month, flows(edge(app+"1", bobs, 6379, policy.Allowed), 1, 1)},
		},
		"WildcardUsedElsewhere": {
			reason: "it is used through any resource, also when one of them is asked for",
			add:    []func(*policy.Input){allow("a", app+"1", "redis:connect", redis+"*"), allow("b", app+"2", "redis:connect", redis+"*")},
			flows:  []*audit.Batch{month, flows(edge(app+"1", orders, 6379, policy.Unmanaged), 1, 1)},
			in:     UnusedInput{Resources: []string{bobs}},
			want:   []string{"p-b/b " + never},
		},
		"OnlyOfTheResource": {
			reason: "others are not asked about",
			add:    []func(*policy.Input){allow("a", app+"1", "redis:connect", bobs), allow("b", app+"2", "redis:connect", orders)},
			flows:  []*audit.Batch{month},
			in:     UnusedInput{Resources: []string{bobs, bobs}},
			want:   []string{"p-a/a " + never},
		},
		"OnlyOfThePolicy": {
			reason: "others are not asked about",
			add:    []func(*policy.Input){allow("a", app+"1", "redis:connect", bobs), allow("b", app+"2", "redis:connect", orders)},
			flows:  []*audit.Batch{month},
			in:     UnusedInput{Policy: "p-b"},
			want:   []string{"p-b/b " + never},
		},
		"Deny": {
			reason: "a deny without traffic does what it is for",
			add:    []func(*policy.Input){addStatement("a", v1alpha1.EffectDeny, app+"1", "redis:connect", bobs)},
			flows:  []*audit.Batch{month},
		},
		"Overridden": {
			reason: "an allow that a deny takes away lets nobody in",
			add:    []func(*policy.Input){allow("a", app+"1", "redis:connect", bobs), addStatement("d", v1alpha1.EffectDeny, app+"*", "redis:connect", bobs)},
			flows:  []*audit.Batch{month, flows(edge(app+"1", bobs, 6379, policy.Denied), 1, 1)},
			want:   []string{"p-a/a " + never},
		},
		"NotWatched": {
			reason: "half of the time was not watched, so nothing can be said",
			add:    []func(*policy.Input){allow("a", app+"1", "redis:connect", bobs)},
			flows:  []*audit.Batch{watched(15, "m1")},
		},
		"OneMemberNotWatched": {
			reason: "its use may have been in the other member",
			add:    []func(*policy.Input){allow("a", app+"1", "redis:connect", bobs)},
			flows:  []*audit.Batch{month, watched(2, "m2")},
		},
		"YoungByTicket": {
			reason: "granted a week ago",
			add:    []func(*policy.Input){allow("a", app+"1", "redis:connect", bobs)},
			flows:  []*audit.Batch{month},
			in:     UnusedInput{Granted: granted(ago(7))},
		},
		"OldByTicket": {
			reason: "granted long ago",
			add:    []func(*policy.Input){allow("a", app+"1", "redis:connect", bobs)},
			flows:  []*audit.Batch{month},
			in:     UnusedInput{Granted: granted(ago(70))},
			want:   []string{"p-a/a " + never},
		},
		"YoungPolicy": {
			reason: "its policy was made a week ago",
			add:    []func(*policy.Input){addStatement("a", v1alpha1.EffectAllow, app+"1", "redis:connect", bobs, created(ago(7)))},
			flows:  []*audit.Batch{month},
		},
		"PolicyPutBack": {
			reason: "its policy was made anew a week ago, from a backup; what it says has held for longer",
			add:    []func(*policy.Input){addStatement("a", v1alpha1.EffectAllow, app+"1", "redis:connect", bobs, created(ago(7)), from(ago(70)))},
			flows:  []*audit.Batch{month},
			want:   []string{"p-a/a " + never},
		},
		"NotYet": {
			reason: "it began a week ago",
			add:    []func(*policy.Input){addStatement("a", v1alpha1.EffectAllow, app+"1", "redis:connect", bobs, from(ago(7)))},
			flows:  []*audit.Batch{month},
		},
		"Over": {
			reason: "it has expired",
			add:    []func(*policy.Input){addStatement("a", v1alpha1.EffectAllow, app+"1", "redis:connect", bobs, until(ago(7)))},
			flows:  []*audit.Batch{month},
		},
		"RangeMayBeUsed": {
			reason: "of the prefix that was seen, a part is in the range: it may have been used",
			add: []func(*policy.Input){
				allow("a", cidr+"203.0.113.128/25", "redis:connect", bobs), allow("b", cidr+"198.51.100.0/25", "redis:connect", bobs),
			},
			flows: []*audit.Batch{
				month,
				flows(edge("", bobs, 6379, policy.Unmanaged, func(e *audit.Edge) { e.Source, e.SourceCluster = "203.0.113.0/24", "" }), 1, 1),
			},
			want: []string{"p-b/b " + never},
		},
		"ShorterQuiet": {
			reason: "the caller says how long it has to be quiet",
			add:    []func(*policy.Input){allow("a", app+"1", "redis:connect", bobs)},
			flows:  []*audit.Batch{watched(8, "m1"), flows(edge(app+"1", bobs, 6379, policy.Allowed), 1, 9)},
			in:     UnusedInput{QuietFor: 7 * day},
			want:   []string{"p-a/a Last used 9d 1h ago, though the last 7d were watched: propose its removal."},
		},
	} {
		t.Run(name, func(t *testing.T) {
			tc.in.Snapshot, tc.in.Now, tc.in.Fleet = with(world(), tc.add...), now, whereWatched(tc.flows...)
			var got []string
			for _, u := range must[[]UnusedStatement](t)(Unused(t.Context(), store(tc.flows...), tc.in)) {
				got = append(got, u.Ref.String()+" "+u.Reason.Text)
				if u.Statement.SID != u.Ref.SID || len(u.Statement.Subjects) == 0 {
					t.Errorf("%s comes with the statement %+v", u.Ref, u.Statement)
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}
