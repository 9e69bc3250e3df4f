package externalgroup

import (
	"context"
	"fmt"
	"net/netip"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/controllers/policycache"
	"github.com/acp-io/acp/controllers/requestqueue"
	"github.com/acp-io/acp/controllers/writequeue"
	"github.com/acp-io/acp/internal/enforcer/cilium"
	"github.com/acp-io/acp/internal/federation"
	"github.com/acp-io/acp/internal/policy"
	"github.com/acp-io/acp/internal/testenv"
)

// store is a host cluster that stores what is written and counts the writes.
type store struct {
	objects map[string]*federation.Object
	writes  int
}

func (s *store) State() (bool, error) { return true, nil }

func (s *store) Get(name string) (*federation.Object, bool) {
	o, ok := s.objects[name]
	return o, ok
}

func (s *store) Of(subject string) []*federation.Object {
	if o, ok := s.objects[v1alpha1.ObjectPrefix+policy.UnitID(subject)]; ok {
		return []*federation.Object{o}
	}
	return nil
}

func (s *store) List() []*federation.Object { return nil }

func (s *store) Apply(_ context.Context, o *federation.Object) (*federation.Object, error) {
	s.writes++
	s.objects[o.Meta.Name] = o
	return o, nil
}

func (s *store) Delete(_ context.Context, o *federation.Object) error {
	s.writes++
	delete(s.objects, o.Meta.Name)
	return nil
}

// unreadMembers is a fleet of two registered members that were not read.
type unreadMembers struct{ federation.Members }

func (unreadMembers) Registry() (bool, error) { return true, nil }

func (unreadMembers) Clusters() []federation.Cluster {
	return []federation.Cluster{{Name: "m1"}, {Name: "m2"}}
}

func (unreadMembers) Observe(string, string) federation.Observation {
	return federation.Observation{Registered: true}
}

// machines is a host with external workloads, which act as the subjects in turn, and two enforced resources that allow the subjects
// 1 and 2.
type machines struct {
	testing.TB
	objects testenv.Objects
	host    *store
	groups  *Reconciler
	index   *policycache.Cache
	// queues has the requests of the index, by kind.
	queues map[string]workqueue.TypedRateLimitingInterface[string]
	all    []*v1alpha1.ExternalWorkload
}

const (
	subjectHead  = "trnv1:rsc:trip-com:iam:sa:app/"
	resourceHead = "trnv1:rsc:trip-com:redis:clusters:"
)

func newMachines(t testing.TB, count, subjects int) *machines {
	t.Helper()
	queues := policycache.NewQueues(clock.RealClock{})
	m := &machines{TB: t, host: &store{objects: map[string]*federation.Object{}}, index: policycache.New(queues),
		queues: map[string]workqueue.TypedRateLimitingInterface[string]{}}
	m.groups = &Reconciler{
		Cache:     m.index,
		Fleet:     unreadMembers{},
		Federated: m.host,
		Render:    cilium.RenderGroup,
		Effect:    cilium.GroupEffectOf,
		Queue: writequeue.New(
			"test",
			writequeue.Limits{MaxPending: 1, PendingTimeout: time.Hour},
		),
		PendingWrites: func(string) {},
		Subjects:      queues.Groups,
		Clock:         clock.RealClock{},
	}
	if _, err := m.index.Listen(t.Context(), &m.objects); err != nil {
		t.Fatal(err)
	}
	m.index.SetGroupsSupported(true)
	m.change(nil, &v1alpha1.SubjectClass{ObjectMeta: metav1.ObjectMeta{Name: "app"}, Spec: v1alpha1.SubjectClassSpec{
		Pattern: subjectHead + "*", LabelKey: "com.trip/appid"}})
	m.change(nil, &v1alpha1.ResourceClass{ObjectMeta: metav1.ObjectMeta{Name: "redis"}, Spec: v1alpha1.ResourceClassSpec{
		Pattern: resourceHead + "*", LabelKey: "com.trip/redis", Placement: v1alpha1.Placement{ClusterSelector: &metav1.LabelSelector{}},
		Actions: []v1alpha1.ClassAction{{Name: "redis:connect", Ports: []v1alpha1.Port{{Port: 6379}}}}}})
	for i := range count {
		w := &v1alpha1.ExternalWorkload{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("vm-", i)}, Spec: v1alpha1.ExternalWorkloadSpec{
			Subject: v1alpha1.ResourceName(fmt.Sprint(subjectHead, i%subjects)), Addresses: []string{address(i)}}}
		m.all = append(m.all, w)
		m.change(nil, w)
	}
	for i := 1; i <= 2; i++ {
		resource := v1alpha1.ResourceName(fmt.Sprint(resourceHead, i))
		m.change(nil, &v1alpha1.ProtectedResource{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("r-", i)},
			Spec: v1alpha1.ProtectedResourceSpec{Resource: resource, Mode: v1alpha1.ModeEnforce}})
		m.change(nil, &v1alpha1.AccessControlPolicy{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("p-", i)},
			Spec: v1alpha1.AccessControlPolicySpec{Statements: []v1alpha1.Statement{{SID: "s", Effect: v1alpha1.EffectAllow,
				Subjects: []v1alpha1.Subject{v1alpha1.Subject(fmt.Sprint(subjectHead, i))},
				Actions:  []v1alpha1.Action{"redis:connect"}, Resources: []v1alpha1.ResourceName{resource}}}}})
	}
	for kind, f := range map[string]*requestqueue.Queue{"group": queues.Groups, "workload": queues.Workloads, "unit": queues.Units, "policy": queues.Policies,
		"resource class": queues.ResourceClasses, "subject class": queues.SubjectClasses} {
		q := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[string]())
		t.Cleanup(q.ShutDown)
		m.queues[kind] = q
		if err := f.Source(func(context.Context) error { return nil }).Start(t.Context(), q); err != nil {
			t.Fatal(err)
		}
	}
	m.work()
	return m
}

func address(i int) string {
	return netip.AddrFrom4([4]byte{10, byte(i >> 16), byte(i >> 8), byte(i)}).String()
}

func (m *machines) change(old, now client.Object) {
	m.Helper()
	if err := m.objects.Change(old, now); err != nil {
		m.Fatal(err)
	}
}

// move gives a machine another address.
func (m *machines) move(i, to int) {
	old := m.all[i]
	now := old.DeepCopy()
	now.Generation++
	now.Spec.Addresses = []string{address(to)}
	m.all[i] = now
	m.change(old, now)
}

// work reconciles until nothing is enqueued, and returns the number of requests by kind.
func (m *machines) work() map[string]int {
	m.Helper()
	requests := map[string]int{}
	for {
		busy := false
		for kind, q := range m.queues {
			for q.Len() > 0 {
				busy = true
				name, _ := q.Get()
				requests[kind]++
				switch kind {
				case "group":
					if _, err := m.groups.Reconcile(m.Context(), name); err != nil {
						m.Fatal(err)
					}
				case "workload":
					m.index.View() // Its controller reports the view's problems.
				}
				q.Done(name)
			}
		}
		if !busy {
			return requests
		}
	}
}

// TestOneWorkloadWritesOneGroup checks that a machine's new address affects only its own workload, its subject's group
// and the units that name the subject, whatever else exists.
func TestOneWorkloadWritesOneGroup(t *testing.T) {
	const count, subjects = 2000, 250
	m := newMachines(t, count, subjects)
	if m.host.writes != subjects {
		t.Fatalf("%d writes for %d subjects", m.host.writes, subjects)
	}
	for _, c := range []struct {
		reason   string
		machine  int
		requests map[string]int
	}{
		{"no statement names the subject", 7, map[string]int{"workload": 1, "group": 1}},
		{"a unit names the subject", 1, map[string]int{"workload": 1, "group": 1, "unit": 1}},
	} {
		before := m.host.writes
		m.move(c.machine, count+c.machine)
		if diff := cmp.Diff(c.requests, m.work()); diff != "" {
			t.Errorf("%s: requests, -want +got:\n%s", c.reason, diff)
		}
		if n := m.host.writes - before; n != 1 {
			t.Errorf("%s: %d writes", c.reason, n)
		}
	}
	before := m.host.writes
	m.move(7, 5) // The address belongs to another subject.
	// The workload that moved is enqueued for its change, and both workloads for the conflict.
	if got, want := m.work(), map[string]int{"workload": 3, "group": 2}; !cmp.Equal(want, got) {
		t.Errorf("a contested address: requests %v, want %v", got, want)
	}
	if n := m.host.writes - before; n != 4 {
		t.Errorf("%d writes, want the two groups and the two for denies", n)
	}
}

// BenchmarkOneWorkloadOf40k measures one machine's new address among 40,000 machines of 5,000 subjects, up to the
// write.
func BenchmarkOneWorkloadOf40k(b *testing.B) {
	const count, subjects = 40_000, 5_000
	m := newMachines(b, count, subjects)
	before, next := m.host.writes, count
	for b.Loop() {
		m.move(next%count, next)
		m.work()
		next++
	}
	b.ReportMetric(float64(m.host.writes-before)/float64(b.N), "writes/op")
}
