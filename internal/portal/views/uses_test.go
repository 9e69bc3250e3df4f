package views

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/approval"
	"github.com/acp-io/acp/internal/audit"
	"github.com/acp-io/acp/internal/audit/insight/insighttest"
	"github.com/acp-io/acp/internal/governance"
	"github.com/acp-io/acp/internal/policy"
)

const (
	usesApp   = "trnv1:rsc:trip-com:iam:sa:app/1"
	usesRedis = "trnv1:rsc:trip-com:redis:clusters:"
	usesKafka = "trnv1:rsc:trip-com:kafka:topics:"
)

// usesNow is the instant of the tests, at which m1 was watched for 20 days, and m2 only today.
var usesNow = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

func usesAgo(d time.Duration) time.Time { return usesNow.Add(-d) }

const usesDay = 24 * time.Hour

// usesHost has the members of the tests.
type usesHost struct{ Host }

func (usesHost) Members() []*v1alpha1.MemberCluster {
	var out []*v1alpha1.MemberCluster
	for _, name := range []string{"m1", "m2"} {
		out = append(out, &v1alpha1.MemberCluster{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			Status:     v1alpha1.MemberClusterStatus{State: v1alpha1.MemberClusterReady},
		})
	}
	return out
}

// usesFlows is a flow store that counts its queries.
type usesFlows struct {
	audit.Reader
	model             *insighttest.Model
	err               error
	totals, coverages int
}

func (f *usesFlows) Totals(ctx context.Context, q audit.Filter, each func(audit.Total) error) error {
	if f.totals++; f.err != nil {
		return f.err
	}
	return f.model.Totals(ctx, q, each)
}

func (f *usesFlows) Series(ctx context.Context, q audit.SeriesQuery) ([]audit.Point, error) {
	return f.model.Series(ctx, q)
}

func (f *usesFlows) Coverage(ctx context.Context, since, until time.Time) ([]audit.Coverage, error) {
	if f.coverages++; f.err != nil {
		return nil, f.err
	}
	return f.model.Coverage(ctx, since, until)
}

// usesSnapshot has a resource class whose resources are in m1, and one whose resources are in m2. Only `enforced` is enforced.
func usesSnapshot(name string, statements ...v1alpha1.Statement) *policy.Snapshot {
	class := func(class, pattern, member string) *v1alpha1.ResourceClass {
		return &v1alpha1.ResourceClass{ObjectMeta: metav1.ObjectMeta{Name: class}, Spec: v1alpha1.ResourceClassSpec{
			Pattern:   v1alpha1.NamePattern(pattern + "*"),
			LabelKey:  v1alpha1.LabelKey("com.trip/" + class),
			Placement: v1alpha1.Placement{Clusters: &[]v1alpha1.ClusterName{v1alpha1.ClusterName(member)}},
			Actions:   []v1alpha1.ClassAction{{Name: class + ":connect", Ports: []v1alpha1.Port{{Port: 6379, Protocol: v1alpha1.ProtocolTCP}}}},
		}}
	}
	return policy.NewSnapshot(policy.Input{
		SubjectClasses: []*v1alpha1.SubjectClass{{ObjectMeta: metav1.ObjectMeta{Name: "application"},
			Spec: v1alpha1.SubjectClassSpec{Pattern: "trnv1:rsc:trip-com:iam:sa:app/*", LabelKey: "com.trip/appid"}}},
		ResourceClasses: []*v1alpha1.ResourceClass{class("redis", usesRedis, "m1"), class("kafka", usesKafka, "m2")},
		Resources: []*v1alpha1.ProtectedResource{{ObjectMeta: metav1.ObjectMeta{Name: "enforced"},
			Spec: v1alpha1.ProtectedResourceSpec{Resource: usesRedis + "enforced", Mode: v1alpha1.ModeEnforce}}},
		Policies: []*v1alpha1.AccessControlPolicy{{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v1alpha1.AccessControlPolicySpec{Statements: statements}}},
	})
}

func usesSay(sid string, effect v1alpha1.Effect, subject, action, resource string) v1alpha1.Statement {
	return v1alpha1.Statement{
		SID:       sid,
		Effect:    effect,
		Subjects:  []v1alpha1.Subject{v1alpha1.Subject(subject)},
		Actions:   []v1alpha1.Action{v1alpha1.Action(action)},
		Resources: []v1alpha1.ResourceName{v1alpha1.ResourceName(resource)},
	}
}

// usesSeen is a connection to a resource of the class redis.
func usesSeen(resource string, decision policy.Verdict, sid string, at time.Time) *audit.Batch {
	e := audit.Edge{Cluster: "m1", SourceCluster: "m1", Subject: usesApp, Resource: usesRedis + resource, Action: "redis:connect", Port: 6379,
		Protocol: v1alpha1.ProtocolTCP, Decision: decision, Verdict: audit.VerdictForwarded}
	if sid != "" {
		e.Statement = policy.Ref{Policy: "p", SID: sid}
	}
	return &audit.Batch{Rollups: []audit.Rollup{{Bucket: at.Truncate(time.Minute), Edge: e, Count: 1, FirstSeen: at, LastSeen: at}}}
}

// TestLastUses checks that an access counts as unused only if its resource was watched well enough, and that connections to a resource in
// Observe, which no statement decides, are uses of the allows that would let them in.
func TestLastUses(t *testing.T) {
	young := usesSay("young", v1alpha1.EffectAllow, usesApp, "redis:connect", usesRedis+"young")
	young.NotBefore = &metav1.Time{Time: usesAgo(time.Hour)}
	recent := usesSay("recent", v1alpha1.EffectAllow, usesApp, "redis:connect", usesRedis+"recent")
	recent.NotBefore = &metav1.Time{Time: usesAgo(5 * usesDay)}
	snap := usesSnapshot("p",
		usesSay("decided", v1alpha1.EffectAllow, usesApp, "redis:connect", usesRedis+"enforced"),
		usesSay("observed", v1alpha1.EffectAllow, usesApp, "redis:connect", usesRedis+"observed"),
		usesSay("other-action", v1alpha1.EffectAllow, usesApp, "redis:admin", usesRedis+"observed"),
		usesSay("quiet", v1alpha1.EffectAllow, usesApp, "redis:connect", usesRedis+"quiet"),
		usesSay("unwatched", v1alpha1.EffectAllow, usesApp, "kafka:connect", usesKafka+"orders"),
		usesSay("anyone", v1alpha1.EffectAllow, "*", "redis:connect", usesRedis+"others-*"),
		young, recent,
	)
	flows := &usesFlows{model: insighttest.NewModel(
		&audit.Batch{Watched: []audit.WatchedSpan{
			{Source: "m1", From: usesAgo(20 * usesDay), To: usesNow},
			{Source: "m2", From: usesAgo(time.Hour), To: usesNow},
		}},
		usesSeen("enforced", policy.Allowed, "decided", usesAgo(3*usesDay)),
		usesSeen("observed", policy.Unmanaged, "", usesAgo(2*usesDay)),
		usesSeen("quiet", policy.DefaultDenied, "", usesAgo(usesDay)),
	)}
	d := &Data{Host: usesHost{}, Flows: flows, Now: func() time.Time { return usesNow }, Log: slog.New(slog.DiscardHandler)}
	edges, _ := governance.Edges(snap, usesNow, func(*governance.Edge) bool { return true })
	states := func(u *LastUses) map[string]string {
		out := map[string]string{}
		for i := range edges {
			state, at := u.Of(&edges[i])
			out[edges[i].Ref.SID] = string(state)
			if at != nil {
				out[edges[i].Ref.SID] += " " + usesNow.Sub(*at).String()
			}
		}
		return out
	}
	q := UsesQuery{Snapshot: snap, Edges: edges, Window: MaxWindow}
	want := map[string]string{
		"decided":      "used 72h0m0s",
		"observed":     "used 48h0m0s",
		"other-action": "unused",  // the connection was of another action
		"quiet":        "unused",  // a refused connection is no use
		"unwatched":    "unknown", // m2 was watched only today
		"anyone":       "unknown", // what it lets in in Observe is found under no statement
		"young":        "unknown", // it is younger than a day
		"recent":       "unused",  // m1 was watched since it was granted
	}
	got := d.LastUses(t.Context(), q)
	if diff := cmp.Diff(want, states(got)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if flows.totals != 2 {
		t.Errorf("%d queries for one page, not one by the resources and one by the statement", flows.totals)
	}
	d.LastUses(t.Context(), q)
	if flows.coverages != 2 {
		t.Errorf("the watch was read again: %d queries", flows.coverages)
	}

	flows.err = audit.ErrUnavailable
	missing := d.LastUses(t.Context(), q)
	if missing != nil {
		t.Fatal("without flows there are last uses")
	}
	for sid, state := range states(missing) {
		if state != "unknown" {
			t.Errorf("without flows %s is %s", sid, state)
		}
	}
}

// TestWatchIsCached checks when the watch of the members is read again. The cache has no key, because nothing but the time decides the watch: it
// is about all members and the last UseWatch for every caller.
func TestWatchIsCached(t *testing.T) {
	now := usesNow
	flows := &usesFlows{model: insighttest.NewModel(&audit.Batch{Watched: []audit.WatchedSpan{{Source: "m1", From: usesAgo(20 * usesDay), To: usesNow}}})}
	d := &Data{Flows: flows, Now: func() time.Time { return now }}
	for _, step := range []struct {
		reason string
		at     time.Time
		err    error
		read   bool
	}{
		{"an error", usesNow, audit.ErrUnavailable, true},
		{"which is not kept", usesNow, nil, true},
		{"fresh", usesNow.Add(watchKept - 1), nil, false},
		{"too old", usesNow.Add(watchKept), nil, true},
		{"the clock was set back", usesNow, nil, true},
	} {
		now, flows.err = step.at, step.err
		before := flows.coverages
		got, err := d.Watch(t.Context())
		if !errors.Is(err, step.err) || (flows.coverages > before) != step.read {
			t.Errorf("%s: %v, %d queries", step.reason, err, flows.coverages-before)
		}
		if step.err != nil || err != nil {
			continue
		}
		if step.read && !got.Until.Equal(step.at) || got.Until.Sub(got.Since) != UseWatch || len(got.Members) != 1 {
			t.Errorf("%s: %d members from %s until %s", step.reason, len(got.Members), got.Since, got.Until)
		}
	}
}

// TestUsesBeforeTheGrant checks that what was let in in Observe before a ticket granted it is no use of its statement.
func TestUsesBeforeTheGrant(t *testing.T) {
	snap := usesSnapshot(policy.PolicyNameFor(usesRedis+"observed"),
		usesSay("t-7-1", v1alpha1.EffectAllow, usesApp, "redis:connect", usesRedis+"observed"))
	edges, _ := governance.Edges(snap, usesNow, func(*governance.Edge) bool { return true })
	granted := func(at time.Time) Origins {
		return Origins{tickets: map[int64]*approval.Ticket{7: {
			Number: 7, Items: []approval.Item{{SID: "t-7-1", ApplicationName: usesApp, ResourceName: usesRedis + "observed"}},
			Events: []approval.Event{{At: at, Kind: approval.EventEffective}},
		}}}
	}
	flows := &usesFlows{model: insighttest.NewModel(
		&audit.Batch{Watched: []audit.WatchedSpan{{Source: "m1", From: usesAgo(20 * usesDay), To: usesNow}}},
		usesSeen("observed", policy.Unmanaged, "", usesAgo(4*usesDay)),
	)}
	d := &Data{Host: usesHost{}, Flows: flows, Now: func() time.Time { return usesNow }, Log: slog.New(slog.DiscardHandler)}
	for reason, tc := range map[string]struct {
		at   time.Time
		want string
	}{
		"granted before it was seen":                        {usesAgo(10 * usesDay), "used"},
		"granted after it was seen, and watched since then": {usesAgo(3 * usesDay), "unused"},
	} {
		state, _ := d.LastUses(t.Context(), UsesQuery{Snapshot: snap, Edges: edges, Origins: granted(tc.at), Window: MaxWindow}).Of(&edges[0])
		if string(state) != tc.want {
			t.Errorf("%s: %s, want %s", reason, state, tc.want)
		}
	}
}
