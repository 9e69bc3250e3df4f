package triggers

import (
	"context"
	"testing"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/controllers/backlog"
	"github.com/acp-io/acp/controllers/requestqueue"
	"github.com/acp-io/acp/controllers/statuscache"
	"github.com/acp-io/acp/controllers/writequeue"
	"github.com/acp-io/acp/internal/federation"
)

// host has Federated objects by name, which were listed unless unlisted is set.
type host struct {
	federation.Host
	objects  map[string]*federation.Object
	unlisted bool
}

func (h host) State() (bool, error) { return !h.unlisted, nil }

func (h host) Get(name string) (*federation.Object, bool) { o, ok := h.objects[name]; return o, ok }

// members is a member in which every object has ACP's label.
type members struct{ federation.Members }

func (members) Clusters() []federation.Cluster { return []federation.Cluster{{Name: "m1"}} }

func (members) Observe(_, object string) federation.Observation {
	return federation.Observation{Registered: true, Reachable: true, Object: &federation.Observed{Name: object, Managed: true}}
}

// TestObjectsEnqueueTheirUnits checks which unit an event about an object enqueues, whether it came from a member or from an engine.
func TestObjectsEnqueueTheirUnits(t *testing.T) {
	federated := func(name, resource string) *federation.Object {
		return &federation.Object{Kind: federation.CiliumPolicy, Meta: metav1.ObjectMeta{Name: name,
			Labels: map[string]string{v1alpha1.LabelManagedBy: v1alpha1.ManagedBy}, Annotations: map[string]string{federation.AnnotationResource: resource}}}
	}
	on := host{objects: map[string]*federation.Object{"acp-new": federated("acp-new", "new"), "acp-both": federated("acp-both", "other"),
		"acp-nameless": federated("acp-nameless", "")}}
	reports := statuscache.New()
	reports.Put(statuscache.Report{Resource: "reported", Objects: []string{"acp-reported", "acp-both"}})
	for object, want := range map[string]string{
		"acp-reported": "reported", // it may be gone from the host
		"acp-new":      "new",
		"acp-both":     "reported",
		"acp-nameless": "",
		"acp-orphan":   "",
	} {
		stores := federation.KindStores{{Kind: federation.CiliumPolicy, Host: on, Members: members{}}}
		queue := requestqueue.New(clock.RealClock{})
		u := &Units{Reports: reports, Queue: queue, Stores: stores, Log: logr.Discard(),
			Backlog: &backlog.Tracker{Queue: writequeue.New("test", writequeue.DefaultLimits), Objects: stores, Members: stores, Clock: clock.RealClock{}}}
		requests := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[string]())
		if err := queue.Source(func(context.Context) error { return nil }).Start(t.Context(), requests); err != nil {
			t.Fatal(err)
		}
		for from, event := range map[string]func(){
			"engine": func() { u.OnReport(object) }, "member": func() { u.OnMemberObject("m1", object) },
		} {
			event()
			got := ""
			if requests.Len() > 0 {
				got, _ = requests.Get()
				requests.Done(got)
			}
			if got != want || requests.Len() != 0 {
				t.Errorf("event of the %s about %s: enqueued %q and %d more, want %q", from, object, got, requests.Len(), want)
			}
		}
		requests.ShutDown()
	}
}

// TestReadBackComesBeforeReports checks that what was read back in a member is handled before what engines report: they report a lost member for every
// object there, and the status of a change that a person waits for would come after the statuses of all units.
func TestReadBackComesBeforeReports(t *testing.T) {
	reports := statuscache.New()
	for _, unit := range []string{"lost-1", "lost-2", "changed"} {
		reports.Put(statuscache.Report{Resource: unit, Objects: []string{"acp-" + unit}})
	}
	stores := federation.KindStores{{Kind: federation.CiliumPolicy, Host: host{}, Members: members{}}}
	queue := requestqueue.New(clock.RealClock{})
	u := &Units{Reports: reports, Queue: queue, Stores: stores, Log: logr.Discard(),
		Backlog: &backlog.Tracker{Queue: writequeue.New("test", writequeue.DefaultLimits), Objects: stores, Members: stores, Clock: clock.RealClock{}}}
	requests := priorityqueue.New[string]("test")
	defer requests.ShutDown()
	if err := queue.Source(func(context.Context) error { return nil }).Start(t.Context(), requests); err != nil {
		t.Fatal(err)
	}
	u.OnReport("acp-lost-1")
	u.OnReport("acp-changed")
	u.OnReport("acp-lost-2")
	u.OnMemberObject("m1", "acp-changed")
	if first, _ := requests.Get(); first != "changed" {
		t.Errorf("%s comes first", first)
	}
}

// TestUnknownObjectsAreLoggedOnceTheHostIsListed checks that a member's objects are not reported as unknown before the host's objects are
// known: members are listed at the same time as the host, and then every one of their objects would be reported.
func TestUnknownObjectsAreLoggedOnceTheHostIsListed(t *testing.T) {
	for _, c := range []struct {
		unlisted bool
		want     int
	}{{true, 0}, {false, 1}} {
		stores := federation.KindStores{{Kind: federation.CiliumPolicy, Host: host{unlisted: c.unlisted}, Members: members{}}}
		logged := 0
		u := &Units{Reports: statuscache.New(), Stores: stores, Log: funcr.New(func(_, _ string) { logged++ }, funcr.Options{}),
			Backlog: &backlog.Tracker{Queue: writequeue.New("test", writequeue.DefaultLimits), Objects: stores, Members: stores, Clock: clock.RealClock{}}}
		u.OnMemberObject("m1", "acp-orphan")
		if logged != c.want {
			t.Errorf("unlisted %v: logged %d times, want %d", c.unlisted, logged, c.want)
		}
	}
}
