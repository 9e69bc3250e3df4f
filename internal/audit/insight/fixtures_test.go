package insight

import (
	"context"
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/audit"
	"github.com/acp-io/acp/internal/audit/insight/insighttest"
	"github.com/acp-io/acp/internal/policy"
)

const (
	app    = "trnv1:rsc:trip-com:iam:sa:app/"
	svc    = "trnv1:rsc:trip-com:mesh:svc:"
	redis  = "trnv1:rsc:trip-com:redis:clusters:"
	site   = "trnv1:rsc:trip-com:web:sites:"
	cidr   = "trnv1:rsc:trip-com:net:cidr:"
	bobs   = redis + "bobs-cluster"
	orders = redis + "orders-cache"
	shop   = site + "shop"
	vm     = app + "vm"
)

// now is the instant of the tests, a Friday; two weeks before it flows began.
var now = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

func ago(days int) time.Time { return now.Add(-time.Duration(days) * day) }

func named(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Name: strings.Trim(strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' {
			return r
		}
		return '-'
	}, name), "-")}
}

// world is what all tests decide by: two classes of clients, a class of caches, and one of sites whose other ports are open.
func world() policy.Input {
	port := func(n int32) []v1alpha1.Port { return []v1alpha1.Port{{Port: n, Protocol: v1alpha1.ProtocolTCP}} }
	return policy.Input{
		SubjectClasses: []*v1alpha1.SubjectClass{
			{ObjectMeta: named("application"), Spec: v1alpha1.SubjectClassSpec{Pattern: app + "*", LabelKey: "com.trip/appid"}},
			{ObjectMeta: named("service"), Spec: v1alpha1.SubjectClassSpec{Pattern: svc + "*", LabelKey: "com.trip/service"}},
		},
		ResourceClasses: []*v1alpha1.ResourceClass{
			{
				ObjectMeta: named("redis"),
				Spec: v1alpha1.ResourceClassSpec{Pattern: redis + "*", LabelKey: "com.trip/redis-cluster", Actions: []v1alpha1.ClassAction{
					{Name: "redis:connect", Ports: port(6379)}, {Name: "redis:admin", Ports: port(6380)}}},
			},
			{
				ObjectMeta: named("sites"),
				Spec: v1alpha1.ResourceClassSpec{
					Pattern:    site + "*",
					LabelKey:   "com.trip/site",
					OtherPorts: v1alpha1.OtherPortsAllow,
					Actions: []v1alpha1.ClassAction{
						{Name: "web:buy", Ports: port(80), HTTP: []v1alpha1.HTTPMatch{{Method: "POST"}}}, {Name: "web:visit", Ports: port(80)},
						{Name: "web:manage", Ports: port(8443), HTTP: []v1alpha1.HTTPMatch{{Path: "/admin.*"}}}},
				},
			},
		},
		Workloads: []*v1alpha1.ExternalWorkload{
			{ObjectMeta: named("vm"), Spec: v1alpha1.ExternalWorkloadSpec{Subject: vm, Addresses: []string{"10.6.0.0/30"}}},
		},
	}
}

func with(in policy.Input, add ...func(*policy.Input)) *policy.Snapshot {
	for _, f := range add {
		f(&in)
	}
	return policy.NewSnapshot(in)
}

func protect(resource string, mode v1alpha1.Mode, own ...v1alpha1.ClusterMode) func(*policy.Input) {
	return func(in *policy.Input) {
		in.Resources = append(in.Resources, &v1alpha1.ProtectedResource{ObjectMeta: named(resource),
			Spec: v1alpha1.ProtectedResourceSpec{Resource: v1alpha1.ResourceName(resource), Mode: mode, ClusterModes: own}})
	}
}

func addStatement(sid string, effect v1alpha1.Effect, subject, action, resource string, change ...func(*v1alpha1.AccessControlPolicy)) func(*policy.Input) {
	return func(in *policy.Input) {
		p := &v1alpha1.AccessControlPolicy{ObjectMeta: named("p-" + sid), Spec: v1alpha1.AccessControlPolicySpec{Statements: []v1alpha1.Statement{
			{
				SID:       sid,
				Effect:    effect,
				Subjects:  []v1alpha1.Subject{v1alpha1.Subject(subject)},
				Actions:   []v1alpha1.Action{v1alpha1.Action(action)},
				Resources: []v1alpha1.ResourceName{v1alpha1.ResourceName(resource)},
			},
		}}}
		for _, c := range change {
			c(p)
		}
		in.Policies = append(in.Policies, p)
	}
}

func allow(sid, subject, action, resource string) func(*policy.Input) {
	return addStatement(sid, v1alpha1.EffectAllow, subject, action, resource)
}

// edge is of one client in m2 and one server in m1.
func edge(subject, resource string, port uint16, w policy.Verdict, change ...func(*audit.Edge)) audit.Edge {
	e := audit.Edge{
		Cluster:       "m1",
		SourceCluster: "m2",
		Subject:       subject,
		Resource:      resource,
		Port:          port,
		Protocol:      v1alpha1.ProtocolTCP,
		Decision:      w,
		Verdict:       audit.VerdictForwarded,
	}
	if w == policy.Denied || w == policy.DefaultDenied {
		e.Verdict = audit.VerdictDropped
	}
	for _, c := range change {
		c(&e)
	}
	return e
}

func from(source string) func(*audit.Edge) {
	return func(e *audit.Edge) {
		e.Subject, e.Source = "", source
		if _, err := netip.ParsePrefix(source); err == nil {
			e.SourceCluster = ""
		}
	}
}

func in(cluster string) func(*audit.Edge) { return func(e *audit.Edge) { e.Cluster = cluster } }

// flows are count connections of an edge on each of the days before now.
func flows(e audit.Edge, count int64, days ...int) *audit.Batch {
	b := &audit.Batch{}
	for _, d := range days {
		at := ago(d).Add(-time.Hour)
		b.Rollups = append(b.Rollups, audit.Rollup{Bucket: at, Edge: e, Count: count, FirstSeen: at.Add(time.Second), LastSeen: at.Add(30 * time.Second)})
	}
	return b
}

// every is each of the last n days, beginning today.
func every(n int) []int {
	out := make([]int, n)
	for i := range out {
		out[i] = i
	}
	return out
}

// watched is that members were followed for the last days.
func watched(days int, clusters ...string) *audit.Batch {
	b := &audit.Batch{}
	for _, c := range clusters {
		b.Watched = append(b.Watched, audit.WatchedSpan{Source: c, From: ago(days), To: now})
	}
	return b
}

func lost(cluster string, count int64, reason audit.LossReason, begin, end time.Time) *audit.Batch {
	return &audit.Batch{Losses: []audit.Loss{{Cluster: cluster, Reason: reason, Count: count, From: begin, To: end}}}
}

func store(batches ...*audit.Batch) *insighttest.Model { return insighttest.NewModel(batches...) }

// broken answers nothing.
type broken struct{ *insighttest.Model }

var errBroken = fmt.Errorf("%w: broken", audit.ErrUnavailable)

func (broken) Totals(context.Context, audit.Filter, func(audit.Total) error) error { return errBroken }

type uncovered struct{ *insighttest.Model }

func (uncovered) Coverage(context.Context, time.Time, time.Time) ([]audit.Coverage, error) {
	return nil, errBroken
}

func must[T any](t *testing.T) func(T, error) T {
	t.Helper()
	return func(v T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

// onlyIn is a fleet in which every resource is placed in these members.
func onlyIn(clusters ...string) Fleet { return Fleet{Everywhere: clusters} }

// whereWatched is a fleet in which every resource is placed in the members that the batches report as watched, or m1 if there are none.
func whereWatched(batches ...*audit.Batch) Fleet {
	f := Fleet{}
	for _, b := range batches {
		for _, w := range b.Watched {
			f.Everywhere = append(f.Everywhere, w.Source)
		}
	}
	if len(f.Everywhere) == 0 {
		f.Everywhere = []string{"m1"}
	}
	return f
}
