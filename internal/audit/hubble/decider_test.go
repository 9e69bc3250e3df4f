package hubble

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"reflect"
	"testing"
	"time"

	flowpb "github.com/cilium/cilium/api/v1/flow"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"google.golang.org/protobuf/types/known/timestamppb"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/audit"
	"github.com/acp-io/acp/internal/policy"
)

const (
	app888   = "trnv1:rsc:trip-com:iam:sa:app/888"
	clusterA = "trnv1:rsc:trip-com:redis:clusters:a"
)

// closed returns policies that enforce the resource of verdict() and allow only the statements.
func closed(statements ...v1alpha1.Statement) *policy.Snapshot {
	sc := &v1alpha1.SubjectClass{Spec: v1alpha1.SubjectClassSpec{Pattern: "trnv1:rsc:trip-com:iam:sa:app/*", LabelKey: "com.trip/appid"}}
	sc.Name = "application"
	rc := &v1alpha1.ResourceClass{Spec: v1alpha1.ResourceClassSpec{Pattern: "trnv1:rsc:trip-com:redis:clusters:*", LabelKey: "com.trip/redis-cluster",
		Actions: []v1alpha1.ClassAction{{Name: "redis:connect", Ports: []v1alpha1.Port{{Port: 6379, Protocol: v1alpha1.ProtocolTCP}}}}}}
	rc.Name = "redis"
	r := &v1alpha1.ProtectedResource{Spec: v1alpha1.ProtectedResourceSpec{Resource: clusterA, Mode: v1alpha1.ModeEnforce}}
	r.Name = "a"
	p := &v1alpha1.AccessControlPolicy{Spec: v1alpha1.AccessControlPolicySpec{Statements: statements}}
	p.Name = "p"
	return policy.NewSnapshot(policy.Input{SubjectClasses: []*v1alpha1.SubjectClass{sc}, ResourceClasses: []*v1alpha1.ResourceClass{rc},
		Resources: []*v1alpha1.ProtectedResource{r}, Policies: []*v1alpha1.AccessControlPolicy{p}})
}

func allow(sid string, change ...func(*v1alpha1.Statement)) v1alpha1.Statement {
	s := v1alpha1.Statement{SID: sid, Effect: v1alpha1.EffectAllow, Subjects: []v1alpha1.Subject{app888}, Actions: []v1alpha1.Action{"redis:connect"},
		Resources: []v1alpha1.ResourceName{clusterA}}
	for _, c := range change {
		c(&s)
	}
	return s
}

func between(from, until time.Time) func(*v1alpha1.Statement) {
	return func(s *v1alpha1.Statement) {
		if !from.IsZero() {
			s.NotBefore = &metav1.Time{Time: from}
		}
		if !until.IsZero() {
			s.NotAfter = &metav1.Time{Time: until}
		}
	}
}

func when(at time.Time) func(*flowpb.Flow) {
	return func(f *flowpb.Flow) { f.Time, f.Uuid = timestamppb.New(at), f.Uuid+at.String() }
}

func TestFlowsAreDecidedWithThePoliciesOfTheirTime(t *testing.T) {
	minute := func(i int) time.Time { return t0.Add(time.Duration(i) * time.Minute) }
	cfg := config("unused", nil)
	cfg.Now = func() time.Time { return minute(100) }
	epochs := fixed{[]audit.Epoch{
		{Evaluator: closed(allow("late", between(minute(45), minute(50)))), Since: minute(40)},
		{Evaluator: closed(), Since: minute(30)},
		{Evaluator: snapshot(), Since: minute(20)},
	}}
	for name, tc := range map[string]struct {
		reason string
		at     time.Time
		want   policy.Verdict
		late   float64
	}{
		"Now":          {"the newest", minute(60), policy.DefaultDenied, 0},
		"Granted":      {"a statement of the newest is in force for a while", minute(47), policy.Allowed, 0},
		"GrantBegins":  {"the instant itself is in it", minute(45), policy.Allowed, 0},
		"BeforeGrant":  {"not yet", minute(44), policy.DefaultDenied, 0},
		"Older":        {"an earlier state", minute(35), policy.DefaultDenied, 0},
		"Oldest":       {"before enforcement", minute(25), policy.Unmanaged, 0},
		"BeforeOldest": {"before the oldest kept policies, so it is counted as late", minute(5), policy.Unmanaged, 1},
	} {
		t.Run(name, func(t *testing.T) {
			l := newMemorySink()
			cfg := config("unused", l)
			cfg.Now, cfg.Policies = func() time.Time { return minute(100) }, epochs
			in := ingesterOf(t, &cfg, audit.Resume{})
			// Other instants are decided first, so that their caches exist.
			for _, i := range []int{60, 47, 25, 35, 44} {
				take(in, verdict(1000+i, when(minute(i))))
			}
			clear(l.edges)
			before := testutil.ToFloat64(in.counters.late)
			take(in, verdict(1, when(tc.at)))
			for e := range l.edges {
				if e.Decision != tc.want {
					t.Errorf("%s: got %s, want %s", tc.reason, e.Decision, tc.want)
				}
			}
			if late := testutil.ToFloat64(in.counters.late) - before; late != tc.late || len(l.edges) != 1 {
				t.Errorf("%s: got %v counted as late and %d edges", tc.reason, late, len(l.edges))
			}
		})
	}
}

func TestDisagreementsAreReportedAfterThePropagationDelay(t *testing.T) {
	change := t0
	for name, tc := range map[string]struct {
		reason string
		epochs []audit.Epoch
		after  time.Duration
		want   float64
		word   policy.Verdict
	}{
		"Transition": {
			"the dataplane still applies the previous policies",
			[]audit.Epoch{{Evaluator: closed(), Since: change}, {Evaluator: snapshot()}}, 30 * time.Second, 0, policy.Unmanaged,
		},
		"Lasting": {
			"the propagation delay has passed", []audit.Epoch{{Evaluator: closed(), Since: change}, {Evaluator: snapshot()}},
			40 * time.Second, 1, policy.DefaultDenied,
		},
		"Never": {
			"no earlier policy agrees with the dataplane",
			[]audit.Epoch{{Evaluator: closed(), Since: change}, {Evaluator: closed()}}, 5 * time.Second, 1, policy.DefaultDenied,
		},
		"Unrelated": {"unrelated changes do not hide the disagreement", []audit.Epoch{{Evaluator: closed(), Since: change},
			{Evaluator: closed(), Since: change.Add(-10 * time.Second)},
			{Evaluator: snapshot(), Since: change.Add(-time.Hour)}}, 30 * time.Second, 1, policy.DefaultDenied},
		"GrantEnds": {
			"a statement has just ended", []audit.Epoch{{Evaluator: closed(allow("x", between(time.Time{}, change)))}},
			20 * time.Second, 0, policy.Allowed,
		},
		"Between": {"of several changes, the policies before the last one that the dataplane still ignores decide",
			[]audit.Epoch{{Evaluator: closed(), Since: change},
				{Evaluator: closed(allow("x")), Since: change.Add(-10 * time.Second)},
				{Evaluator: closed(), Since: change.Add(-20 * time.Second)}, {Evaluator: snapshot()}},
			5 * time.Second, 0, policy.Allowed},
		"Ended": {
			"the statement ended long ago", []audit.Epoch{{Evaluator: closed(allow("x", between(time.Time{}, change)))}},
			50 * time.Second, 1, policy.DefaultDenied,
		},
	} {
		t.Run(name, func(t *testing.T) {
			l := newMemorySink()
			cfg := config("unused", l)
			cfg.Now, cfg.Policies = func() time.Time { return t0.Add(time.Hour) }, fixed{tc.epochs}
			take(ingesterOf(t, &cfg, audit.Resume{}), verdict(1, when(change.Add(tc.after))))
			if got := testutil.ToFloat64(
				cfg.Metrics.disagreements.WithLabelValues("m1", string(policy.DefaultDenied), string(audit.VerdictForwarded)),
			); got != tc.want {
				t.Errorf("%s: got %v disagreements, want %v", tc.reason, got, tc.want)
			}
			if got := testutil.ToFloat64(cfg.Metrics.byPrevious.WithLabelValues("m1")); got != 1-tc.want {
				t.Errorf("%s: got %v behind a change, want %v", tc.reason, got, 1-tc.want)
			}
			for e := range l.edges {
				if e.Decision != tc.word {
					t.Errorf("%s: got decision %s, want %s", tc.reason, e.Decision, tc.word)
				}
			}
		})
	}
}

// TestCachedDecisionsEqualFreshDecisions compares the caches with deciding each flow separately, over random flows, times and
// policy changes.
func TestCachedDecisionsEqualFreshDecisions(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 2))
	second := func() time.Time { return t0.Add(time.Duration(r.IntN(600)) * time.Second) }
	l := newMemorySink()
	cfg := config("unused", l)
	cfg.Now = func() time.Time { return t0.Add(time.Hour) }
	epochs := []audit.Epoch{{Evaluator: snapshot()}}
	cfg.Policies = &changing{&epochs}
	in := ingesterOf(t, &cfg, audit.Resume{})
	in.endpoints.limit, in.decider.limit = 5, 7 // the caches overflow all the time
	want := map[audit.Edge]int64{}
	for i := range 20_000 {
		if i%500 == 499 {
			since := t0.Add(time.Duration(600*i/20_000) * time.Second)
			from := second()
			next := closed(allow("a", between(from, from.Add(time.Minute))), allow("b", between(second(), time.Time{})))
			epochs = append([]audit.Epoch{{Evaluator: next, Since: since}}, epochs[:min(len(epochs), 5)]...)
		}
		at := second()
		f := verdict(i, when(at), func(f *flowpb.Flow) {
			f.Verdict = flowpb.Verdict(1 + r.IntN(2))
			f.L4.GetTCP().DestinationPort = 6379 + r.Uint32N(2)
			f.Source.Labels[0] = fmt.Sprintf("k8s:com.trip/appid=%d", 886+r.IntN(4))
			if r.IntN(4) == 0 {
				f.Source.Labels, f.IP.Source = []string{"reserved:world"}, fmt.Sprintf("203.0.%d.9", r.IntN(3))
			}
		})
		take(in, f)
		for _, edge := range edgesOf(epochs, observationOf(f)) {
			want[edge]++
		}
	}
	if diff := cmp.Diff(want, l.edges); diff != "" {
		t.Errorf("counts (-fresh +cached):\n%s", diff)
	}
}

// TestDecisionKeyCoversTheObservation checks each field of an observation: it is made of the key of a decision, of the member, or of the time, or
// it is listed here because no decision reads it. A new field has to be put into the key or into the list.
func TestDecisionKeyCoversTheObservation(t *testing.T) {
	unread := map[string]string{
		"Node": "", "Count": "",
		"Source.Port": "of the client", "Destination.Address": "the labels identify the destination", "Destination.Identity": "no resource has one",
		"Destination.ServiceAccount": "no resource is found by it",
	}
	p := pair{
		from: &audit.Endpoint{
			Kind: audit.KindWorkload, Labels: map[string]string{"a": "b"}, ServiceAccount: "x", Identity: "x", Namespace: "x", Cluster: "x",
		},
		to:      &audit.Endpoint{Kind: audit.KindWorkload, Labels: map[string]string{"a": "b"}, Namespace: "x", Cluster: "x"},
		address: netip.MustParseAddr("203.0.113.1"), port: 80, transport: transportTCP, verdict: flowpb.Verdict_DROPPED,
		request: &request{method: "GET", path: "/"},
	}
	for i, value := 0, reflect.ValueOf(p); i < value.NumField(); i++ {
		if value.Field(i).IsZero() {
			t.Errorf("the test has no value for the field %s of the key", value.Type().Field(i).Name)
		}
	}
	d := decider{member: "m1", enforcer: v1alpha1.EnforcerIstio}
	var check func(prefix string, of reflect.Value)
	check = func(prefix string, of reflect.Value) {
		for i := range of.NumField() {
			name := prefix + of.Type().Field(i).Name
			if of.Field(i).Type() == reflect.TypeFor[audit.Endpoint]() {
				check(name+".", of.Field(i))
				continue
			}
			if _, ignored := unread[name]; ignored != of.Field(i).IsZero() {
				t.Errorf("Observation.%s: listed as not read: %t, set: %t", name, ignored, !of.Field(i).IsZero())
			}
		}
	}
	check("", reflect.ValueOf(d.observation(p, t0)))
}

// edgesOf decides a connection without caches. All changes are at whole seconds, so it tries each second of the propagation
// delay.
func edgesOf(epochs []audit.Epoch, o audit.Observation) []audit.Edge {
	at := func(t time.Time) (e audit.Epoch, known bool) {
		for _, e := range epochs {
			if !t.Before(e.Since) {
				return e, true
			}
		}
		return epochs[len(epochs)-1], false
	}
	e, known := at(o.Time)
	now := audit.Attribute(e.Evaluator, o)
	for ago := time.Duration(0); known && now.Disagrees() && ago < propagationDelay; ago += time.Second {
		before := o
		before.Time = o.Time.Add(-ago - 1)
		var older audit.Epoch
		if older, known = at(before.Time); !known {
			break
		}
		if r := audit.Attribute(older.Evaluator, before); !r.Disagrees() {
			return r.Edges(older.Evaluator)
		}
	}
	return now.Edges(e.Evaluator)
}

// changing implements PolicyHistory with the current content of a slice.
type changing struct{ epochs *[]audit.Epoch }

func (changing) Wait(context.Context) error { return nil }
func (c changing) Epochs() []audit.Epoch    { return *c.epochs }

// observationOf decodes a verdict() with the generated types.
func observationOf(f *flowpb.Flow) audit.Observation {
	o := audit.Observation{Time: f.GetTime().AsTime(), Cluster: "m1", Source: endpointOf(f.GetSource()), Destination: endpointOf(f.GetDestination()),
		Protocol: v1alpha1.ProtocolTCP, Verdict: verdictOf(f.GetVerdict()), Count: 1}
	o.Source.Address, o.Destination.Cluster = netip.MustParseAddr(f.GetIP().GetSource()), "m1"
	o.Destination.Port = uint16(f.GetL4().GetTCP().GetDestinationPort())
	return o
}

func TestRawFlows(t *testing.T) {
	refused := func(f *flowpb.Flow) { f.Verdict = flowpb.Verdict_DROPPED }
	for keep, want := range map[RawFlows]int{RawFlowsAll: 2, RawFlowsRefused: 1, RawFlowsNone: 0} {
		l := newMemorySink()
		cfg := config("unused", l)
		cfg.RawFlows = keep
		in := ingesterOf(t, &cfg, audit.Resume{})
		take(in, verdict(1))
		take(in, verdict(2, refused))
		take(in, verdict(2, refused)) // repeated
		if len(l.flows) != want {
			t.Errorf("%s: got %d raw flows, want %d", keep, len(l.flows), want)
		}
		if want == 0 {
			continue
		}
		e := edge()
		e.Verdict = audit.VerdictDropped
		last := audit.Flow{
			Time:               at(2),
			Node:               "n1",
			Edge:               e,
			SourceAddress:      netip.MustParseAddr("10.0.0.1"),
			DestinationAddress: netip.MustParseAddr("10.0.0.2"),
			SourcePort:         10002,
			Count:              1,
			Reason:             "decision.unmanaged",
		}
		if diff := cmp.Diff(last, l.flows[want-1], cmpopts.EquateComparable(netip.Addr{})); diff != "" {
			t.Errorf("%s (-want +got):\n%s", keep, diff)
		}
	}
}
