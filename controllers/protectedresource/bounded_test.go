package protectedresource

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/client-go/tools/events"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/controllers/metrics"
	"github.com/acp-io/acp/controllers/statuscache"
	"github.com/acp-io/acp/controllers/statusfields"
	"github.com/acp-io/acp/internal/federation"
	"github.com/acp-io/acp/internal/message"
)

const manyMembers = 500

// crowd is a resource in 500 members with the longest names.
type crowd struct {
	*scene
	names []string
	// odd is what is found in a member instead of what it has to have.
	odd map[string]func(*federation.Observation)
	// own revisions are wanted of each member.
	own bool
}

func newCrowd(t testing.TB) *crowd {
	c := &crowd{odd: map[string]func(*federation.Observation){}}
	for i := range manyMembers {
		c.names = append(c.names, fmt.Sprintf("m%062d", i))
	}
	c.scene = newScene(t, c.names...)
	return c
}

// look is what the reconciler finds, and the report that it makes of it, when the objects have a status.
func (c *crowd) look(before statuscache.Report, was v1alpha1.ProtectedResourceStatus) (*facts, statuscache.Report) {
	c.Helper()
	c.scene.odd = nil
	f := c.facts()
	f.Objects[0].Status, f.LastReport, f.LastStates = was, before, lastStates(before.Clusters, was.States())
	for m := range was.All() {
		f.StatusMembers = append(f.StatusMembers, string(m.Name))
	}
	p, err := newPlan(f)
	if err != nil {
		c.Fatal(err)
	}
	for _, w := range p.Writes {
		w.Meta.ResourceVersion, w.Propagation.Seen = "1", true
		c.existing = replace(c.existing, w)
	}
	if c.own {
		for object := range p.Desired {
			for i, name := range c.names {
				p.Desired[object][name] = fmt.Sprintf("%016x", 1<<60+i)
			}
		}
	}
	f.Existing = c.existing
	c.scene.odd = c.odd
	c.reconciler().observe(f)
	return f, assess(&outcome{Step: stepApplied, Facts: f, Plan: p, Existing: c.existing})
}

// stored is a status as the API server gives it back.
func stored(t testing.TB, s v1alpha1.ProtectedResourceStatus) (out v1alpha1.ProtectedResourceStatus) {
	t.Helper()
	text, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, &out); err != nil {
		t.Fatal(err)
	}
	return out
}

// worst lets every member differ from all others in what it has to have, has and is, with the longest messages.
func (c *crowd) worst(states ...int) {
	c.own = true
	long := strings.Repeat("\"<&\\", 500)
	for i, name := range c.names {
		c.spec.ClusterModes = append(
			c.spec.ClusterModes,
			v1alpha1.ClusterMode{Cluster: v1alpha1.ClusterName(name), Mode: []v1alpha1.Mode{v1alpha1.ModeEnforce, v1alpha1.ModeAudit}[i%2]},
		)
		has := fmt.Sprintf("%016x", 1<<61+i)
		switch states[i%len(states)] {
		case 0: // pending, as KubeFed says at length
			c.odd[name] = func(o *federation.Observation) {
				o.Object = &federation.Observed{Name: "x", Revision: has, Label: has}
			}
		case 1: // unreachable
			c.odd[name] = func(o *federation.Observation) {
				o.Reachable, o.Message, o.Object = false, message.MemberNoAnswer(long[:i%60*4], long[:i%40*4]), nil
			}
		case 2: // drifted
			c.odd[name] = func(o *federation.Observation) {
				o.Object = &federation.Observed{Name: "x", Revision: has, Label: "other", LastWriter: federation.LastWriter{Manager: long}}
			}
		case 3: // quarantined
			c.clusters[i].Quarantined, c.clusters[i].QuarantineReason = true, message.Verbatim(long)
			c.odd[name] = func(o *federation.Observation) {
				o.Object = &federation.Observed{Name: "x", Revision: has, Label: has}
			}
		case 4: // realized
			c.odd[name] = func(o *federation.Observation) {
				o.Object = &federation.Observed{Name: "x", Revision: fmt.Sprintf("%016x", 1<<60+i), Label: fmt.Sprintf("%016x", 1<<60+i)}
			}
		}
	}
}

// TestStatusIsBounded makes the largest status that 500 members can have.
func TestStatusIsBounded(t *testing.T) {
	for name, tc := range map[string]struct {
		reason string
		make   func(*crowd)
		most   int
	}{
		"Well":        {"every member has the same", func(*crowd) {}, 50_000},
		"Pending":     {"every member lacks it, and each has another revision", func(c *crowd) { c.worst(0) }, 100_000},
		"Drifted":     {"somebody changed it everywhere, each time differently", func(c *crowd) { c.worst(2) }, 100_000},
		"Quarantined": {"every member is kept out", func(c *crowd) { c.worst(3) }, 100_000},
		"Away":        {"half of the members cannot be read", func(c *crowd) { c.worst(0, 1) }, 100_000},
		"Mixed":       {"members in every state", func(c *crowd) { c.worst(0, 1, 2, 3, 4) }, 100_000},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCrowd(t)
			c.look(statuscache.Report{}, v1alpha1.ProtectedResourceStatus{}) // KubeFed has brought it
			tc.make(c)
			f, r := c.look(statuscache.Report{}, v1alpha1.ProtectedResourceStatus{})
			for i := range r.Clusters { // they changed one after the other, over a year
				at := *r.Clusters[i].Since
				at.Time = at.Add(time.Duration(i)*17*time.Hour + time.Duration(i)*time.Millisecond)
				r.Clusters[i].Since = &at
			}
			s := status(f, f.Objects[0], &r)
			text, err := json.Marshal(s)
			if err != nil {
				t.Fatal(err)
			}
			t.Logf("%d bytes, %d members in full, %d groups", len(text), len(s.Clusters), len(s.Groups))
			if len(text) > tc.most {
				t.Errorf(
					"%s: the status has %d bytes, of which %d members with messages take a part, want at most %d",
					tc.reason,
					len(text),
					len(s.Clusters),
					tc.most,
				)
			}
			if len(s.Clusters) < 2 || s.Unlisted() != 0 || s.Members.Total != manyMembers {
				t.Errorf("%s: %d members in full, %d not listed, %+v", tc.reason, len(s.Clusters), s.Unlisted(), s.Members)
			}
			got := s.States()
			for i := range got {
				statusfields.SetMessage(&got[i], message.Message{})
				statusfields.SetMessage(&r.Clusters[i], message.Message{})
			}
			if d := cmp.Diff(r.Clusters, got); d != "" {
				t.Errorf("%s: something is lost (-want +got):\n%s", tc.reason, d)
			}
		})
	}
}

// TestRestartWritesNothing checks that a new process neither writes a status with groups of members again, nor repeats its
// events and metrics.
func TestRestartWritesNothing(t *testing.T) {
	c := newCrowd(t)
	c.look(statuscache.Report{}, v1alpha1.ProtectedResourceStatus{})
	f, well := c.look(statuscache.Report{}, v1alpha1.ProtectedResourceStatus{})
	told := stored(t, status(f, f.Objects[0], &well))
	if told.Members.Realized != manyMembers {
		t.Fatalf("not every member is realized at first: %+v", told.Members)
	}
	for i, name := range c.names[100:200] {
		if c.odd[name] = func(o *federation.Observation) {
			o.Reachable, o.Message, o.Object = false, message.Verbatim("away"), nil
		}; i%2 == 0 {
			c.odd[name] = func(o *federation.Observation) {
				if o.Object != nil {
					o.Object.Revision = "by hand"
				}
			}
		}
	}
	f, bad := c.look(well, told)
	told = stored(t, status(f, f.Objects[0], &bad))

	recorder := events.NewFakeRecorder(1000)
	registry := prometheus.NewRegistry()
	counts, err := metrics.New(registry)
	if err != nil {
		t.Fatal(err)
	}
	r := &Reconciler{Events: recorder, Metrics: counts}
	f, again := c.look(statuscache.Report{}, told)
	if next := status(f, f.Objects[0], &again); !equality.Semantic.DeepEqual(told, next) {
		t.Errorf("the new process writes (-was +writes):\n%s", cmp.Diff(told, next))
	}
	r.emitEvents(f, statuscache.Report{}, false, &again)
	r.measure(f, &again)
	if n := len(recorder.Events); n != 0 {
		t.Errorf("the new process repeats %d events, the first is %s", n, <-recorder.Events)
	}
	found, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range found {
		for _, m := range family.Metric {
			if m.Counter != nil || m.Histogram.GetSampleCount() > 0 {
				t.Errorf("the new process counts %s again", family.GetName())
			}
		}
	}

	last := c.names[manyMembers-1] // it is in a group
	c.odd[last] = func(o *federation.Observation) { o.Object = nil }
	f, again = c.look(statuscache.Report{}, told)
	r.emitEvents(f, statuscache.Report{}, false, &again)
	if s := again.Clusters[manyMembers-1]; s.State != v1alpha1.MemberDrifted {
		t.Errorf("the new process does not know that a member of a group had it: %+v", s)
	}
	if n := len(recorder.Events); n != 1 {
		t.Errorf("%d events about one new trouble", n)
	}
	for _, s := range again.Clusters {
		if s.State == v1alpha1.MemberUnreachable && s.ObservedRevision == "" {
			t.Errorf("%s had a revision when it was seen last", s.Name)
			break
		}
	}
}

// BenchmarkStatusOf500Members is what a status costs in the way of a push, with what the client does with it.
func BenchmarkStatusOf500Members(b *testing.B) {
	c := newCrowd(b)
	c.look(statuscache.Report{}, v1alpha1.ProtectedResourceStatus{})
	f, r := c.look(statuscache.Report{}, v1alpha1.ProtectedResourceStatus{})
	o := f.Objects[0]
	whole := func() v1alpha1.ProtectedResourceStatus { // as it was before groups
		return v1alpha1.ProtectedResourceStatus{Conditions: conditions(f, o, &r), Clusters: r.Clusters}
	}
	for name, of := range map[string]func() v1alpha1.ProtectedResourceStatus{
		"Grouped": func() v1alpha1.ProtectedResourceStatus { return status(f, o, &r) }, "Whole": whole} {
		b.Run(name, func(b *testing.B) {
			was := stored(b, of())
			for b.Loop() {
				next := of()
				if len(was.States()) != manyMembers || equality.Semantic.DeepEqual(was, next) && testing.Verbose() {
					b.Log("as it was")
				}
				if _, err := json.Marshal(next); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// sameObject are members that all have one object.
type sameObject struct {
	federation.Members
	key, revision string
}

func (m sameObject) Observe(_, key string) federation.Observation {
	o := federation.Observation{Registered: true, Reachable: true}
	if key == m.key {
		o.Object = &federation.Observed{Name: key, Revision: m.revision, Label: m.revision}
	}
	return o
}

// BenchmarkDecisionFor500Members measures a reconcile of a unit that is realized in 500 members, without the compilation
// and without writes.
func BenchmarkDecisionFor500Members(b *testing.B) {
	c := newCrowd(b)
	c.look(statuscache.Report{}, v1alpha1.ProtectedResourceStatus{}) // KubeFed has brought it
	f := c.facts()
	r := c.reconciler()
	r.Fleet = sameObject{key: f.Existing[0].Key(), revision: f.Rendered[0].Revision}
	for b.Loop() {
		next := *f
		r.observe(&next)
		p, err := newPlan(&next)
		if err != nil {
			b.Fatal(err)
		}
		if report := assess(&outcome{Step: stepApplied, Facts: &next, Plan: p, Existing: next.Existing}); !report.Realized() {
			b.Fatalf("%+v", report.Clusters[0])
		}
	}
}
